package treelock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"localllm/internal/journal"
	"localllm/internal/paths"
	"localllm/internal/treefile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func scene(t *testing.T) (paths.Layout, string) {
	home := t.TempDir()
	project := filepath.Join(home, "project")
	if err := errors.Join(os.Mkdir(project, 0o755), os.Symlink(project, filepath.Join(home, "alias"))); err != nil {
		t.Fatal(err)
	}
	return paths.Layout{Run: filepath.Join(home, "run"), State: filepath.Join(home, "state")}, project
}

func TestOneAtATimeThroughEveryPath(t *testing.T) {
	layout, project := scene(t)
	unlock, err := Tree{Layout: layout, Project: project}.Lock(t.Context(), func() { t.Error("it was free") })
	if err != nil {
		t.Fatal(err)
	}
	alias := Tree{Layout: layout, Project: filepath.Join(filepath.Dir(project), "alias")}
	var waited atomic.Bool
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := alias.Lock(ctx, func() { waited.Store(true) }); !errors.Is(err, context.DeadlineExceeded) || !waited.Load() {
		t.Errorf("%v, told %v", err, waited.Load())
	}
	got := make(chan func())
	go func() {
		next, err := alias.Lock(t.Context(), nil)
		if err != nil {
			t.Error(err)
		}
		got <- next
	}()
	select {
	case <-got:
		t.Fatal("two hold the tree")
	case <-time.After(30 * time.Millisecond):
	}
	unlock()
	(<-got)()
	other, err := Tree{Layout: layout, Project: t.TempDir()}.Lock(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	other()
	if _, err := (Tree{Layout: layout, Project: filepath.Join(project, "gone")}).Lock(t.Context(), nil); err == nil {
		t.Error("a project that is not there")
	}
}

// Nothing is proven on a tree that a crash left half written.
func TestACrashIsRepairedBeforeTheLockIsGiven(t *testing.T) {
	layout, project := scene(t)
	file := filepath.Join(project, "a")
	if err := os.WriteFile(file, []byte("before"), 0o644); err != nil {
		t.Fatal(err)
	}
	root, err := treefile.Open(project)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	j, err := journal.Begin(layout, project, "dead", root)
	if err == nil {
		err = errors.Join(j.Keep("a"), j.Put("a", []byte("ours")))
	}
	if err != nil {
		t.Fatal(err)
	}
	j.Abandon()
	var told journal.Repaired
	unlock, err := Tree{Layout: layout, Project: project, Repaired: func(r journal.Repaired) { told = r }}.Lock(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	if body, _ := os.ReadFile(file); string(body) != "before" || told.Changes != 1 {
		t.Errorf("%q, %+v", body, told)
	}
}
