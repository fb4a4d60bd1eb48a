//go:build linux

package workspace_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"localllm/internal/journal"
	"localllm/internal/proc"
	"localllm/test/harness"
)

// After SIGKILL in the middle of a verify, what the verify had started and its folder for temporary files are still
// there. The next start's repair ends and removes them, and then puts the files back.
func TestKilledInTheMiddleOfAVerify(t *testing.T) {
	r := chaosProject(t)
	was := photograph(t, r.root)
	noted := filepath.Join(r.root, "..", "noted")
	t.Setenv("LOCALLLM_TEST_VICTIM_VERIFY", `grep -q wrong one.txt || exit 1
touch "$TMPDIR/file"
(setsid sleep 300 >/dev/null 2>&1 & echo "$! $TMPDIR" > ../noted.new)
mv ../noted.new ../noted; exec sleep 300`)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "LOCALLLM_TEST_VICTIM="+r.root)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	harness.Until(t, "verify runs", 30*time.Second, func() bool { _, err := os.Stat(noted); return err == nil })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	text, err := os.ReadFile(noted)
	if err != nil {
		t.Fatal(err)
	}
	first, temp, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	pid, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	left, err := proc.Identify(pid)
	if err != nil {
		t.Fatalf("the kill left no process: %v", err)
	}
	if _, err := os.Stat(filepath.Join(temp, "file")); err != nil {
		t.Fatalf("the kill left no folder: %v", err)
	}
	done, err := journal.Repair(r.layout, r.root)
	if err != nil || done.Changes != 1 || len(done.Conflicts) > 0 {
		t.Errorf("%+v, %v", done, err)
	}
	if left.Alive() {
		t.Errorf("process %d of the verify still runs", pid)
	}
	if _, err := os.Stat(temp); err == nil {
		t.Errorf("%s is still there", temp)
	}
	same(t, "repaired", was, photograph(t, r.root))
}
