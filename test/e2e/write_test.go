//go:build unix

package e2e

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"localllm/internal/practice"
	"localllm/internal/proc"
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
	// Where the tests run under nohup the program would inherit that SIGHUP is ignored, and rightly keep to it.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	defer signal.Stop(caught)
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

// An enable that is interrupted while it warms has started nothing.
func TestInterruptWhileWarmingLeavesNothing(t *testing.T) {
	home := harness.Home(t)
	m := &machine{t: t, project: t.TempDir(), env: harness.Env(t, home)}
	slow := harness.Model(t, practice.Script{{Say: "x"}}, practice.Options{Layers: 8, Width: 1024})
	m.write(map[string]string{"long.txt": strings.Repeat("some words of text that go on\n", 2500)})
	session := []string{"--while-pid", strconv.Itoa(os.Getpid())}
	cmd := exec.Command(harness.Binary(t), append([]string{"enable", "--engine", "llama-server", "--model", slow, "--context", "32768", "--warm-files", "long.txt"}, session...)...)
	cmd.Env, cmd.Dir = m.env, m.project
	seen := &proc.Tail{}
	cmd.Stderr = seen
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	harness.Until(t, "the engine reads what is to be warmed", 60*time.Second, func() bool { return strings.Contains(seen.String(), "tokens") })
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d, want 130\n%s", code, seen)
	}
	if out := m.ok("status", "--json"); !strings.Contains(out, `"state": "off"`) {
		t.Errorf("after the interrupt: %s", out)
		m.ok(append([]string{"disable"}, session...)...)
	}
}
