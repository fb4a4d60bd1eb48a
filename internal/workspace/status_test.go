package workspace_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"localllm/delegate"
	"localllm/test/harness"
)

func TestStatuses(t *testing.T) {
	tree := map[string]string{"go.mod": "module m\n\ngo 1.26\n", "calc.go": "package m\n\nfunc Add(a, b int) int { return a - b }\n", "note.txt": "old\n",
		"calc_test.go": "package m\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(1, 2) != 3 {\n\t\tt.Fatal(Add(1, 2))\n\t}\n}\n"}
	good := files("calc.go", "package m\n\nfunc Add(a, b int) int { return a + b }\n")
	wrong := files("calc.go", "package m\n\nfunc Add(a, b int) int { return a + b + undefined }\n")
	goTest := delegate.Task{Task: "mend Add", OutputFiles: out("calc.go"), Verify: sh("go test ./...")}
	note := delegate.Task{Task: "write it", OutputFiles: out("note.txt")}
	rows := []struct {
		name    string
		task    func(*delegate.Task)
		base    delegate.Task
		answers []answer
		status  string
		tries   int
		changed bool
		hint    string
	}{
		{name: "wrong at first, repaired after the compiler's error", base: goTest, answers: []answer{says(wrong), says(good)}, status: delegate.Proven, tries: 2, changed: true},
		{name: "the same with one attempt", base: goTest, task: func(t *delegate.Task) { t.Attempts = 1 }, answers: []answer{says(wrong)}, status: delegate.Failed, tries: 1},
		{name: "kept when asked", base: goTest, task: func(t *delegate.Task) { t.Attempts = 1; t.OnFailure = "keep" }, answers: []answer{says(wrong)}, status: delegate.Failed, tries: 1, changed: true},
		{name: "green before and after", base: goTest, task: func(t *delegate.Task) { t.Verify = sh("test -f go.mod") }, answers: []answer{says(good)}, status: delegate.Unproven, tries: 1, changed: true, hint: "green before"},
		{name: "no verify", base: note, answers: []answer{says(files("note.txt", "new\n"))}, status: delegate.Unverified, tries: 1, changed: true},
		{name: "cut off", base: note, answers: []answer{cut("### File: note.txt\n```\nne")}, status: delegate.Rejected, tries: 2},
		{name: "empty", base: note, answers: []answer{says("")}, status: delegate.Rejected, tries: 3},
		{name: "an intention", base: note, answers: []answer{says("I will now write note.txt for you.")}, status: delegate.Rejected, tries: 3},
		{name: "a wrong path", base: note, answers: []answer{says(files("other.txt", "new\n", "third.txt", "x\n"))}, status: delegate.Rejected, tries: 3},
		{name: "an elision", base: goTest, answers: []answer{says(files("calc.go", "package m\n\n// ... rest of the code unchanged\n"))}, status: delegate.Rejected, tries: 3},
		{name: "rejected, then right", base: goTest, answers: []answer{says(""), says(good)}, status: delegate.Proven, tries: 2, changed: true},
		{name: "verify does not exist", base: goTest, task: func(t *delegate.Task) { t.Verify = sh("no-such-program --x") }, answers: []answer{says(good)}, status: delegate.Refused, hint: "command that exists"},
		{name: "verify does not exist, as argv", base: goTest, task: func(t *delegate.Task) { t.Verify = []byte(`["no-such-program"]`) }, answers: []answer{says(good)}, status: delegate.Refused, hint: "command that exists"},
		{name: "baseline takes too long", base: note, task: func(t *delegate.Task) { t.Verify = sh("sleep 60"); t.VerifyTimeoutS = 1 }, answers: []answer{says(files("note.txt", "new\n"))}, status: delegate.Refused, hint: "verify_timeout_s"},
		{name: "verify is what is written", base: note, task: func(t *delegate.Task) { t.OutputFiles = out("run.sh"); t.Verify = sh("./run.sh") },
			answers: []answer{says(files("run.sh", "#!/bin/sh\nexit 0\n"))}, status: delegate.Proven, tries: 1, changed: true},
		{name: "hangs after the change", base: note, task: func(t *delegate.Task) {
			t.Verify = sh("grep -q new note.txt && sleep 60; false")
			t.VerifyTimeoutS, t.Attempts = 3, 1
		}, answers: []answer{says(files("note.txt", "new\n"))}, status: delegate.Failed, tries: 1},
		{name: "only lists tests", base: note, task: func(t *delegate.Task) { t.Verify = sh("grep -q new note.txt # pytest --collect-only") }, answers: []answer{says(files("note.txt", "new\n"))}, status: delegate.Unproven, tries: 1, changed: true},
		{name: "green by a test that was changed", base: note, task: func(t *delegate.Task) {
			t.Verify = sh("grep -q new note.txt || exit 1; echo '// easier' >> calc_test.go")
		}, answers: []answer{says(files("note.txt", "new\n"))}, status: delegate.Failed, tries: 1, changed: true},
		{name: "text", base: delegate.Task{Task: "what is it?", ContextFiles: []string{"calc.go"}}, answers: []answer{says("An adder.")}, status: delegate.Answered, tries: 1},
		{name: "a text that is cut", base: delegate.Task{Task: "what is it?"}, answers: []answer{cut("An add")}, status: delegate.Rejected, tries: 2},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, tree, row.answers...)
			if row.task != nil {
				row.task(&row.base)
			}
			before := photograph(t, r.root)
			res := r.run(row.base)
			if res.Status != row.status || res.OK != delegate.OK(row.status) || len(res.Attempts) != row.tries || !strings.Contains(res.Hint, row.hint) {
				t.Errorf("%s with %d attempts, hint %q: %+v", res.Status, len(res.Attempts), res.Hint, res)
			}
			if !row.changed {
				same(t, row.name, before, photograph(t, r.root))
				if len(res.Files) > 0 {
					t.Errorf("files %v", res.Files)
				}
			}
			if len(r.log.entries) != 1 || r.log.entries[0].Result.Status != row.status {
				t.Errorf("the log: %+v", r.log.entries)
			}
			r.clean()
		})
	}
}

