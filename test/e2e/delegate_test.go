//go:build unix

package e2e

import (
	"encoding/json"
	"errors"
	"maps"
	"os/exec"
	"strings"
	"testing"

	"localllm/delegate"
	"localllm/internal/practice"
	"localllm/test/harness"
)

func asExit(err error, target **exec.ExitError) bool { return errors.As(err, target) }

const (
	goodAdd  = "package demo\n\n// Add adds.\nfunc Add(a, b int) int { return a + b }\n"
	badAdd   = "package demo\n\n// Add adds.\nfunc Add(a, b int) int { return a + c }\n"
	addTest  = "package demo\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(2, 3) != 5 {\n\t\tt.Fatal(\"wrong sum\")\n\t}\n}\n"
	longFile = "package demo\n\n// A is one.\nfunc A() int { return 1 }\n\n// B is two.\nfunc B() int { return 2 }\n\n// C is three.\nfunc C() int { return 3 }\n"
)

func file(name, body string) string { return name + "\n```go\n" + body + "```\n" }

// Each task carries a marker of its own; the real compiler's «undefined: c» chooses the repaired answer.
var script = practice.Script{
	{Say: "no marker of the script was found\n"},
	{When: []string{"TASK-REPAIR"}, Say: file("add.go", badAdd)},
	{When: []string{"TASK-REPAIR", "undefined: c"}, Say: file("add.go", goodAdd)},
	{When: []string{"TASK-WRONG"}, Say: file("add.go", badAdd)},
	{When: []string{"TASK-GREEN"}, Say: file("doc.go", "// Package demo adds.\npackage demo\n")},
	{When: []string{"TASK-PLAIN"}, Say: file("extra.go", "package demo\n\nconst Extra = 1\n")},
	{When: []string{"TASK-LONG"}, Say: file("long.go", "package demo\n\n"+strings.Repeat("// line after line after line\n", 40))},
	{When: []string{"TASK-EMPTY"}, Say: "\n"},
	{When: []string{"TASK-INTENT"}, Say: "I will now write the file add.go for you.\n"},
	{When: []string{"TASK-PATH"}, Say: file("../outside.go", "package outside\n")},
	{When: []string{"TASK-ELIDE"}, Say: file("long_file.go", "package demo\n\n// A is one.\nfunc A() int { return 11 }\n\n// ... rest of the file unchanged ...\n\n// C is three.\nfunc C() int { return 3 }\n")},
	{When: []string{"TASK-ASK"}, Say: "It adds two numbers.\n"},
}

type expectation struct {
	name   string
	task   delegate.Task
	status string
	exit   int
	writes []string // files that the delegation may have changed
	tries  int
}

func verified(text string) json.RawMessage {
	raw, _ := json.Marshal(text)
	return raw
}

func outputs(names ...string) []delegate.OutputFile {
	list := make([]delegate.OutputFile, len(names))
	for i, n := range names {
		list[i].Path = n
	}
	return list
}

