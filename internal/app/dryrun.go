package app

import (
	"context"
	"fmt"
	"time"

	"localllm/capability"
	"localllm/internal/survey"
)

// Near the limit is where a better figure could change the choice; elsewhere half a second of dry run buys nothing.
const nearLimit = 0.85

// askDryRun has llama.cpp itself plan the first choice where our estimate comes near to what is free, and passes over
// choices that it says do not fit. Measured memory is better than any plan, so it is not asked then.
func (a *App) askDryRun(ctx context.Context, choices []capability.Choice) (left []capability.Choice, said []string) {
	for len(choices) > 1 {
		c := choices[0]
		room := c.FreeBytes - c.ReserveBytes
		if c.Source == capability.Measured || c.Path == "" || float64(c.NeedBytes) < nearLimit*float64(room) {
			break
		}
		planned, ok := plannedBytes(ctx, c)
		if !ok {
			break
		}
		if planned <= c.FreeBytes {
			return choices, append(said, fmt.Sprintf("llama.cpp's own dry run says %s", capability.GiB(planned)))
		}
		said = append(said, fmt.Sprintf("passed over %s at %s: llama.cpp's own dry run says %s, and %s is free",
			c.Model, capability.Tokens(c.Context), capability.GiB(planned), capability.GiB(c.FreeBytes)))
		choices = choices[1:]
	}
	return choices, said
}

// plannedBytes is what llama.cpp plans over all devices, false where it can't be asked.
func plannedBytes(ctx context.Context, c capability.Choice) (int64, bool) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	plan, err := survey.DryRun(ctx, c)
	if err != nil || len(plan) == 0 {
		return 0, false
	}
	sum := int64(0)
	for _, p := range plan {
		sum += p.Total()
	}
	return sum, true
}