func TestRepairIsAnAppendedTurnWithThePackedError(t *testing.T) {
	r := newRig(t, map[string]string{"a.txt": "old\n"}, says(files("a.txt", "wrong\n")), says(files("a.txt", "good\n")))
	res := r.run(delegate.Task{Task: "t", OutputFiles: out("a.txt"), Verify: sh(`grep -q good a.txt || { echo "$PWD/a.txt:1:1: not good"; exit 3; }`)})
	if res.Status != delegate.Proven || res.Verify.BaselineExit != 3 || res.Verify.Exit != 0 || res.Files[0].Change != "modified" || res.Files[0].Added != 1 || res.Files[0].Removed != 1 {
		t.Fatalf("%+v %+v", res, res.Verify)
	}
	first, second := r.script.requests[0].Messages, r.script.requests[1].Messages
	if len(second) != len(first)+2 {
		t.Fatalf("%d turns after %d", len(second), len(first))
	}
	for i := range first {
		if first[i].Content != second[i].Content {
			t.Errorf("turn %d was laid out anew", i)
		}
	}
	if last := second[len(second)-1].Content; !strings.Contains(last, "\na.txt:1:1: not good\n") || strings.Contains(last, r.root) {
		t.Errorf("the repair's turn: %s", last)
	}
}

func TestFreshSampleAfterTwoRepairs(t *testing.T) {
	r := newRig(t, map[string]string{"a.txt": "old\n"}, says(files("a.txt", "wrong\n")))
	r.run(delegate.Task{Task: "t", OutputFiles: out("a.txt"), Verify: sh("grep -q good a.txt"), Attempts: 5})
	var turns []int
	var heat []float64
	for _, q := range r.script.requests {
		turns, heat = append(turns, len(q.Messages)), append(heat, q.Temperature)
	}
	if !slices.Equal(turns, []int{2, 4, 6, 2, 4}) || heat[2] >= heat[3] || heat[0] != heat[2] {
		t.Errorf("turns %v, temperatures %v", turns, heat)
	}
}

