package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"localllm/test/harness/engines"
	"localllm/test/shapes"
)

// The estimate is held to llama.cpp's own dry run, and gets no help from it.
func TestTheEstimateAgreesWithTheDryRun(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	paths, err := engines.Provide(ctx)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := compare(ctx, paths.LlamaFitParams, t.TempDir(), shapes.All())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if e := r.err(); e >= 3 || e <= -1 {
			t.Errorf("%s at %d, %s: weights and cache are off by %+.2f %%", r.model, r.context, r.kv, e)
		}
		if e := r.computeErr(); e > 25 || e < -25 {
			t.Errorf("%s at %d, %s: scratch space is off by %+.1f %%", r.model, r.context, r.kv, e)
		}
	}
	s := summarize(rows)
	t.Logf("%+v", s)
	if s.models < 14 || s.archs < 10 || s.rows != s.models*len(contexts)*len(kvTypes) {
		t.Errorf("%d models of %d architectures, %d comparisons", s.models, s.archs, s.rows)
	}
	if s.median >= 1 {
		t.Errorf("median error %.2f %%", s.median)
	}
	version, err := toolVersion(ctx, paths.LlamaFitParams)
	if err != nil {
		t.Fatal(err)
	}
	text := table(rows, version)
	for _, r := range rows {
		if !strings.Contains(text, "| "+r.model+" |") {
			t.Errorf("%s is missing from the table", r.model)
		}
	}
}

// The rules of further architectures, on small made-up models: there whole MiB are a large part, so the cache is held
// to what one MiB of rounding allows.
func TestTheRulesOfFurtherArchitectures(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	paths, err := engines.Provide(ctx)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := compare(ctx, paths.LlamaFitParams, t.TempDir(), shapes.Rules())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		cache := r.estimate.KVBytes + r.estimate.StateBytes
		// Two caches and the state are each rounded down.
		if d := cache - r.cache; d < -mib || d > 3*mib {
			t.Errorf("%s (%s) at %d, %s: cache and state %d MiB, the dry run says %d", r.arch, r.model, r.context, r.kv, cache/mib, r.cache/mib)
		}
		if d := r.estimate.WeightsBytes - r.weights; d < -mib || d > 2*mib {
			t.Errorf("%s at %d: weights %d MiB, the dry run says %d", r.arch, r.context, r.estimate.WeightsBytes/mib, r.weights/mib)
		}
		t.Logf("%-11s %6d %-4s cache and state %4d/%-4d scratch %4d/%-4d", r.arch, r.context, r.kv, cache/mib, r.cache/mib, r.estimate.ComputeBytes/mib, r.tmp/mib)
	}
}
