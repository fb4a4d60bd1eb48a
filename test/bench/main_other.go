//go:build !linux

// Command bench measures the whole product on Linux, where its figures about processes can be read.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "bench: only on Linux; «localllm bench --model MODEL» measures a model anywhere")
	os.Exit(1)
}
