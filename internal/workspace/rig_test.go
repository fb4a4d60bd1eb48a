package workspace_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"localllm/delegate"
	"localllm/internal/paths"
	"localllm/internal/redact"
	"localllm/internal/syntax"
	"localllm/internal/treelock"
	"localllm/internal/verify"
	"localllm/internal/workspace"
)

func TestMain(m *testing.M) {
	if root := os.Getenv("LOCALLLM_TEST_VICTIM"); root != "" {
		victim(root)
		return
	}
	goleak.VerifyTestMain(m)
}

// script answers each request by the next of its lines, and by the last one from there on.
type script struct {
	mu       sync.Mutex
	answers  []func(context.Context, delegate.Request) (delegate.Completion, error)
	requests []delegate.Request
	limits   delegate.Limits
}

func (s *script) Complete(ctx context.Context, r delegate.Request) (delegate.Completion, error) {
	s.mu.Lock()
	n := min(len(s.requests), len(s.answers)-1)
	s.requests = append(s.requests, r)
	s.mu.Unlock()
	return s.answers[n](ctx, r)
}

func (s *script) Count(_ context.Context, m []delegate.Message, _ []delegate.Tool) (int, bool, error) {
	n := 0
	for _, x := range m {
		n += len(x.Content)/4 + 4
	}
	return n, true, nil
}

func (s *script) Limits() delegate.Limits { return s.limits }

type answer = func(context.Context, delegate.Request) (delegate.Completion, error)

func says(text string) answer {
	return func(context.Context, delegate.Request) (delegate.Completion, error) {
		return delegate.Completion{Text: text, Finish: delegate.FinishStop, Tokens: delegate.Tokens{Generated: len(text) / 4}}, nil
	}
}

func cut(text string) answer {
	return func(context.Context, delegate.Request) (delegate.Completion, error) {
		return delegate.Completion{Text: text, Finish: delegate.FinishLength}, nil
	}
}

// files is an answer in the form that the prompt asks for.
func files(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		b.WriteString("### File: " + pairs[i] + "\n```\n" + pairs[i+1] + "```\n\n")
	}
	return b.String()
}

type log struct{ entries []delegate.Entry }

func (l *log) Delegation(e delegate.Entry) error { l.entries = append(l.entries, e); return nil }

// rig is a project with all the real parts around a scripted model.
type rig struct {
	*delegate.Runner
	t      testing.TB
	root   string
	layout paths.Layout
	script *script
	log    *log
}

func newRig(t testing.TB, tree map[string]string, answers ...answer) *rig {
	t.Helper()
	home := t.TempDir()
	r := &rig{t: t, root: filepath.Join(home, "project"), layout: paths.Layout{Run: filepath.Join(home, "run"), State: filepath.Join(home, "state")}, log: &log{}}
	for name, body := range tree {
		r.put(name, body)
	}
	if err := os.MkdirAll(r.root, 0o755); err != nil {
		t.Fatal(err)
	}
	r.script = &script{answers: answers, limits: delegate.Limits{Context: 200_000, Slots: 1, Loopback: true, Engine: "script", Model: "plain"}}
	r.Runner = assemble(t, r.layout, r.root, r.script)
	r.Runner.Log = r.log
	return r
}

func assemble(t testing.TB, layout paths.Layout, root string, model delegate.Completer) *delegate.Runner {
	w, err := workspace.Open(layout, root, root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return &delegate.Runner{Completer: model, Source: w, Tree: w, Verifier: verify.Folder{Dir: w.Dir(), Layout: layout}, Locker: treelock.Tree{Layout: layout, Project: root},
		Parses: syntax.Check, Redact: redact.Text, Hide: redact.Hide}
}

func (r *rig) put(name, body string) {
	r.t.Helper()
	p := filepath.Join(r.root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(body), 0o644)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) run(t delegate.Task) delegate.Result {
	r.t.Helper()
	res, err := r.Run(r.t.Context(), delegate.Job{ID: "t1", Task: t, Slot: -1})
	if err != nil {
		r.t.Fatal(err)
	}
	return res
}

func sh(line string) json.RawMessage { b, _ := json.Marshal(line); return b }

func out(names ...string) []delegate.OutputFile {
	var o []delegate.OutputFile
	for _, n := range names {
		o = append(o, delegate.OutputFile{Path: n})
	}
	return o
}

// photograph is every file and folder of a tree: text, mode and time of files, mode of folders.
func photograph(t testing.TB, root string) map[string]string {
	t.Helper()
	pic := map[string]string{}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		switch {
		case d.IsDir():
			pic[rel] = info.Mode().String()
		case info.Mode().IsRegular():
			body, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			pic[rel] = info.Mode().String() + info.ModTime().String() + string(body)
		default:
			link, _ := os.Readlink(p)
			pic[rel] = info.Mode().String() + link
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pic
}

// same fails the test where two photographs differ.
func same(t testing.TB, what string, want, got map[string]string) {
	t.Helper()
	for p, w := range want {
		if got[p] != w {
			t.Errorf("%s: %s was\n%q\nand is\n%q", what, p, w, got[p])
		}
	}
	for p := range got {
		if _, there := want[p]; !there {
			t.Errorf("%s: %s is new", what, p)
		}
	}
}

// clean fails the test where a journal is left over. One that was only being opened is swept away later.
func (r *rig) clean() {
	r.t.Helper()
	left, _ := filepath.Glob(filepath.Join(r.layout.State, "journals", "*", "[^.]*"))
	if len(left) > 0 {
		r.t.Errorf("journals are left over: %v", left)
	}
}
