package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"localllm/capability"
	"localllm/internal/gguf"
	"localllm/internal/survey"
	"localllm/test/shapes"
)

const mib = 1 << 20

// row is one comparison, in bytes.
type row struct {
	model, arch         string
	context             int
	kv                  string
	estimate            capability.Need
	weights, cache, tmp int64 // the dry run's
}

func (r row) ours() int64 {
	return r.estimate.WeightsBytes + r.estimate.KVBytes + r.estimate.StateBytes
}
func (r row) truth() int64 { return r.weights + r.cache }

// err is ours against the truth, in percent: negative is too little.
func (r row) err() float64 { return percent(r.ours(), r.truth()) }

func (r row) computeErr() float64 { return percent(r.estimate.ComputeBytes, r.tmp) }

func percent(a, b int64) float64 { return 100 * (float64(a) - float64(b)) / float64(b) }

var (
	contexts = []int{4096, 32768, 131072}
	kvTypes  = []string{"f16", "q8_0"}
)

// compare puts the formula beside the dry run for every model, context and cache type.
func compare(ctx context.Context, tool, dir string, models []shapes.Model) ([]row, error) {
	var rows []row
	for i, m := range models {
		path := filepath.Join(dir, fmt.Sprintf("%02d.gguf", i))
		got, err := compareOne(ctx, tool, path, m)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
		rows = append(rows, got...)
	}
	return rows, nil
}

func compareOne(ctx context.Context, tool, path string, m shapes.Model) ([]row, error) {
	if err := m.Write(path); err != nil {
		return nil, err
	}
	defer os.Remove(path)
	header, err := gguf.ReadFile(path)
	if err != nil {
		return nil, err
	}
	shape, err := survey.Shape(header)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, context := range contexts {
		for _, kv := range kvTypes {
			r := row{model: m.Name, arch: m.Arch, context: context, kv: kv}
			r.estimate = shape.Estimate(capability.Setting{Context: context, KVType: kv})
			if r.weights, r.cache, r.tmp, err = dryRun(ctx, tool, path, context, kv); err != nil {
				return nil, err
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// dryRun asks llama.cpp what it would allocate on the processor.
func dryRun(ctx context.Context, tool, path string, context int, kv string) (weights, cache, compute int64, err error) {
	plan, err := survey.PlanWith(ctx, tool, nil, path, capability.Setting{Context: context, KVType: kv})
	if err != nil {
		return 0, 0, 0, err
	}
	for _, p := range plan {
		if p.Device == "Host" {
			return p.WeightsBytes, p.ContextBytes, p.ComputeBytes, nil
		}
	}
	return 0, 0, 0, fmt.Errorf("the dry run has no figures for the processor: %+v", plan)
}
