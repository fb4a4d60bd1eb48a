//go:build unix

package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"localllm/delegate"
	"localllm/test/harness"
)

// What stands beside tasks holds for each of them, and what a task says itself goes first.
func TestABatchHandsItsFieldsOn(t *testing.T) {
	m := newMachine(t, harness.LlamaServer, script)
	m.write(map[string]string{"go.mod": "module demo\n\ngo 1.21\n", "sub/note.txt": "here\n"})
	before := m.tree()
	tasks := []delegate.Task{
		{Task: "TASK-PLAIN write it", OutputFiles: outputs("extra.go")},
		{Task: "TASK-PLAIN write it", OutputFiles: outputs("extra.go"), Workdir: "sub"},
	}

	plan, errs, code := m.input(map[string]any{"tasks": tasks, "dry_run": true}, "delegate", "--json")
	var planned delegate.BatchResult
	if err := json.Unmarshal([]byte(plan), &planned); err != nil || code != 0 || len(planned.Results) != 2 || planned.Results[1].Plan == nil {
		t.Fatalf("dry run: exit %d\n%s%s", code, plan, errs)
	}
	if !maps.Equal(before, m.tree()) {
		t.Fatal("a dry run wrote something")
	}

	out, errs, code := m.input(map[string]any{"tasks": tasks}, "delegate", "--json")
	var done delegate.BatchResult
	if err := json.Unmarshal([]byte(out), &done); err != nil || code != 0 || done.Succeeded != 2 {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	for _, name := range []string{"extra.go", "sub/extra.go"} {
		if _, err := os.Stat(filepath.Join(m.project, name)); err != nil {
			t.Errorf("%s was not written: %v", name, err)
		}
	}

	tasks[1].Profile = "nobody"
	out, errs, code = m.input(map[string]any{"tasks": tasks}, "delegate", "--json")
	var half delegate.BatchResult
	if err := json.Unmarshal([]byte(out), &half); err != nil || code != 3 || half.Succeeded != 1 || half.Results[1].Status != delegate.Refused {
		t.Errorf("a task's unknown profile: exit %d\n%s%s", code, out, errs)
	}
}
