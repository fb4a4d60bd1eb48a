//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"localllm/delegate"
	"localllm/test/harness"
)

// A delegation is worth its result even where its line can't be written; it says so instead.
func TestALogThatCannotBeWritten(t *testing.T) {
	m := newMachine(t, harness.LlamaServer, script)
	m.write(map[string]string{"go.mod": "module demo\n\ngo 1.21\n"})
	log := filepath.Join(m.project, ".claude", "workflow", "delegation-log.jsonl")
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	for name, spoil := range map[string]func() error{
		"a link":   func() error { return os.Symlink(elsewhere, log) },
		"a folder": func() error { return os.Mkdir(log, 0o755) },
		"a link in the way": func() error {
			if err := os.Remove(filepath.Dir(log)); err != nil {
				return err
			}
			return os.Symlink(t.TempDir(), filepath.Dir(log))
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.RemoveAll(filepath.Join(m.project, ".claude")); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Dir(log), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := spoil(); err != nil {
				t.Fatal(err)
			}
			res, code := m.delegate(delegate.Task{Task: "TASK-PLAIN write it", OutputFiles: outputs("extra.go")})
			if res.Status != delegate.Unverified || code != 0 {
				t.Errorf("status %q, exit %d: %s", res.Status, code, res.Reason)
			}
			if !slices.ContainsFunc(res.Warnings, func(w string) bool { return strings.Contains(w, "log") }) {
				t.Errorf("nothing says that it was not logged: %q", res.Warnings)
			}
			if _, err := os.Lstat(elsewhere); err == nil {
				t.Error("the log was written through a link")
			}
		})
	}
}
