// Command reuse measures, on the real engines, how much of a session's prompts is prefilled again, and writes the table
// into docs/results.md. It decides nothing: the session and its limits are in this folder's test, which it runs.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

func main() {
	results := flag.String("results", "docs/results.md", "the page to write into")
	figures := flag.String("json", "", "also write the figures here")
	control := flag.Int("control", 0, "play the layout with the task first for so many tasks only; 0: all")
	flag.Parse()
	if err := run(*results, *figures, *control); err != nil {
		fmt.Fprintln(os.Stderr, "reuse:", err)
		os.Exit(1)
	}
}

func run(results, figures string, control int) error {
	args := []string{"test", "./test/reuse", "-count=1", "-timeout", "60m", "-v", "-run", "TestReuse", "-args", "-control", strconv.Itoa(control)}
	for name, path := range map[string]string{"-results": results, "-figures": figures} {
		if path == "" {
			continue
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			return fmt.Errorf("resolving %s: %w", path, err)
		}
		args = append(args, name, abs)
	}
	cmd := exec.Command("go", args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("measuring: %w", err)
	}
	return nil
}
