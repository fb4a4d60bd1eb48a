package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// summary is what all comparisons come to.
type summary struct {
	models, archs, rows   int
	median, worst, lowest float64 // of weights and cache, in percent; lowest is the most that is missing
	compute               float64 // the worst error of the scratch space
}

func summarize(rows []row) summary {
	s := summary{rows: len(rows), lowest: math.Inf(1)}
	models, archs := map[string]bool{}, map[string]bool{}
	var errs []float64
	for _, r := range rows {
		models[r.model], archs[r.arch] = true, true
		e := math.Abs(r.err())
		errs = append(errs, e)
		s.worst = max(s.worst, e)
		s.lowest = min(s.lowest, r.err())
		s.compute = max(s.compute, math.Abs(r.computeErr()))
	}
	s.models, s.archs = len(models), len(archs)
	if len(errs) > 0 {
		slices.Sort(errs)
		s.median = errs[len(errs)/2]
	}
	return s
}

// table is the published page: a line for each model, its worst errors over all contexts and cache types.
func table(rows []row, version string) string {
	s := summarize(rows)
	var b strings.Builder
	fmt.Fprintf(&b, "Weights and cache by our formula, from the header alone, against `llama-fit-params` (%s, processor back end): "+
		"%d models of %d architectures at 4k, 32k and 128k tokens with f16 and q8_0 caches, %d comparisons. "+
		"Median error %.3f %%, worst %.3f %%, most that was missing %.3f %%. "+
		"The scratch space is compared with the processor back end's; worst error %.1f %%.\n\n",
		version, s.models, s.archs, s.rows, s.median, s.worst, max(0, -s.lowest), s.compute)
	b.WriteString("The tool prints whole MiB, rounded down: that is most of what is left. The headers are rebuilt from published configurations, with the tensor types of a Q4_K_M file.\n\n")
	b.WriteString("| model | architecture | weights, MiB (ours / dry run) | cache at 32k, f16, MiB | worst error, weights + cache | scratch at 32k, MiB | worst error, scratch |\n")
	b.WriteString("|---|---|---|---|---|---|---|\n")
	for i := 0; i < len(rows); {
		j := i
		for j < len(rows) && rows[j].model == rows[i].model {
			j++
		}
		b.WriteString(line(rows[i:j]))
		i = j
	}
	return b.String()
}

func line(rows []row) string {
	shown := rows[0]
	worst, compute := 0.0, 0.0
	for _, r := range rows {
		if r.context == 32768 && r.kv == "f16" {
			shown = r
		}
		if math.Abs(r.err()) > math.Abs(worst) {
			worst = r.err()
		}
		if math.Abs(r.computeErr()) > math.Abs(compute) {
			compute = r.computeErr()
		}
	}
	need := shown.estimate
	return fmt.Sprintf("| %s | %s | %d / %d | %d / %d | %+.3f %% | %d / %d | %+.1f %% |\n", shown.model, shown.arch,
		need.WeightsBytes/mib, shown.weights/mib, (need.KVBytes+need.StateBytes)/mib, shown.cache/mib, worst,
		need.ComputeBytes/mib, shown.tmp/mib, compute)
}

func printAll(w io.Writer, rows []row) {
	for _, r := range rows {
		fmt.Fprintf(w, "%-36s %-13s %6d %-4s  weights %6d/%-6d cache %6d/%-6d %+7.3f%%  scratch %4d/%-4d %+6.1f%%\n",
			r.model, r.arch, r.context, r.kv, r.estimate.WeightsBytes/mib, r.weights/mib,
			(r.estimate.KVBytes+r.estimate.StateBytes)/mib, r.cache/mib, r.err(), r.estimate.ComputeBytes/mib, r.tmp/mib, r.computeErr())
	}
}

var build = regexp.MustCompile(`build (\d+)`)

func toolVersion(ctx context.Context, tool string) (string, error) {
	out, err := exec.CommandContext(ctx, tool, "--version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("asking %s for its version: %w", tool, err)
	}
	m := build.FindSubmatch(out)
	if m == nil {
		return "", fmt.Errorf("no version in %q", out)
	}
	return "b" + string(m[1]), nil
}
