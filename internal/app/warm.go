package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"localllm/delegate"
	"localllm/internal/slots"
	"localllm/lifecycle"
)

type warmed struct {
	took   time.Duration
	tokens int
}

// warm reads what all prompts of this session begin with into the engine's cache, and proves by the engine's own
// counters that it is found there.
func (a *App) warm(ctx context.Context, files []string, report func(Progress)) (warmed, error) {
	st, err := a.client.Status(ctx)
	if err != nil {
		return warmed{}, err
	}
	if st.State != lifecycle.Ready || st.Endpoint == nil {
		return warmed{}, ErrNotEnabled
	}
	c, err := connect(*st.Endpoint)
	if err != nil {
		return warmed{}, err
	}
	to := &target{Completer: c, key: st.Endpoint.URL, limits: c.Limits(), release: func() {}}
	defer to.close()
	root, err := callOf(ctx).project()
	if err != nil {
		return warmed{}, err
	}
	bound, err := a.binding(ctx)
	if err != nil {
		return warmed{}, err
	}
	state := a.promptState(bound, root, to.key)
	slot, err := slots.Open(a.layout, to.key, to.limits.Slots).Take(ctx, state.preferred(), nil)
	if err != nil {
		return warmed{}, err
	}
	defer slot.Release()
	report(Progress{Phase: "warming"})
	task := delegate.Task{Task: "Wait.", ContextFiles: files}
	gathered, err := a.gather(ctx, root, task)
	if err != nil {
		return warmed{}, fmt.Errorf("warm_files: %w", err)
	}
	prompt, err := delegate.Build(ctx, c, delegate.Input{
		Task: task, Mode: delegate.ModeText, Model: to.limits.Model, Context: gathered.Files, Session: state.Load(slot.Index),
	})
	if err != nil {
		return warmed{}, err
	}
	return warmSlot(ctx, to, slot.Index, prompt, state, report)
}

func warmSlot(ctx context.Context, to *target, slot int, prompt delegate.Prompt, state promptState, report func(Progress)) (warmed, error) {
	began := time.Now()
	r := delegate.Request{Messages: prompt.Warm, MaxTokens: 1, Slot: -1, Progress: func(g delegate.Generating) {
		report(Progress{Phase: "warming", Done: int64(g.PromptTokens), Total: int64(g.PromptTotal), Unit: "tokens"})
	}}
	if to.limits.PinnedSlots {
		r.Slot = slot
	}
	if _, err := to.Complete(ctx, r); err != nil {
		return warmed{}, err
	}
	r.Progress = nil
	again, err := to.Complete(ctx, r)
	if err != nil {
		return warmed{}, err
	}
	state.Store(slot, prompt.Session)
	if again.Tokens.Cached*10 < again.Tokens.Prompt*8 {
		return warmed{}, errors.New("this model's cache can't be rewound to where the shared text ends: each delegation reads its whole prompt")
	}
	return warmed{time.Since(began), again.Tokens.Prompt}, nil
}
