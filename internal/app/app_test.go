package app

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"localllm/internal/journal"
	"localllm/internal/paths"
	"localllm/internal/request"
	"localllm/internal/tasks"
	"localllm/internal/treefile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T) *App {
	t.Helper()
	t.Setenv(paths.HomeVariable, t.TempDir())
	a, err := Open(Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// A delegation that was killed in the middle used to stay in the tree until the next delegation.
func TestAnyActionRepairsTheTree(t *testing.T) {
	a := open(t)
	project := t.TempDir()
	file := filepath.Join(project, "a.txt")
	if err := os.WriteFile(file, []byte("before\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	root, err := treefile.Open(project)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	j, err := journal.Begin(a.layout, project, "d-1", root)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Keep("a.txt"); err != nil {
		t.Fatal(err)
	}
	if err := j.Put("a.txt", []byte("half\n")); err != nil {
		t.Fatal(err)
	}
	j.Abandon()

	ctx := WithCall(t.Context(), &Call{Project: project})
	if _, err := a.Do(ctx, "status", &request.Status{}, nil); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(file); string(got) != "before\n" {
		t.Errorf("the file holds %q after the next action", got)
	}
}

func TestLongTextsAreKeptForAWeek(t *testing.T) {
	a := open(t)
	old, err := a.saveText("d-old", "long")
	if err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-textKeep - time.Hour)
	if err := os.Chtimes(old, past, past); err != nil {
		t.Fatal(err)
	}
	fresh, err := a.saveText("d-new", "long")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("the old text is still there (%v)", err)
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Error(err)
	}
}

// Clients without progress make a task of every call, and each is kept for a week.
func TestStatusListsFewEndedTasks(t *testing.T) {
	all := []tasks.State{}
	for range 50 {
		all = append(all, tasks.State{State: tasks.Done, Result: []byte("{}")}, tasks.State{State: tasks.Running})
	}
	under, ended := 0, 0
	for _, st := range recent(all) {
		if st.Result != nil {
			t.Error("a result is listed")
		}
		if st.Ended() {
			ended++
		} else {
			under++
		}
	}
	if under != 50 || ended != endedShown {
		t.Errorf("%d under way and %d ended", under, ended)
	}
}
