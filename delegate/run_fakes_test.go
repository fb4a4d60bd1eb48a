package delegate_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"localllm/delegate"
)

// memory is a tree without a disk. Its faults are set by name of the method.
type memory struct {
	files  map[string]string
	faults map[string]error
	log    []string // what was done, in order

	before    map[string]string // of the open change
	conflicts []string
}

func (m *memory) Admit(outputs []delegate.OutputFile, _ []string) ([]delegate.Output, error) {
	var out []delegate.Output
	for _, o := range outputs {
		body, ok := m.files[o.Path]
		out = append(out, delegate.Output{Path: o.Path, Exists: ok, Body: body})
	}
	return out, m.faults["admit"]
}

func (m *memory) Begin(string, []delegate.Output, []string) (delegate.Change, error) {
	m.before = maps.Clone(m.files)
	return m, m.faults["begin"]
}

func (m *memory) Stamp(patterns []string) (map[string]string, error) {
	out := map[string]string{}
	for _, p := range patterns {
		if body, ok := m.files[p]; ok {
			out[p] = body
		}
	}
	return out, m.faults["stamp"]
}

func (m *memory) Write(files []delegate.File) error {
	m.log = append(m.log, "write")
	if err := m.faults["write"]; err != nil {
		return err
	}
	for _, f := range files {
		m.files[f.Path] = f.Body
	}
	return nil
}

func (m *memory) Undo() ([]string, error) {
	m.log = append(m.log, "undo")
	m.files = maps.Clone(m.before)
	return m.conflicts, m.faults["undo"]
}

func (m *memory) Saved() string { return "/saved" }
func (m *memory) Diff() string  { return "the diff" }

func (m *memory) Keep() ([]delegate.FileChange, error) {
	m.log = append(m.log, "keep")
	if err := m.faults["keep"]; err != nil {
		return nil, err
	}
	var out []delegate.FileChange
	for _, p := range slices.Sorted(maps.Keys(m.files)) {
		if m.before[p] != m.files[p] {
			out = append(out, delegate.FileChange{Path: p, Change: "modified"})
		}
	}
	return out, nil
}

func (m *memory) Lock(ctx context.Context, waiting func()) (func(), error) {
	m.log = append(m.log, "lock")
	waiting()
	return func() { m.log = append(m.log, "unlock") }, m.faults["lock"]
}

func (m *memory) Gather(context.Context, delegate.Task) (delegate.Gathered, error) {
	g := delegate.Gathered{Warnings: []string{"one was left out"}}
	if body, ok := m.files["shown.txt"]; ok {
		g.Files = []delegate.File{{Path: "shown.txt", Body: body}}
	}
	return g, m.faults["gather"]
}

// checker answers each run of verify by the next of its outcomes, and by the last one from there on.
type checker struct {
	outcomes []delegate.Outcome
	runs     int
	state    string
	check    error
	err      error
	tree     *memory
	during   func(run int) // what else happens while it runs
}

func (c *checker) Check(delegate.Command) error       { return c.check }
func (c *checker) Fingerprint(context.Context) string { return c.state }
func red(output string) delegate.Outcome              { return delegate.Outcome{Exit: 1, Output: output} }
func green(output string) delegate.Outcome            { return delegate.Outcome{Output: output} }
func outcomes(o ...delegate.Outcome) *checker         { return &checker{outcomes: o, state: "s"} }
func (c *checker) Run(context.Context, delegate.Command) (delegate.Outcome, error) {
	if c.tree != nil {
		c.tree.log = append(c.tree.log, "verify")
	}
	if c.during != nil {
		c.during(c.runs)
	}
	o := c.outcomes[min(c.runs, len(c.outcomes)-1)]
	c.runs++
	return o, c.err
}

// talker is a model that answers by a list, or by a function.
type talker struct {
	mu       sync.Mutex
	answers  []string
	finish   string
	do       func(context.Context, delegate.Request) (delegate.Completion, error)
	requests []delegate.Request
	limits   delegate.Limits
	counted  func(n int) int // what the engine will say of n tokens
}

func tokens(m []delegate.Message) int {
	n := 0
	for _, x := range m {
		n += len(x.Content)
	}
	return n
}

func (k *talker) Count(_ context.Context, m []delegate.Message, _ []delegate.Tool) (int, bool, error) {
	return tokens(m), true, nil
}

func (k *talker) Limits() delegate.Limits { return k.limits }

func (k *talker) Complete(ctx context.Context, r delegate.Request) (delegate.Completion, error) {
	k.mu.Lock()
	n := len(k.requests)
	k.requests = append(k.requests, r)
	k.mu.Unlock()
	if r.Progress != nil {
		r.Progress(delegate.Generating{Phase: "generating", OutputTokens: 1})
	}
	if k.do != nil {
		return k.do(ctx, r)
	}
	c := delegate.Completion{Text: k.answers[min(n, len(k.answers)-1)], Finish: delegate.FinishStop, Decode: time.Second, Tokens: delegate.Tokens{Prompt: tokens(r.Messages), Generated: 10}}
	if k.finish != "" {
		c.Finish = k.finish
	}
	if k.counted != nil {
		c.Tokens.Prompt = k.counted(c.Tokens.Prompt)
	}
	return c, nil
}

type lines struct {
	entries []delegate.Entry
	err     error
}

func (l *lines) Delegation(e delegate.Entry) error { l.entries = append(l.entries, e); return l.err }

type bench struct {
	*delegate.Runner
	tree   *memory
	verify *checker
	model  *talker
	log    *lines
	phases []string
}

func newBench(v *checker, answers ...string) *bench {
	b := &bench{tree: &memory{files: map[string]string{"a.txt": "old\n"}, faults: map[string]error{}}, verify: v, log: &lines{},
		model: &talker{answers: answers, limits: delegate.Limits{Context: 100_000, Slots: 1, Loopback: true, Engine: "fake", Model: "fake-1"}}}
	v.tree = b.tree
	b.Runner = &delegate.Runner{Completer: b.model, Source: b.tree, Tree: b.tree, Verifier: v, Locker: b.tree, Log: b.log, Score: scored}
	return b
}

func (b *bench) run(t *testing.T, task delegate.Task) delegate.Result {
	t.Helper()
	res, err := b.Run(t.Context(), delegate.Job{ID: "id", Task: task, Slot: -1, Progress: func(u delegate.Update) { b.phases = append(b.phases, u.Phase) }})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func block(path, body string) string { return "### File: " + path + "\n```\n" + body + "```\n" }

var (
	newA     = block("a.txt", "new\n")
	writeA   = delegate.Task{Task: "t", OutputFiles: []delegate.OutputFile{{Path: "a.txt"}}, Verify: []byte(`"check"`)}
	errFault = errors.New("a fault of the disk")
)

func (b *bench) did() string { return strings.Join(b.tree.log, " ") }

// scored is the advice for a task whose prompt was made, and another for one that never came so far.
func scored(_ delegate.Task, prompt int) float64 {
	if prompt > 0 {
		return 0.68
	}
	return 0.5
}
