//go:build linux

// Command bench measures the whole product with the real program and real engines, and writes what it finds into a
// page and a JSON file. It judges its figures only by the limits that are promised, and writes down those it misses.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"localllm/test/page"
)

func main() {
	results := flag.String("results", "", "write the tables into this page")
	figures := flag.String("json", "", "write the figures here")
	only := flag.String("only", "", "measure only this part; with -results the page's table gets this part only")
	model := flag.String("model", "", "a real model (GGUF file) for the rates of a GPU")
	control := flag.Int("control", 0, "play the slowest layout of the reuse session for so many tasks only; 0: all")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *results, *figures, *only, parts(*results, *model, *control)); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// part is one group of figures.
type part struct {
	name    string
	measure func(context.Context, *box) ([]row, error)
}

func parts(results, model string, control int) []part {
	return []part{
		{"capability", capabilityTime},
		{"mcp", firstAnswer},
		{"lifecycle", coldJoinedStop},
		{"idle", idleCost},
		{"delegate", delegateOverhead},
		{"stats", millionLines},
		{"gpu", func(ctx context.Context, b *box) ([]row, error) { return gpuRates(ctx, b, model) }},
		{"estimate", func(ctx context.Context, b *box) ([]row, error) { return estimate(ctx, b, results) }},
		{"reuse", func(ctx context.Context, b *box) ([]row, error) { return reuse(ctx, b, results, control) }},
	}
}

func run(ctx context.Context, results, figures, only string, all []part) error {
	b, err := newBox(ctx)
	if err != nil {
		return err
	}
	defer b.close()
	r := report{Date: time.Now().UTC(), Machine: machine(), Versions: b.versions(ctx), LoadBefore: load()}
	began := time.Now()
	for _, p := range all {
		if only != "" && only != p.name {
			continue
		}
		start := time.Now()
		fmt.Fprintf(os.Stderr, "== %s\n", p.name)
		rows, err := p.measure(ctx, b)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil { // the rest can be measured all the same; the page says what could not
			fmt.Fprintf(os.Stderr, "   %v\n", err)
			rows = append(rows, row{Part: p.name, Name: p.name, Problem: err.Error()})
		}
		for i := range rows {
			rows[i].Part = p.name
			fmt.Fprintf(os.Stderr, "   %s\n", rows[i])
		}
		r.Rows = append(r.Rows, rows...)
		fmt.Fprintf(os.Stderr, "   %.0f s\n", time.Since(start).Seconds())
	}
	r.Seconds, r.LoadAfter = time.Since(began).Seconds(), load()
	if figures != "" {
		data, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(figures, append(data, '\n'), 0o644); err != nil {
			return err
		}
	}
	if results == "" {
		_, err := fmt.Print(r.page())
		return err
	}
	return page.Put(results, "bench", r.page())
}
