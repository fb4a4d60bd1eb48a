//go:build !linux

package main

import (
	"fmt"
	"os"
)

// The figures about processes are read as Linux has them.
func main() {
	fmt.Fprintln(os.Stderr, "bench: only on Linux; «localllm bench --model MODEL» measures a model anywhere")
	os.Exit(1)
}
