package delegate

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// window counts a token for every four bytes, as an engine with a known context.
type window struct {
	Completer
	context int
	exact   bool
	counted int
	err     error
}

func (w *window) Count(_ context.Context, messages []Message, _ []Tool) (int, bool, error) {
	w.counted++
	return sizeOf(messages)/4 + 4*len(messages), w.exact, w.err
}

func (w *window) Limits() Limits { return Limits{Context: w.context} }

func shown(messages []Message) string {
	var b strings.Builder
	for _, m := range messages {
		b.WriteString("<<" + m.Role + ">>\n" + m.Content + "\n")
	}
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "prompts", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != got {
		t.Errorf("%s is another (%v); if it shall be: go test ./delegate -run TestPromptGolden -update\n%s", path, err, got)
	}
}

func build(t *testing.T, in Input) Prompt {
	t.Helper()
	p, err := Build(t.Context(), &window{context: 32768, exact: true}, in)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPromptGolden(t *testing.T) {
	main := File{"cmd/main.go", "package main\n\nfunc main() {}\n"}
	readme := File{"README.md", "# A\n\n```sh\nmake\n```\n"}
	project := "Go 1.26 module a.example/a.\r\nTests use the standard library."
	first := Input{Model: "qwen2.5-coder:7b", Project: project, Context: []File{main, readme},
		Task: Task{Task: "  Write run_test.go.\r\n", TaskType: "test"}, Outputs: []Output{{Path: "cmd/run_test.go", Description: "table\ntests"}}}
	first.Task.OutputFiles = []OutputFile{{Path: "cmd/run_test.go"}}
	p := build(t, first)
	golden(t, "first", shown(p.Messages))

	changed := main
	changed.Body = "package main\n\nfunc main() { run() }\n"
	second := first
	second.Context, second.Session = []File{changed}, p.Session
	second.Task = Task{Task: "Mend it.", TaskType: "fix", OutputFiles: []OutputFile{{Path: "cmd/main.go"}}}
	second.Outputs = []Output{{Path: "cmd/main.go", Exists: true, Body: changed.Body}}
	golden(t, "changed-output", shown(build(t, second).Messages))

	ask := Input{Model: "qwen3:8b", Context: []File{main}, Task: Task{Task: "What does it do?", TaskType: "ask"}}
	golden(t, "ask-qwen3", shown(build(t, ask).Messages))
	bare := Input{Model: "gpt-oss:20b", Task: Task{Task: "Say yes."}, Mode: ModeText}
	golden(t, "bare-gpt-oss", shown(build(t, bare).Messages))

	repair, err := p.Repair(t.Context(), &window{context: 32768}, first, "<think>x</think>### File: cmd/run_test.go\n```go\nx\n```\n", FailedTurn("go test ./...", "run_test.go:1:1: expected 'package'\n"))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "repair", shown(repair.Messages))
	if !strings.HasPrefix(shown(repair.Messages), shown(p.Messages)) {
		t.Error("a repair changed what was sent before")
	}
	rejected := RejectedTurn(&Rejection{Reason: "it is empty", Ask: askWhole})
	if rejected != "Your answer could not be used: it is empty.\n"+askWhole+"\n" {
		t.Errorf("%q", rejected)
	}
}

// Nothing volatile stands before anything stable: two tasks of one session share everything up to the task.
func TestPromptsOfASessionShareTheirPrefix(t *testing.T) {
	files := []File{{"a.go", "package a\n"}, {"b.go", "package b\n"}, {"c.go", "package c\n"}}
	var s Session
	last := ""
	for i, task := range []Task{{Task: "One.", TaskType: "generate"}, {Task: "Two.", TaskType: "test"}, {Task: "Three?", TaskType: "ask"}, {Task: "Four.", TaskType: "review", Mode: ModeText}} {
		in := Input{Model: "m", Task: task, Context: files, Session: s}
		if i == 2 {
			in.Context = []File{files[2], files[0]} // fewer, and in another order
		}
		p := build(t, in)
		stable, _, _ := strings.Cut(shown(p.Messages), "## Task")
		stable, _, _ = strings.Cut(stable, "Not for this task")
		if last != "" && stable != last {
			t.Errorf("task %d changed the prefix:\n%s\nwas\n%s", i, stable, last)
		}
		if warm := shown(p.Warm); !strings.HasPrefix(warm, strings.TrimSuffix(stable, "\n")) {
			t.Errorf("warming sends something else:\n%s", warm)
		}
		last, s = stable, p.Session
	}
}

