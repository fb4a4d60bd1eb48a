// Command engines provides the real engines for the tests in .engines of the checkout, and prints what they are.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"localllm/test/harness/engines"
)

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	paths, err := engines.ProvideHere(ctx, func(step string) { fmt.Fprintln(os.Stderr, "engines: "+step) })
	if err != nil {
		fmt.Fprintf(os.Stderr, "engines: %v\n", err)
		return 1
	}
	for _, version := range paths.Versions {
		fmt.Println(version)
	}
	fmt.Println(filepath.Dir(paths.Ollama))
	return 0
}
