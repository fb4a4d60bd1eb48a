//go:build unix

package llamaserver

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"localllm/internal/engine/enginetest"
	"localllm/internal/practice"
	"localllm/lifecycle"
	"localllm/test/harness"
)

func TestMain(m *testing.M) {
	enginetest.Play()
	code := harness.Run(m)
	if path, err := modelFile(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

var modelFile = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "localllm-llamaserver-*")
	if err != nil {
		return "", err
	}
	return dir + "/practice.gguf", practice.Write(dir+"/practice.gguf", enginetest.Script, practice.Options{})
})

func modelPath(t *testing.T) string {
	t.Helper()
	path, err := modelFile()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// environ is a child's environment: this one's, marked so that leftovers fail the run.
func environ(t *testing.T, extra ...string) []string {
	return append(append(os.Environ(), harness.Mark(t)), extra...)
}

func TestSuite(t *testing.T) {
	file := modelPath(t)
	spec := lifecycle.Spec{Engine: lifecycle.LlamaServer, Model: "practice", Path: file, Context: 16384, Slots: 1}
	huge := spec
	huge.Context = 32768
	huge.Slots = 192
	enginetest.Run(t, enginetest.Adapter{
		New: func(s enginetest.Settings) lifecycle.Engine {
			return New(Options{Binary: s.Binary, Stall: s.Stall, Port: s.Port})
		},
		Connect: func(e lifecycle.Endpoint) (enginetest.Client, error) { return Connect(e) },
		Binary:  harness.Engines(t).LlamaServer,
		Env:     environ(t),
		Spec:    spec, Huge: huge,
		Foreign: func(t *testing.T) func(*testing.T) {
			found := harness.StartFile(t, harness.LlamaServer, file, practice.Options{})
			return func(t *testing.T) {
				if got := found.Ask(enginetest.Short).Text; strings.TrimSpace(got) != enginetest.Words {
					t.Errorf("the found server answers %q", got)
				}
			}
		},
	})
}