func TestUnfit(t *testing.T) {
	in := Input{Task: Task{Task: "x"}, Mode: ModeFiles, Outputs: []Output{{Path: "o.go", Exists: true, Body: strings.Repeat("o", 400)}},
		Context: []File{{"small.go", strings.Repeat("s", 400)}, {"large.go", strings.Repeat("l", 40000)}, {"mid.go", strings.Repeat("m", 12000)}, {"o.go", strings.Repeat("o", 400)}}}
	_, err := Build(t.Context(), &window{context: 4096, exact: true}, in)
	var u *Unfit
	if !errors.As(err, &u) {
		t.Fatalf("error %v", err)
	}
	if len(u.Largest) != 3 || u.Largest[0].Path != "large.go" || u.Largest[1].Path != "mid.go" || u.Over() <= 0 {
		t.Errorf("%+v", u)
	}
	for _, part := range []string{"in a window of 4096", "leave out large.go (about", "over by"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
	if strings.Contains(err.Error(), "small.go") || strings.Contains(err.Error(), "the prompt does not fit: about") {
		t.Errorf("%q names more than is needed, or calls an exact number a guess", err)
	}
	if !strings.Contains((&Unfit{Prompt: 9, Answer: 1, Context: 5}).Error(), "about 9 tokens") {
		t.Error("an estimate is given out as a count")
	}
	if _, err := Build(t.Context(), &window{context: 0}, in); err != nil {
		t.Errorf("a window of unknown size: %v", err)
	}
	broken := errors.New("down")
	if _, err := Build(t.Context(), &window{err: broken}, in); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	p := build(t, in)
	if _, err := p.Repair(t.Context(), &window{context: p.Tokens + 50}, in, "x", "y"); !errors.As(err, &u) {
		t.Errorf("a repair without room: %v", err)
	}
	if _, err := p.Repair(t.Context(), &window{err: broken}, in, "", "y"); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

// A window that is full of what is out of date is laid out anew rather than refused.
func TestFullWindowIsRebuilt(t *testing.T) {
	var s Session
	rebuilt := 0
	w := &window{context: 8000, exact: true}
	for i := range 12 {
		body := strings.Repeat("x", 6000) + string(rune('a'+i)) + "\n"
		p, err := Build(t.Context(), w, Input{Task: Task{Task: "x"}, Mode: ModeText, Context: []File{{"a.go", body}, {"b.go", "package b\n"}}, Session: s})
		if err != nil {
			t.Fatalf("task %d: %v", i, err)
		}
		text := p.Messages[1].Content
		if !strings.Contains(text, body) || p.Tokens+256 > w.context {
			t.Fatalf("task %d: %d tokens, current version there: %v", i, p.Tokens, strings.Contains(text, body))
		}
		if p.Layout.Why == "rebuild" {
			rebuilt++
		}
		s = p.Session
	}
	if rebuilt == 0 || rebuilt > 11 {
		t.Errorf("rebuilt %d times", rebuilt)
	}
}

func TestEditIsForLargeFilesOnly(t *testing.T) {
	body := func(n int) Output { return Output{Path: "a.go", Exists: true, Body: strings.Repeat("x", n)} }
	for _, c := range []struct {
		name   string
		output Output
		limits Limits
		task   Task
		edit   bool
	}{
		{"small", body(1000), Limits{Context: 8192}, Task{}, false},
		{"new", Output{Path: "a.go"}, Limits{Context: 100}, Task{}, false},
		{"too long to decode", body(40000), Limits{Context: 1 << 20}, Task{}, true},
		{"too large for the window", body(12000), Limits{Context: 8192}, Task{}, true},
		{"over the call's limit", body(4000), Limits{}, Task{MaxTokens: 500}, true},
		{"over the endpoint's limit", body(4000), Limits{MaxTokens: 500}, Task{}, true},
	} {
		got := decideEdits(Input{Outputs: []Output{c.output}, Task: c.task}, c.limits)
		if got[0].Edit != c.edit {
			t.Errorf("%s: edit is %v", c.name, got[0].Edit)
		}
	}
	p := build(t, Input{Task: Task{Task: "x", MaxTokens: 300}, Mode: ModeFiles, Outputs: []Output{body(4000)}})
	if !strings.Contains(p.Messages[1].Content, "- a.go (exists; by edits)") || !p.Outputs[0].Edit {
		t.Error("the prompt does not ask for edits")
	}
}

func TestFamilies(t *testing.T) {
	for model, want := range map[string]Family{
		"qwen3:8b": {Name: "qwen3", NoThink: "/no_think"}, "qwen3-coder:30b": {Name: "qwen3-instruct"}, "Qwen3-30B-A3B-Instruct-2507.gguf": {Name: "qwen3-instruct"},
		"qwen3-30b-thinking": {Name: "reasoning", Budget: 4096}, "gpt-oss:20b": {Name: "gpt-oss", System: "Reasoning: low", Budget: 2048},
		"deepseek-r1:14b": {Name: "reasoning", Budget: 4096}, "qwen3.5:9b": {Name: "qwen3.5"}, "smollm3": {Name: "smollm3", NoThink: "/no_think"}, "devstral:24b": {Name: "plain"},
	} {
		if got := FamilyOf(model); got != want {
			t.Errorf("%s: %+v, want %+v", model, got, want)
		}
	}
	in := Input{Task: Task{Task: "x"}, Mode: ModeText, Model: "qwen3:8b", Think: true}
	if p := build(t, in); strings.Contains(shown(p.Messages), "no_think") {
		t.Error("thinking is asked for and switched off")
	}
	if answerNeed(in, nil) <= answerNeed(Input{}, nil) {
		t.Error("thinking gets no room")
	}
	for _, kind := range TaskTypes() {
		if instruction[kind] == "" || len(instruction[kind]) > 140 {
			t.Errorf("%s: %q", kind, instruction[kind])
		}
	}
}
