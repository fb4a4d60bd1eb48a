// Command accuracy measures how far the memory estimate is from llama.cpp's own dry run, over headers of published
// models, and writes the table into a document. It loads no model.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"localllm/test/harness/engines"
	"localllm/test/page"
	"localllm/test/shapes"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "accuracy:", err)
		os.Exit(1)
	}
}

func run() error {
	out := flag.String("o", "", "document whose generated part is replaced; empty: print the table")
	all := flag.Bool("all", false, "print every comparison")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	paths, err := engines.Provide(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "accuracy-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	rows, err := compare(ctx, paths.LlamaFitParams, dir, shapes.All())
	if err != nil {
		return err
	}
	if *all {
		printAll(os.Stdout, rows)
	}
	version, err := toolVersion(ctx, paths.LlamaFitParams)
	if err != nil {
		return err
	}
	text := table(rows, version)
	if *out == "" {
		_, err := fmt.Print(text)
		return err
	}
	return page.Put(*out, "estimate", text)
}
