//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// gpuRates are what only a machine with a GPU can show: memory measured against foretold, load, prefill and decode.
func gpuRates(ctx context.Context, b *box, model string) ([]row, error) {
	home, env, err := b.home()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, b.program, "capability", "--json")
	cmd.Dir, cmd.Env = filepath.Join(home, "project"), env
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("capability: %w", err)
	}
	var r struct {
		Hardware struct {
			GPUs []struct {
				Name  string `json:"name"`
				Total uint64 `json:"total_bytes"`
			} `json:"gpus"`
		} `json:"hardware"`
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return nil, err
	}
	if len(r.Hardware.GPUs) == 0 {
		return nil, errors.New("this machine has no GPU")
	}
	if model == "" {
		model = b.model
	}
	rows, err := b.onGPU(ctx, home, env, model)
	for i := range rows {
		rows[i].Note = r.Hardware.GPUs[0].Name + ", " + filepath.Base(model)
	}
	return rows, err
}

func (b *box) onGPU(ctx context.Context, home string, env []string, model string) ([]row, error) {
	s, err := b.client(ctx, home, env)
	if err != nil {
		return nil, err
	}
	defer s.close()
	var e struct {
		LoadMS   float64 `json:"load_ms"`
		Fraction float64 `json:"gpu_fraction"`
		Memory   struct {
			Estimated float64 `json:"estimated_bytes"`
			Measured  float64 `json:"measured_bytes"`
		} `json:"memory"`
	}
	if _, err := s.call(map[string]any{"action": "enable", "model": model, "engine": "llama-server", "context": 8192}, &e); err != nil {
		return nil, err
	}
	var out struct{ Stopped bool }
	if _, err := s.call(map[string]any{"action": "disable"}, &out); err != nil {
		return nil, err
	}
	const mib = 1 << 20
	rows := []row{
		{Name: "GPU memory foretold", Unit: "MiB", Samples: []float64{e.Memory.Estimated / mib}},
		{Name: "GPU memory measured", Unit: "MiB", Samples: []float64{e.Memory.Measured / mib}},
		{Name: "part of the model on the GPU", Unit: "of 1", Samples: []float64{e.Fraction}},
		{Name: "load", Unit: "ms", Samples: []float64{e.LoadMS}},
	}
	prefill, decode, err := b.rates(ctx, model)
	return append(rows, row{Name: "prefill, 667 words and more tokens", Unit: "tokens/s", Samples: prefill}, row{Name: "decode, 128 tokens", Unit: "tokens/s", Samples: decode}), err
}

// rates are the engine's own, each time with a prompt that it has not seen.
func (b *box) rates(ctx context.Context, model string) (prefill, decode []float64, err error) {
	url, stop, err := b.server(ctx, model, 8192)
	if err != nil {
		return nil, nil, err
	}
	defer stop()
	for i := range 5 {
		body, err := json.Marshal(map[string]any{"prompt": fmt.Sprint(i) + strings.Repeat(fmt.Sprintf(" word%d", i), 2000/3), "n_predict": 128, "ignore_eos": true, "cache_prompt": false})
		if err != nil {
			return nil, nil, err
		}
		text, err := post(ctx, url+"/completion", string(body))
		if err != nil {
			return nil, nil, err
		}
		var r struct {
			Timings struct {
				Prefill float64 `json:"prompt_per_second"`
				Decode  float64 `json:"predicted_per_second"`
			} `json:"timings"`
		}
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, nil, err
		}
		prefill, decode = append(prefill, r.Timings.Prefill), append(decode, r.Timings.Decode)
	}
	return prefill, decode, nil
}
