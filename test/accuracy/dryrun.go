package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

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

// dryRun asks llama.cpp what it would allocate: "Host 16420 3072 348" in MiB. Memory-mapped weights and the repacking
// for this processor would hide a part, so both are off.
func dryRun(ctx context.Context, tool, path string, context int, kv string) (weights, cache, compute int64, err error) {
	args := []string{"-m", path, "-c", strconv.Itoa(context), "-np", "1", "-lm", "none", "--no-repack", "-fa", "on",
		"-ctk", kv, "-ctv", kv, "--fit-print", "on"}
	cmd := exec.CommandContext(ctx, tool, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, 0, 0, fmt.Errorf("%s: %w: %s", filepath.Base(tool), err, lastLine(stderr.String()))
	}
	for _, line := range strings.Split(string(out), "\n") {
		fields := strings.Fields(line)
		if len(fields) != 4 || fields[0] != "Host" {
			continue
		}
		var n [3]int64
		for i := range n {
			if n[i], err = strconv.ParseInt(fields[i+1], 10, 64); err != nil {
				return 0, 0, 0, fmt.Errorf("reading %q: %w", line, err)
			}
		}
		return n[0] * mib, n[1] * mib, n[2] * mib, nil
	}
	return 0, 0, 0, fmt.Errorf("%s printed no figures: %q", filepath.Base(tool), out)
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndex(s, "\n")+1:]
}
