package app

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"localllm/delegate"
	"localllm/internal/hint"
)

// A batch's dry_run that was not handed on once wrote files.
func TestATaskOfABatchTakesWhatItLeavesOpenFromTheBatch(t *testing.T) {
	batch := delegate.Task{
		Verify: json.RawMessage(`"go test ./..."`), VerifyTimeoutS: 9, Attempts: 2, TimeoutS: 60, OnFailure: "keep", DryRun: true, Workdir: "sub",
		Profile: "team", Tier: "deep", Model: "m", ContextFiles: []string{"a.go"}, AllowPaths: []string{".mcp.json"}, Protect: []string{"p"}, TaskType: "fix",
		Background: true, MaxTokens: 100,
	}
	item := delegate.Task{Task: "x", OutputFiles: []delegate.OutputFile{{Path: "x.go"}}, Attempts: 1, Model: "own"}
	batch.Tasks = []delegate.Task{item}
	got := inherit(batch, item)
	want := batch
	want.Task, want.OutputFiles, want.Attempts, want.Model, want.Tasks, want.Background = "x", item.OutputFiles, 1, "own", nil, false
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	text := inherit(batch, delegate.Task{Task: "explain"})
	if text.Verify != nil || text.VerifyTimeoutS != 0 || text.Attempts != 2 {
		t.Errorf("a task without files took the verify: %+v", text)
	}
}

func TestABatchIsCheckedWhole(t *testing.T) {
	out := func(names ...string) []delegate.OutputFile {
		var list []delegate.OutputFile
		for _, n := range names {
			list = append(list, delegate.OutputFile{Path: n})
		}
		return list
	}
	for field, tasks := range map[string][]delegate.Task{
		"tasks[1].task":                 {{Task: "a"}, {Task: " "}},
		"tasks[1].output_files[1].path": {{Task: "a", OutputFiles: out("x")}, {Task: "b", OutputFiles: out("y", "./x")}},
		"tasks[0].task_type":            {{Task: "a", TaskType: "poem"}},
	} {
		_, err := spreadBatch(&delegate.Task{Tasks: tasks})
		var bad *delegate.FieldError
		if !errors.As(err, &bad) || bad.Field != field || strings.TrimSpace(bad.Do) == "" {
			t.Errorf("%s: %v", field, err)
		}
	}
	fine := &delegate.Task{Tasks: []delegate.Task{{Task: "a", OutputFiles: out("x"), Workdir: "one"}, {Task: "b", OutputFiles: out("x"), Workdir: "two"}}}
	if _, err := spreadBatch(fine); err != nil {
		t.Errorf("the same name in two folders: %v", err)
	}
}

func TestReadRootsHaveToBeThere(t *testing.T) {
	call := Call{Project: t.TempDir()}
	if err := os.Mkdir(filepath.Join(call.Project, "more"), 0o755); err != nil {
		t.Fatal(err)
	}
	for want, task := range map[string]delegate.Task{
		"":                       {ReadRoots: []string{"more", call.Project}},
		"read_roots[1]":          {ReadRoots: []string{"more", "none"}},
		"read_roots[0]":          {ReadRoots: []string{"more"}, Workdir: "more"},
		"tasks[1].read_roots[0]": {Tasks: []delegate.Task{{}, {ReadRoots: []string{"/no/such/folder"}}}},
		"tasks[0].workdir":       {Tasks: []delegate.Task{{Workdir: "none"}}},
	} {
		err := readRoots(call, &task)
		var field *delegate.FieldError
		if errors.As(err, &field) != (want != "") || field != nil && field.Field != want {
			t.Errorf("%v, want one of %q", err, want)
		}
	}
	// A batch's own are relative to the folder of each of its tasks.
	if err := os.Mkdir(filepath.Join(call.Project, "more", "lib"), 0o755); err != nil {
		t.Fatal(err)
	}
	batch := &delegate.Task{ReadRoots: []string{"lib"}, Tasks: []delegate.Task{{Task: "a", Workdir: "more"}}}
	batch, err := spreadBatch(batch)
	if err == nil {
		err = readRoots(call, batch)
	}
	if err != nil {
		t.Error(err)
	}
}

// A task of a batch that could not begin says so in the fields that its mode has.
func TestATaskThatWasNotBegun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	why := hint.New("no engine is enabled", "enable one")
	if r := notBegun(ctx, delegate.Task{}, why); r.OK || r.Status != delegate.Refused || r.Hint != "enable one" || r.Files == nil || r.Attempts == nil || r.AgentRun != nil {
		t.Errorf("%+v", r)
	}
	cancel()
	if r := notBegun(ctx, delegate.Task{Mode: delegate.ModeAgent}, why); r.Status != delegate.Cancelled || r.AgentRun == nil {
		t.Errorf("%+v", r)
	}
}
