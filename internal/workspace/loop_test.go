//go:build unix

package workspace_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"localllm/delegate"
)

// loop is a tool loop that writes what it likes.
type loop struct {
	paths []string
	errs  map[string]error
}

func (l *loop) Work(_ context.Context, o delegate.WorkOrder) (delegate.WorkDone, error) {
	for _, p := range l.paths {
		l.errs[p] = o.Change.Write([]delegate.File{{Path: p, Body: "by the loop\n"}})
	}
	return delegate.WorkDone{}, nil
}

// What the tool loop thinks of by itself passes the same checks as a declared output, and is put back the same way.
func TestToolLoopWritesAreCheckedAndPutBack(t *testing.T) {
	r, outside := outsideRig(t)
	l := &loop{paths: []string{"a.txt", "made/up/x.txt", "a.txt"}, errs: map[string]error{}}
	bad := []string{"../outside/victim.txt", ".git/hooks/pre-commit", "plain/config", "out/a.txt", ".env", "hard.txt", "victim.txt", "sub", "/etc/x"}
	l.paths = append(l.paths, bad...)
	r.Worker = l
	before, theirs := photograph(t, r.root), photograph(t, outside)
	task := delegate.Task{Task: "t", Mode: delegate.ModeAgent, Verify: sh("test -f made/up/x.txt && exit 3; exit 1"), Attempts: 1}
	res := r.run(task)
	if res.Status != delegate.Failed || res.Verify.Exit != 3 || l.errs["a.txt"] != nil || l.errs["made/up/x.txt"] != nil {
		t.Errorf("%+v %v", res, l.errs)
	}
	for _, p := range bad {
		var refusal *delegate.Refusal
		if !errors.As(l.errs[p], &refusal) {
			t.Errorf("%s: %v", p, l.errs[p])
		}
	}
	same(t, "put back", before, photograph(t, r.root))
	same(t, "outside", theirs, photograph(t, outside))
	task.Verify = sh("test -f made/up/x.txt")
	if res := r.run(task); res.Status != delegate.Proven || len(res.Files) != 2 {
		t.Errorf("%+v", res)
	}
	if body, _ := os.ReadFile(filepath.Join(r.root, "made/up/x.txt")); string(body) != "by the loop\n" {
		t.Errorf("%q", body)
	}
	r.clean()
}
