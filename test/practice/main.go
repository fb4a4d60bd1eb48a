// Command practice builds a model whose answers are a script's.
package main

import (
	"flag"
	"fmt"
	"os"

	"localllm/internal/practice"
)

func main() {
	os.Exit(run())
}

func run() int {
	var options practice.Options
	script := flag.String("script", "", "the script, a JSON list of {\"when\": [MARKER, …], \"say\": TEXT}")
	out := flag.String("o", "", "the GGUF file to write")
	modelfile := flag.String("modelfile", "", "also write Ollama's Modelfile for it here")
	flag.IntVar(&options.Layers, "layers", 0, "layers, from 3; those beyond add only cost")
	flag.IntVar(&options.Width, "width", 0, "width, from 384 in steps of 64; more adds only cost")
	flag.IntVar(&options.Context, "ctx", 0, "the context length that the model states (default 32768)")
	flag.BoolVar(&options.Tools, "tools", false, "a chat template with tools in the Hermes format")
	flag.BoolVar(&options.Think, "think", false, "a chat template with thinking")
	flag.Parse()
	if *script == "" || *out == "" || flag.NArg() > 0 {
		flag.Usage()
		return 2
	}
	if err := build(*script, *out, *modelfile, options); err != nil {
		fmt.Fprintf(os.Stderr, "practice: %v\n", err)
		return 1
	}
	return 0
}

func build(script, out, modelfile string, options practice.Options) error {
	text, err := os.ReadFile(script)
	if err != nil {
		return err
	}
	parsed, err := practice.Parse(text)
	if err != nil {
		return err
	}
	if err := practice.Write(out, parsed, options); err != nil {
		return err
	}
	if modelfile == "" {
		return nil
	}
	return os.WriteFile(modelfile, []byte(practice.Modelfile(out, options)), 0o644)
}
