//go:build unix

package toolloop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"localllm/delegate"
	"localllm/internal/agents"
	"localllm/internal/containment"
	"localllm/internal/paths"
	"localllm/internal/syntax"
	"localllm/internal/treelock"
	"localllm/internal/verify"
	"localllm/internal/workspace"
)

// The test binary is the program that contains by Landlock.
func TestMain(m *testing.M) {
	if exit, did := containment.Dispatch(os.Args[1:]); did {
		os.Exit(exit)
	}
	goleak.VerifyTestMain(m)
}

// model answers by a script, and holds every request against the one before.
type model struct {
	t       *testing.T
	say     []delegate.Completion
	errs    map[int]error // by answer
	window  int
	asked   []delegate.Request
	onAsked func(n int)
}

func (m *model) Limits() delegate.Limits {
	return delegate.Limits{Context: m.window, Slots: 1, Loopback: true, Model: "scripted"}
}

func (m *model) Count(_ context.Context, messages []delegate.Message, tools []delegate.Tool) (int, bool, error) {
	return size(messages, tools) / 4, true, nil
}

func size(messages []delegate.Message, tools []delegate.Tool) int {
	raw, _ := json.Marshal([]any{messages, tools})
	return len(raw)
}

func (m *model) Complete(ctx context.Context, r delegate.Request) (delegate.Completion, error) {
	n := len(m.asked)
	if n > 0 {
		before := m.asked[n-1]
		if len(r.Messages) < len(before.Messages) {
			m.t.Errorf("request %d is shorter than the one before", n)
		}
		for i := range before.Messages {
			if i < len(r.Messages) && fmt.Sprint(r.Messages[i]) != fmt.Sprint(before.Messages[i]) {
				m.t.Errorf("request %d: message %d is not what it was: %v", n, i, r.Messages[i])
			}
		}
		if fmt.Sprint(r.Tools) != fmt.Sprint(before.Tools) {
			m.t.Errorf("request %d has other tools", n)
		}
	}
	r.Messages = append([]delegate.Message(nil), r.Messages...)
	m.asked = append(m.asked, r)
	if m.onAsked != nil {
		m.onAsked(n)
	}
	if err := errors.Join(ctx.Err(), m.errs[n]); err != nil {
		return delegate.Completion{}, err
	}
	if n >= len(m.say) {
		m.t.Errorf("asked %d times", n+1)
		return delegate.Completion{Text: "Done.", Finish: delegate.FinishStop}, nil
	}
	a := m.say[n]
	if a.Tokens.Prompt = size(r.Messages, r.Tools) / 4; a.Tokens.Generated == 0 {
		a.Tokens.Generated = 20
	}
	return a, nil
}

// told is what the model was told after its answer n, by tools or otherwise.
func (m *model) told(n int) string {
	if n+1 >= len(m.asked) {
		return ""
	}
	var out []string
	for _, msg := range m.asked[n+1].Messages[len(m.asked[n].Messages):] {
		if msg.Role != delegate.Assistant {
			out = append(out, msg.Content)
		}
	}
	return strings.Join(out, "\n")
}

func says(text string) delegate.Completion {
	return delegate.Completion{Text: text, Finish: delegate.FinishStop}
}

// calls is a turn with calls: name and arguments, alternating.
func calls(pairs ...any) delegate.Completion {
	c := delegate.Completion{Finish: delegate.FinishTools}
	for i := 0; i < len(pairs); i += 2 {
		raw, ok := pairs[i+1].(string)
		if !ok {
			b, _ := json.Marshal(pairs[i+1])
			raw = string(b)
		}
		c.Calls = append(c.Calls, delegate.ToolCall{ID: fmt.Sprint("c", i), Name: pairs[i].(string), Arguments: raw})
	}
	return c
}

type args = map[string]any

// rig is a project with a real tree, journal, verify and loop; only the model is scripted.
type rig struct {
	t      *testing.T
	dir    string
	layout paths.Layout
	model  *model
	loop   *Loop
	runner delegate.Runner
}

func newRig(t *testing.T, say ...delegate.Completion) *rig {
	t.Helper()
	home := t.TempDir()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, dir: dir, layout: paths.Layout{Run: filepath.Join(home, "run"), State: filepath.Join(home, "state")}, model: &model{t: t, say: say, errs: map[int]error{}}}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r.loop, err = New(Options{Completer: r.model, Root: dir, Dir: dir, Layout: r.layout, Self: self, Parses: syntax.Check, Hide: []string{r.layout.State},
		Agent: func(name string) (agents.Definition, error) { return agents.Find(agents.Places{Workdir: dir}, name) }})
	if err != nil {
		t.Fatal(err)
	}
	tree, err := workspace.Open(r.layout, dir, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(r.loop.Close(), tree.Close()); err != nil {
			t.Error(err)
		}
		if left, _ := os.ReadDir(filepath.Join(r.layout.State, "copies")); len(left) > 0 {
			t.Errorf("copies are left: %v", left)
		}
	})
	r.runner = delegate.Runner{Completer: r.model, Tree: tree, Verifier: verify.Folder{Dir: dir, Layout: r.layout}, Locker: treelock.Tree{Layout: r.layout, Project: dir}, Worker: r.loop, Parses: syntax.Check}
	return r
}

func (r *rig) write(files map[string]string) *rig {
	r.t.Helper()
	for name, body := range files {
		p := filepath.Join(r.dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(body), 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
	return r
}

func (r *rig) read(name string) string {
	raw, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		return "ABSENT"
	}
	return string(raw)
}

func (r *rig) run(task delegate.Task) delegate.Result {
	r.t.Helper()
	task.Task, task.Mode = "Do it.", delegate.ModeAgent
	res, err := r.runner.Run(r.t.Context(), delegate.Job{ID: "d-test", Task: task, Slot: -1})
	if err != nil {
		r.t.Errorf("%v (%+v)", err, res)
	}
	return res
}

func sh(line string) json.RawMessage {
	raw, _ := json.Marshal(line)
	return raw
}
