// Package engines provides the two real engines that the tests run against, in a private folder of the checkout. It never installs anything on the system.
package engines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"localllm/internal/filelock"
)

// OllamaVersion is the release that is built when PATH has no usable one.
const OllamaVersion = "0.34.2"

// recipe changes when what Provide leaves behind changes, so that an older folder is made anew.
const recipe = 1

// Paths are the programs, absolute. Each runs from any folder with any environment, and its pid is the engine's own.
type Paths struct {
	LlamaServer    string
	LlamaFitParams string
	Ollama         string
	// Versions are the lines that the programs print about themselves.
	Versions []string
}

type stamp struct {
	Recipe   int      `json:"recipe"`
	Ollama   string   `json:"ollama"`
	Versions []string `json:"versions"`
}

var once = sync.OnceValues(func() (Paths, error) {
	// A first run downloads and compiles; whoever waits for the lock waits as long.
	ctx, cancel := context.WithTimeout(context.Background(), 9*time.Minute)
	defer cancel()
	return ProvideHere(ctx, func(string) {})
})

// Provide returns the checkout's engines, and makes them first where they are missing. Processes that ask at the same time make them once.
func Provide(ctx context.Context) (Paths, error) {
	if err := ctx.Err(); err != nil {
		return Paths{}, err
	}
	return once()
}

// ProvideHere is Provide without a memory, and with a word about each step.
func ProvideHere(ctx context.Context, say func(string)) (Paths, error) {
	root, err := Checkout()
	if err != nil {
		return Paths{}, err
	}
	return ProvideIn(ctx, filepath.Join(root, ".engines"), say)
}

// ProvideIn makes the engines in folder, or returns at once what is there. It says each step in a few words.
func ProvideIn(ctx context.Context, folder string, say func(string)) (Paths, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return Paths{}, err
	}
	if paths, ok := present(folder); ok {
		return paths, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return Paths{}, err
	}
	held, err := filelock.Take(ctx, filepath.Join(folder, "lock"))
	if err != nil {
		return Paths{}, fmt.Errorf("waiting for another process that provides the engines: %w", err)
	}
	defer held.Release()
	if paths, ok := present(folder); ok {
		return paths, nil
	}
	return build(ctx, folder, say)
}

func build(ctx context.Context, folder string, say func(string)) (Paths, error) {
	_ = os.Remove(filepath.Join(folder, "stamp.json"))
	if err := os.MkdirAll(filepath.Join(folder, "bin"), 0o755); err != nil {
		return Paths{}, err
	}
	var wait sync.WaitGroup
	var llamaErr, ollamaErr error
	wait.Go(func() { llamaErr = provideLlama(ctx, folder, say) })
	wait.Go(func() { ollamaErr = provideOllama(ctx, folder, say) })
	wait.Wait()
	if err := oneSentence(llamaErr, ollamaErr); err != nil {
		return Paths{}, err
	}
	paths := pathsIn(folder)
	versions, err := assert(ctx, paths)
	if err != nil {
		return Paths{}, err
	}
	paths.Versions = versions
	text, err := json.MarshalIndent(stamp{Recipe: recipe, Ollama: OllamaVersion, Versions: versions}, "", "  ")
	if err != nil {
		return Paths{}, err
	}
	// Written last: a folder without it is unfinished.
	return paths, os.WriteFile(filepath.Join(folder, "stamp.json"), append(text, '\n'), 0o644)
}

func present(folder string) (Paths, bool) {
	var have stamp
	text, err := os.ReadFile(filepath.Join(folder, "stamp.json"))
	if err != nil || json.Unmarshal(text, &have) != nil || have.Recipe != recipe || have.Ollama != OllamaVersion {
		return Paths{}, false
	}
	paths := pathsIn(folder)
	for _, path := range []string{paths.LlamaServer, paths.LlamaFitParams, paths.Ollama} {
		if info, err := os.Stat(path); err != nil || info.Mode()&0o111 == 0 {
			return Paths{}, false
		}
	}
	paths.Versions = have.Versions
	return paths, true
}

func pathsIn(folder string) Paths {
	bin := filepath.Join(folder, "bin")
	return Paths{
		LlamaServer:    filepath.Join(bin, "llama-server"),
		LlamaFitParams: filepath.Join(bin, "llama-fit-params"),
		Ollama:         filepath.Join(bin, "ollama"),
	}
}

// oneSentence joins what could not be had; both halves often lack the same network.
func oneSentence(errs ...error) error {
	var parts []string
	for _, err := range errs {
		if err != nil {
			parts = append(parts, err.Error())
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return errors.New(strings.Join(parts, ", and "))
}

// Checkout is the folder of the module's go.mod, from wherever in it a test runs.
func Checkout() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module localllm\n") {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("finding the checkout of localllm: no go.mod of it above the working folder")
		}
		dir = parent
	}
}
