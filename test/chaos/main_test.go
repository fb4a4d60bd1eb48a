//go:build linux

// Package chaos kills everything that can be killed, with the real engines, and looks what is left.
package chaos

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"localllm/internal/practice"
	"localllm/test/chaos/lab"
)

func TestMain(m *testing.M) { lab.Main(m) }

var model = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "practice")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "practice.gguf")
	return path, practice.Write(path, practice.Script{{Say: "done"}}, practice.Options{})
})

// gguf is a practice model; it stays for the whole run of the test binary.
func gguf(t testing.TB) string {
	t.Helper()
	path, err := model()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
