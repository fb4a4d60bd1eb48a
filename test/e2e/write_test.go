package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"os"
	"os/exec"
	"path/filepath"

	"localllm/internal/practice"
	"localllm/test/harness"
)

// A result holds only the first 16 KB of a text, and write --stdout used to print just those.
func TestWriteToStdoutIsWhole(t *testing.T) {
	body := strings.Repeat("x = 1\n", 4000)
	m := newMachine(t, harness.LlamaServer, practice.Script{{Say: "```python\n" + body + "```\n"}})
	if got := m.ok("write", "--spec", "many lines", "--stdout"); got != body {
		t.Errorf("%d bytes, want %d; they end in %q", len(got), len(body), got[max(0, len(got)-60):])
	}
}

// A terminal that is closed sends SIGHUP: what was under way is put back before the program ends.
func TestHangUpPutsBack(t *testing.T) {
	m := newMachine(t, harness.LlamaServer, practice.Script{{Say: "a.txt\n```text\nnew\n```\n"}})
	m.write(map[string]string{"a.txt": "old\n"})
	cmd := exec.Command(harness.Binary(t), "delegate", "write it", "--output-files", "a.txt", "--verify", "grep -q new a.txt && exec sleep 60")
	cmd.Env, cmd.Dir = m.env, m.project
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := func() string {
		got, _ := os.ReadFile(filepath.Join(m.project, "a.txt"))
		return string(got)
	}
	harness.Until(t, "the answer is being verified", 60*time.Second, func() bool { return read() == "new\n" })
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	if got := read(); got != "old\n" {
		t.Errorf("the file holds %q", got)
	}
}
