//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// command runs a command of the checkout.
func (b *box) command(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = b.root
	// The go command's own children end with it: they end their engines on SIGTERM.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, last(string(out), 400))
	}
	return string(out), nil
}

func last(s string, n int) string { return s[max(0, len(s)-n):] }

var overhead = regexp.MustCompile(`(?m): ([^:\n]+): median of 50: (\S+)$`)

// delegateOverhead is a delegation's own time around a model that answers at once; the test that holds it measures it.
func delegateOverhead(ctx context.Context, b *box) ([]row, error) {
	samples := map[string][]float64{}
	var order []string
	for range 3 {
		out, err := b.command(ctx, "test", "-count=1", "-v", "-run", "^TestOverhead$", "./internal/workspace")
		if err != nil {
			return nil, err
		}
		for _, m := range overhead.FindAllStringSubmatch(out, -1) {
			d, err := time.ParseDuration(m[2])
			if err != nil {
				return nil, err
			}
			if samples[m[1]] == nil {
				order = append(order, m[1])
			}
			samples[m[1]] = append(samples[m[1]], ms(d))
		}
	}
	if len(order) != 2 {
		return nil, fmt.Errorf("two figures were expected, not %q", order)
	}
	limits := []float64{5, 25}
	var rows []row
	for i, name := range order {
		rows = append(rows, row{Name: "delegate's own time: " + name, Unit: "ms", Samples: samples[name], Limit: limits[i], Note: "each run is a median of 50, repeated while over the limit, at most ten times"})
	}
	return rows, nil
}

var estimateErrors = regexp.MustCompile(`Median error ([\d.]+) %, worst ([\d.]+) %, most that was missing ([\d.]+) %.*worst error ([\d.]+) %`)

// estimate is the formula against llama.cpp's own dry run; its table is a part of the page of its own.
func estimate(ctx context.Context, b *box, results string) ([]row, error) {
	page := filepath.Join(b.dir, "estimate.md")
	if results != "" {
		abs, err := filepath.Abs(results)
		if err != nil {
			return nil, err
		}
		page = abs
	}
	if _, err := b.command(ctx, "run", "./test/accuracy", "-o", page); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return nil, err
	}
	m := estimateErrors.FindStringSubmatch(string(text))
	if m == nil {
		return nil, fmt.Errorf("no errors of the estimate in %s", page)
	}
	var rows []row
	for i, name := range []string{"estimate of weights and cache, median error", "worst error", "most that was missing", "scratch space, worst error"} {
		f, err := strconv.ParseFloat(m[i+1], 64)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{Name: name, Unit: "%", Samples: []float64{f}, Limit: []float64{1, 3, 1, 25}[i]})
	}
	return rows, nil
}

// reuse is the session of 20 tasks on both engines, against two other layouts; its table is a part of its own too.
func reuse(ctx context.Context, b *box, results string, control int) ([]row, error) {
	figures := filepath.Join(b.dir, "reuse.json")
	args := []string{"run", "./test/reuse", "-control", strconv.Itoa(control), "-json", figures, "-results", filepath.Join(b.dir, "reuse.md")}
	if results != "" {
		abs, err := filepath.Abs(results)
		if err != nil {
			return nil, err
		}
		args[len(args)-1] = abs
	}
	if _, err := b.command(ctx, args...); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(figures)
	if err != nil {
		return nil, err
	}
	var all []struct {
		Engine    string
		Layout    string
		Tasks     int
		Prefilled float64 `json:"prefilled_tokens"`
		Ideal     float64 `json:"ideal_tokens"`
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	limits := map[string]float64{"llama-server": 1.08, "ollama": 1.12}
	var rows []row
	for _, f := range all {
		if f.Tasks != all[0].Tasks { // the ideal is the whole session's
			continue
		}
		r := row{Name: "prefilled of the ideal, " + f.Engine + ", " + f.Layout, Unit: "times", Samples: []float64{f.Prefilled / f.Ideal}}
		if strings.HasPrefix(f.Layout, "this") {
			r.Limit = limits[f.Engine]
		}
		rows = append(rows, r)
	}
	return rows, nil
}
