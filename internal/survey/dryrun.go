package survey

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"localllm/capability"
	"localllm/internal/proc"
)

// dryRunLimit is for reading a header and laying out one batch; half a second is usual.
const dryRunLimit = 20 * time.Second

// Planned is what llama.cpp would take on one device ("Host", "CUDA0", …), in bytes.
type Planned struct {
	Device       string `json:"device"`
	WeightsBytes int64  `json:"weights_bytes"`
	ContextBytes int64  `json:"context_bytes"` // cache and recurrent state
	ComputeBytes int64  `json:"compute_bytes"`
}

// Total is the sum over its parts.
func (p Planned) Total() int64 { return p.WeightsBytes + p.ContextBytes + p.ComputeBytes }

// DryRun asks llama.cpp itself what a choice would take, without loading it: by llama-fit-params, beside llama-server
// or on the path. capability.ErrAbsent means that the tool is not installed, or that the choice has no file to ask
// about. It starts a program, so only enable and doctor may use it.
func DryRun(ctx context.Context, c capability.Choice) ([]Planned, error) {
	s, err := New()
	if err != nil {
		return nil, err
	}
	tool := s.fitParams()
	if tool == "" || c.Path == "" {
		return nil, capability.ErrAbsent
	}
	var env []string
	if len(c.Devices) > 0 {
		env = append(os.Environ(), "CUDA_VISIBLE_DEVICES="+strings.Join(c.Devices, ","))
	}
	return PlanWith(ctx, tool, env, c.Path, capability.Setting{Context: c.Context, KVType: c.KVType, Slots: c.Slots})
}

// fitParams finds the tool. llama.cpp installs it beside its server.
func (s *Surveyor) fitParams() string {
	name := "llama-fit-params"
	if server := s.program("LOCALLLM_LLAMA_SERVER", "llama-server"); server != "" {
		if windows {
			name += ".exe"
		}
		if beside := filepath.Join(filepath.Dir(server), name); executable(beside) {
			return beside
		}
	}
	return s.program("", "llama-fit-params")
}

// PlanWith runs one dry run with the given tool. A nil environment is our own.
func PlanWith(ctx context.Context, tool string, env []string, path string, set capability.Setting) ([]Planned, error) {
	ctx, cancel := context.WithTimeout(ctx, dryRunLimit)
	defer cancel()
	slots := max(set.Slots, 1)
	args := []string{
		"-m", path, "-c", strconv.Itoa(set.Context * slots), "-np", strconv.Itoa(slots), "-ctk", set.KVType, "-ctv", set.KVType,
		"--fit-print", "on",
		// Mapped weights, and those repacked for this processor, would be left out.
		"-lm", "none", "--no-repack",
	}
	var out, errs bytes.Buffer
	exit, err := proc.Run(ctx, proc.Command{
		Path: tool, Args: args, Env: env, Grace: time.Second,
		Stdout: &bounded{w: &out, left: 1 << 16}, Stderr: &bounded{w: &errs, left: 1 << 20},
	})
	if err != nil {
		return nil, err
	}
	if exit != 0 {
		return nil, fmt.Errorf("%s (exit %d): %s", filepath.Base(tool), exit, lastLine(errs.String()))
	}
	return parsePlan(out.String())
}

// parsePlan reads lines of a device and three figures in MiB: weights, context, compute.
func parsePlan(text string) ([]Planned, error) {
	const mib, most = 1 << 20, 1 << 40
	var list []Planned
	for _, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) != 4 {
			continue
		}
		var n [3]int64
		ok := true
		for i := range n {
			v, err := strconv.ParseInt(fields[i+1], 10, 64)
			ok = ok && err == nil && v >= 0 && v < most
			n[i] = v * mib
		}
		if ok {
			list = append(list, Planned{fields[0], n[0], n[1], n[2]})
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("the dry run printed no figures: %q", firstBytes(text, 200))
	}
	return list, nil
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndex(s, "\n")+1:]
}

func firstBytes(s string, n int) string { return s[:min(len(s), n)] }