// The order matters: a proven file makes the later tasks' baseline green.
var expectations = []expectation{
	{"out of attempts puts everything back", delegate.Task{Task: "TASK-WRONG write Add", OutputFiles: outputs("add.go"), Verify: verified("go test ./..."), Attempts: 1}, delegate.Failed, 3, nil, 1},
	{"an intention is no file", delegate.Task{Task: "TASK-INTENT write Add", OutputFiles: outputs("add.go"), Verify: verified("go test ./..."), Attempts: 1}, delegate.Rejected, 3, nil, 1},
	{"an empty answer", delegate.Task{Task: "TASK-EMPTY write Add", OutputFiles: outputs("add.go"), Attempts: 1}, delegate.Rejected, 3, nil, 1},
	{"a wrong path", delegate.Task{Task: "TASK-PATH write Add", OutputFiles: outputs("add.go"), Attempts: 1}, delegate.Rejected, 3, nil, 1},
	{"an elision", delegate.Task{Task: "TASK-ELIDE change A", OutputFiles: outputs("long_file.go"), Attempts: 1}, delegate.Rejected, 3, nil, 1},
	{"a cut-off answer", delegate.Task{Task: "TASK-LONG write it", OutputFiles: outputs("long.go"), MaxTokens: 40, Attempts: 1}, delegate.Rejected, 3, nil, 1},
	{"outside of the project", delegate.Task{Task: "TASK-PLAIN write it", OutputFiles: outputs("../extra.go")}, delegate.Refused, 3, nil, 0},
	{"repaired after the real compiler's error", delegate.Task{Task: "TASK-REPAIR write Add", ContextFiles: []string{"add_test.go"}, OutputFiles: outputs("add.go"), Verify: verified("go test ./...")}, delegate.Proven, 0, []string{"add.go"}, 2},
	{"green before and after", delegate.Task{Task: "TASK-GREEN write the comment", OutputFiles: outputs("doc.go"), Verify: verified("go vet ./...")}, delegate.Unproven, 0, []string{"doc.go"}, 1},
	{"nothing to verify with", delegate.Task{Task: "TASK-PLAIN write it", OutputFiles: outputs("extra.go")}, delegate.Unverified, 0, []string{"extra.go"}, 1},
	{"an answer in words", delegate.Task{Task: "TASK-ASK what does Add do?", TaskType: "ask", ContextFiles: []string{"add.go"}}, delegate.Answered, 0, nil, 1},
}

func TestEveryOutcomeOnBothEngines(t *testing.T) {
	for _, kind := range harness.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			m := newMachine(t, kind, script)
			m.write(map[string]string{"go.mod": "module demo\n\ngo 1.21\n", "add_test.go": addTest, "long_file.go": longFile})
			for _, e := range expectations {
				t.Run(e.name, func(t *testing.T) { m.expect(t, e) })
			}
			m.checkStats(t)
		})
	}
}

func (m *machine) expect(t *testing.T, e expectation) {
	before := m.tree()
	res, code := m.delegate(e.task)
	if res.Status != e.status || code != e.exit || res.OK != (e.exit == 0) {
		t.Fatalf("status %q (exit %d, ok %v), want %q (%d): %s %+v", res.Status, code, res.OK, e.status, e.exit, res.Reason, res.Attempts)
	}
	if len(res.Attempts) != e.tries {
		t.Errorf("%d attempts, want %d: %+v", len(res.Attempts), e.tries, res.Attempts)
	}
	after := m.tree()
	for _, name := range e.writes {
		if after[name] == "" {
			t.Errorf("%s is not there", name)
		}
		delete(before, name)
		delete(after, name)
	}
	if !maps.Equal(before, after) {
		t.Errorf("the tree changed beside %v:\nbefore %v\nafter  %v", e.writes, before, after)
	}
	if e.tries > 0 && (res.Tokens.Prompt == 0 || res.Model == "") {
		t.Errorf("no counters of the engine: %+v on %q", res.Tokens, res.Model)
	}
	if e.status == delegate.Answered && !strings.Contains(res.Text, "adds two numbers") {
		t.Errorf("text %q", res.Text)
	}
	if e.status == delegate.Proven && (res.Verify.BaselineExit == 0 || res.Verify.Exit != 0 || res.Tokens.Cached == 0) {
		t.Errorf("proof %+v, tokens %+v", res.Verify, res.Tokens)
	}
}

// checkStats compares what stats says with what was done.
func (m *machine) checkStats(t *testing.T) {
	var s struct {
		Delegations int            `json:"delegations"`
		ByStatus    map[string]int `json:"by_status"`
	}
	if err := json.Unmarshal([]byte(m.ok("stats", "--json")), &s); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{}
	for _, e := range expectations {
		want[e.status]++
	}
	if s.Delegations != len(expectations) || !maps.Equal(s.ByStatus, want) {
		t.Errorf("stats: %d delegations, %v; want %d, %v", s.Delegations, s.ByStatus, len(expectations), want)
	}
}