func TestEndedFromOutside(t *testing.T) {
	tree := map[string]string{"a.txt": "old\n"}
	task := delegate.Task{Task: "t", OutputFiles: out("a.txt", "new/folder/b.txt"), Verify: sh("grep -q new a.txt || exit 1; touch ../seen; sleep 60")}
	reply := says(files("a.txt", "new\n", "new/folder/b.txt", "b\n"))
	hang := func(ctx context.Context, _ delegate.Request) (delegate.Completion, error) {
		<-ctx.Done()
		return delegate.Completion{}, ctx.Err()
	}
	t.Run("cancelled while verify runs", func(t *testing.T) {
		r := newRig(t, tree, reply)
		before := photograph(t, r.root)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan string, 1)
		go func() {
			res, err := r.Run(ctx, delegate.Job{ID: "c", Task: task})
			if err == nil && res.Status == delegate.Cancelled {
				ended <- ""
				return
			}
			ended <- fmt.Sprintf("%v %+v", err, res)
		}()
		harness.Until(t, "verify runs", 20*time.Second, func() bool { _, err := os.Stat(filepath.Join(r.root, "..", "seen")); return err == nil })
		cancel()
		select {
		case trouble := <-ended:
			if trouble != "" {
				t.Fatal(trouble)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("still there 20 s after the cancel")
		}
		same(t, "cancelled", before, photograph(t, r.root))
		r.clean()
	})
	t.Run("time is up while it generates", func(t *testing.T) {
		r := newRig(t, tree, hang)
		before := photograph(t, r.root)
		task := task
		task.TimeoutS = 1
		if res := r.run(task); res.Status != delegate.TimedOut || len(r.log.entries) != 1 {
			t.Fatalf("%+v", res)
		}
		same(t, "timed out", before, photograph(t, r.root))
	})
}

func TestSomebodyElseEdits(t *testing.T) {
	task := delegate.Task{Task: "t", OutputFiles: out("a.txt"), Verify: sh("grep -q good a.txt"), Attempts: 1}
	t.Run("while the answer is written", func(t *testing.T) {
		r := newRig(t, map[string]string{"a.txt": "old\n"})
		edit := func(ctx context.Context, q delegate.Request) (delegate.Completion, error) {
			r.put("a.txt", "theirs\n")
			return says(files("a.txt", "good\n"))(ctx, q)
		}
		r.script.answers = []answer{edit}
		res := r.run(task)
		if res.Status != delegate.Failed || !slices.Equal(res.Conflicts, []string{"a.txt"}) {
			t.Fatalf("%+v", res)
		}
		if body, _ := os.ReadFile(filepath.Join(r.root, "a.txt")); string(body) != "theirs\n" {
			t.Errorf("their text became %q", body)
		}
		// With an attempt left the prompt is made anew from their text.
		r.put("a.txt", "old\n")
		r.script.requests, r.script.answers = nil, []answer{edit, says(files("a.txt", "good\n"))}
		task := task
		task.Attempts = 2
		if res := r.run(task); res.Status != delegate.Proven || !strings.Contains(r.script.requests[1].Messages[1].Content, "theirs") {
			t.Errorf("%+v", res)
		}
		r.clean()
	})
	t.Run("while verify runs", func(t *testing.T) {
		r := newRig(t, map[string]string{"a.txt": "old\n"}, says(files("a.txt", "wrong\n")))
		task := task
		task.Verify = sh("grep -q old a.txt || echo theirs > a.txt; false")
		res := r.run(task)
		if res.Status != delegate.Failed || !slices.Equal(res.Conflicts, []string{"a.txt"}) {
			t.Fatalf("%+v", res)
		}
		if body, _ := os.ReadFile(filepath.Join(r.root, "a.txt")); string(body) != "theirs\n" {
			t.Errorf("their text became %q", body)
		}
		if saved, _ := os.ReadFile(filepath.Join(r.layout.State, "saved", "t1", "a.txt")); string(saved) != "old\n" {
			t.Errorf("the earlier form was saved as %q", saved)
		}
		r.clean()
	})
}
