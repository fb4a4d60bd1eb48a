package workspace_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"localllm/delegate"
	"localllm/internal/journal"
	"localllm/internal/paths"
	"localllm/internal/treelock"
	"localllm/internal/verify"
	"localllm/internal/workspace"
)

var chaosTask = delegate.Task{Task: "t", OutputFiles: out("one.txt", "bin/two.sh", "deep/er/three.txt", "four.txt"), Attempts: 3,
	Verify: sh("sleep 0.01; grep -q good one.txt && grep -q good bin/two.sh && grep -q good deep/er/three.txt && grep -q good four.txt")}

func chaosFiles(word string) string {
	return files("one.txt", word+" 1\n", "bin/two.sh", word+" 2\n", "deep/er/three.txt", word+" 3\n", "four.txt", word+" 4\n")
}

// victim is this test's other process: it delegates until it is killed.
func victim(root string) {
	layout := paths.Layout{Run: filepath.Join(root, "..", "run"), State: filepath.Join(root, "..", "state")}
	w, err := workspace.Open(layout, root, root)
	if err != nil {
		panic(err)
	}
	model := &script{answers: []answer{says(chaosFiles("wrong")), says(chaosFiles("worse")), says(chaosFiles("good"))}, limits: delegate.Limits{Context: 100_000, Loopback: true}}
	r := &delegate.Runner{Completer: model, Source: w, Tree: w, Verifier: verify.Folder{Dir: w.Dir(), Layout: layout}, Locker: treelock.Tree{Layout: layout, Project: root}}
	task := chaosTask
	if line := os.Getenv("LOCALLLM_TEST_VICTIM_VERIFY"); line != "" {
		task.Verify = sh(line)
	}
	fmt.Println("ready")
	res, err := r.Run(context.Background(), delegate.Job{ID: "chaos", Task: task})
	fmt.Println(res.Status, err)
}

func rounds(t *testing.T, usual int) int {
	t.Helper()
	if s := os.Getenv("LOCALLLM_CHAOS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return usual
}

func chaosProject(t *testing.T) *rig {
	r := newRig(t, map[string]string{"one.txt": "old 1\n", "bin/two.sh": "old 2\n", "four.txt": "old 4\n", "bystander.txt": "b\n"}, says(""))
	for name, mode := range map[string]os.FileMode{"one.txt": 0o640, "bin/two.sh": 0o755, "four.txt": 0o444} {
		p := filepath.Join(r.root, name)
		if err := os.Chmod(p, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(p, time.Time{}, time.Unix(1_600_000_000, 123_456_789)); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// delegateAndDie runs the victim and kills it after the given time; 0 lets it end.
func delegateAndDie(t *testing.T, root string, after time.Duration) (took time.Duration) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "LOCALLLM_TEST_VICTIM="+root)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	if line, err := lines.ReadString('\n'); line != "ready\n" {
		t.Fatalf("the victim said %q: %v", line, err)
	}
	started := time.Now()
	if after > 0 {
		timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
	}
	said, _ := lines.ReadString('\n')
	took = time.Since(started)
	_ = cmd.Wait()
	if after == 0 && said != "proven <nil>\n" {
		t.Fatalf("undisturbed, the victim said %q", said)
	}
	return took
}

// After SIGKILL at any moment, and the next start's repair, the four files are all as before or all as proven.
func TestKilledAtAnyMoment(t *testing.T) {
	r := chaosProject(t)
	whole := delegateAndDie(t, r.root, 0)
	proven := photographWithoutTimes(t, r.root)
	before, after, repaired := 0, 0, 0
	for i := range rounds(t, 20) {
		r := chaosProject(t)
		was := photograph(t, r.root)
		moment := time.Duration(rand.Int64N(int64(whole) + int64(whole)/10))
		delegateAndDie(t, r.root, max(moment, time.Microsecond))
		done, err := journal.Repair(r.layout, r.root)
		if err != nil || len(done.Conflicts) > 0 {
			t.Fatalf("round %d, killed after %v: %+v, %v", i, moment, done, err)
		}
		repaired += done.Changes
		if now := photographWithoutTimes(t, r.root); now["deep"] != "" && now["one.txt"] == proven["one.txt"] {
			same(t, fmt.Sprintf("round %d, killed after %v, as proven", i, moment), proven, now)
			after++
		} else {
			same(t, fmt.Sprintf("round %d, killed after %v, as before", i, moment), was, photograph(t, r.root))
			before++
		}
		r.clean()
		if t.Failed() {
			return
		}
	}
	if repaired == 0 {
		t.Errorf("none of %d kills hit a change under way: the moments are wrong", before+after)
	}
	t.Logf("a delegation takes %v; as before: %d, as proven: %d; repaired from the journal: %d", whole, before, after, repaired)
}

func photographWithoutTimes(t *testing.T, root string) map[string]string {
	pic := photograph(t, root)
	for name := range pic {
		p := filepath.Join(root, name)
		if info, err := os.Lstat(p); err == nil && info.Mode().IsRegular() {
			body, _ := os.ReadFile(p)
			pic[name] = info.Mode().String() + string(body)
		}
	}
	return pic
}
