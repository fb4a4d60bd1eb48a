//go:build unix

package e2e

import (
	"maps"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"localllm/internal/practice"
	"localllm/test/harness"
)

// An interrupted delegation ends at the engine too, and puts everything back.
func TestInterruptFreesTheEngineAndTheTree(t *testing.T) {
	home := harness.Home(t)
	m := &machine{t: t, project: t.TempDir(), env: harness.Env(t, home)}
	slow := harness.Model(t, practice.Script{{Say: strings.Repeat("words without end and without sense\n", 400)}}, practice.Options{Layers: 8, Width: 1024})
	while := []string{"--while-pid", strconv.Itoa(os.Getpid())}
	m.ok(append([]string{"enable", "--engine", "llama-server", "--model", slow, "--context", "16384"}, while...)...)
	t.Cleanup(func() { m.ok(append([]string{"disable"}, while...)...) })
	m.write(map[string]string{"notes.txt": "before\n"})
	before := m.tree()

	cmd := exec.Command(harness.Binary(t), "delegate", "write it", "--output-files", "notes.txt", "--json")
	cmd.Env, cmd.Dir = m.env, m.project
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	harness.Until(t, "the engine generates", 60*time.Second, func() bool { return m.working() > 0 })
	interrupted := time.Now()
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	harness.Until(t, "the slot is free", 10*time.Second, func() bool { return m.working() == 0 })
	if took := time.Since(interrupted); took > 5*time.Second { // one second on a quiet machine
		t.Errorf("the slot was busy for %v after the interrupt", took)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	if !maps.Equal(before, m.tree()) {
		t.Error("the tree is not as it was")
	}
}
