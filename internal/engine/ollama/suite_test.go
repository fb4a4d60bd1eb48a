//go:build unix

package ollama

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"localllm/internal/engine/enginetest"
	"localllm/internal/practice"
	"localllm/lifecycle"
	"localllm/test/harness"
)

func TestMain(m *testing.M) {
	enginetest.Play()
	os.Exit(harness.Run(m))
}

// store makes a model store with the practice model under these names, and returns its folder.
func store(t *testing.T, names ...string) string {
	t.Helper()
	s := harness.Start(t, harness.Ollama, enginetest.Script, practice.Options{})
	for _, name := range names {
		s.Create(name, s.File, practice.Options{})
	}
	s.Stop()
	return filepath.Join(filepath.Dir(s.Log), "models")
}

// environ is a child's environment with a store, and no Ollama at its address.
func environ(t *testing.T, store string, extra ...string) []string {
	env := []string{harness.Mark(t), "OLLAMA_MODELS=" + store, fmt.Sprintf("OLLAMA_HOST=127.0.0.1:%d", harness.FreePort(t)), "HOME=" + t.TempDir()}
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "OLLAMA_") && !strings.HasPrefix(entry, "HOME=") {
			env = append(env, entry)
		}
	}
	return append(env, extra...)
}

func TestSuite(t *testing.T) {
	spec := lifecycle.Spec{Engine: lifecycle.Ollama, Model: "practice", Context: 16384, Slots: 1}
	huge := spec
	huge.Context = 32768
	huge.Slots = 192
	enginetest.Run(t, enginetest.Adapter{
		New: func(s enginetest.Settings) lifecycle.Engine {
			return New(Options{Binary: s.Binary, Stall: s.Stall, Port: s.Port})
		},
		Connect: func(e lifecycle.Endpoint) (enginetest.Client, error) { return Connect(e) },
		Binary:  harness.Engines(t).Ollama,
		Env:     environ(t, store(t)),
		Spec:    spec, Huge: huge,
		Foreign: func(t *testing.T) func(*testing.T) {
			found := harness.Start(t, harness.Ollama, enginetest.Script, practice.Options{})
			return func(t *testing.T) {
				if got := found.Ask(enginetest.Short).Text; strings.TrimSpace(got) != enginetest.Words {
					t.Errorf("the found server answers %q", got)
				}
			}
		},
	})
}
