package engines

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Ollama panics without a HOME. It finds its helpers in ../lib/ollama beside its own program, through links.
const ollamaWrapper = `#!/bin/sh
self=$(PATH=/usr/bin:/bin readlink -f -- "$0")
if [ -z "${HOME:-}" ]; then
	HOME=$(PATH=/usr/bin:/bin; getent passwd "$(id -u)" | cut -d: -f6)
	export HOME
fi
exec "${self%/bin/*}/ollama/bin/ollama" "$@"
`

func provideOllama(ctx context.Context, folder string, say func(string)) error {
	if fromPath(ctx, folder, "ollama") {
		say("ollama is on PATH")
		return nil
	}
	if runtime.GOOS != "linux" {
		return fmt.Errorf("put ollama %d.%d or newer on PATH through your package manager, since only on Linux it is built here", leastOllama[0], leastOllama[1])
	}
	home := filepath.Join(folder, "ollama")
	helpers := filepath.Join(home, "lib", "ollama")
	if err := os.MkdirAll(helpers, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"llama-server", "llama-quantize"} {
		if err := relink(filepath.Join("..", "..", "..", "bin", name), filepath.Join(helpers, name)); err != nil {
			return err
		}
	}
	program := filepath.Join(home, "bin", "ollama")
	if _, err := usableOllama(ctx, program); err != nil {
		say("building ollama " + OllamaVersion)
		if err := goInstall(ctx, filepath.Dir(program)); err != nil {
			return err
		}
	}
	return script(filepath.Join(folder, "bin", "ollama"), ollamaWrapper)
}

func goInstall(ctx context.Context, bin string) error {
	// go install alone leaves the version at 0.0.0, and clients decide by it.
	cmd := exec.CommandContext(ctx, "go", "install", "-trimpath",
		"-ldflags=-s -w -X=github.com/ollama/ollama/version.Version="+OllamaVersion, "github.com/ollama/ollama@v"+OllamaVersion)
	cmd.Dir = filepath.Dir(bin)
	cmd.Env = append(os.Environ(), "GOBIN="+bin, "GOFLAGS=", "GOWORK=off", "GOOS=", "GOARCH=")
	text, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fmt.Errorf("could not get ollama %s as a Go module (%s)", OllamaVersion, goSays(string(text), err))
}

func goSays(text string, err error) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "go: downloading") {
			return strings.TrimPrefix(line, "go: ")
		}
	}
	return err.Error()
}
