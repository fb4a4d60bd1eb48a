//go:build linux

package keeper_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"localllm/test/chaos/lab"
)

func contains(s string, all ...string) bool {
	for _, part := range all {
		if !strings.Contains(s, part) {
			return false
		}
	}
	return true
}

// figure reads a number of a process's status, over all its threads where perThread is set.
func figure(t *testing.T, pid int, name string, perThread bool) int {
	t.Helper()
	files := []string{fmt.Sprintf("/proc/%d/status", pid)}
	if perThread {
		files, _ = filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	}
	sum := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(data), name+":")
		var n int
		if _, err := fmt.Sscan(after, &n); err != nil {
			t.Fatalf("%s in %s: %v", name, file, err)
		}
		sum += n
	}
	return sum
}

func TestIdleCost(t *testing.T) {
	l := lab.New(t, false)
	a, b := l.Session(), l.Session()
	a.Enable("m")
	b.Enable("m")
	s := l.Status()
	pids := []int{s.Keeper.PID, s.Warden.PID}
	// The first garbage collection and the scavenger come within seconds of the start: then it is idle.
	const settle, watch = 6 * time.Second, 5 * time.Second
	<-time.After(settle)
	memory, before, after := 0, 0, 0
	for _, pid := range pids {
		memory += figure(t, pid, "RssAnon", false)
		before += figure(t, pid, "voluntary_ctxt_switches", true)
	}
	<-time.After(watch)
	for _, pid := range pids {
		after += figure(t, pid, "voluntary_ctxt_switches", true)
	}
	t.Logf("keeper and warden: %d KiB RssAnon, %d wake-ups in %v", memory, after-before, watch)
	if memory > 20<<10 && !raceDetector { // its shadow memory is no cost of ours
		t.Errorf("%d KiB of memory of their own, more than 20 MiB", memory)
	}
	if after-before > int(watch/time.Second) {
		t.Errorf("%d wake-ups in %v", after-before, watch)
	}
}
