//go:build unix

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"localllm/delegate"
	"localllm/internal/contextfiles"
	"localllm/internal/engine/llamaserver"
	"localllm/internal/paths"
	"localllm/internal/practice"
	"localllm/internal/toolloop"
	"localllm/internal/treelock"
	"localllm/internal/workspace"
	"localllm/lifecycle"
	"localllm/test/harness"
)

// counted keeps the engine's own counts of every turn.
type counted struct {
	delegate.Completer
	turns []delegate.Tokens
}

func (c *counted) Complete(ctx context.Context, r delegate.Request) (delegate.Completion, error) {
	answer, err := c.Completer.Complete(ctx, r)
	c.turns = append(c.turns, answer.Tokens)
	return answer, err
}

// given reads context files as they are named.
type given struct{ dir string }

func (g given) Gather(ctx context.Context, t delegate.Task) (delegate.Gathered, error) {
	set, err := contextfiles.Expand(ctx, contextfiles.Options{Root: g.dir}, t.ContextFiles)
	return delegate.Gathered{Files: set.Files}, err
}

// The history is append-only: what a turn sends begins with what the turn before sent and got, so that nearly all of
// it is in the engine's cache already.
func TestToolLoopIsCached(t *testing.T) {
	const turns, share = 10, 0.95
	script, when := practice.Script{}, []string{"TASK-CACHE"}
	for i := 1; i < turns; i++ {
		script = append(script, practice.Entry{When: append([]string{}, when...), Say: practice.Call("read_file", "path", fmt.Sprintf("part%d.txt", i))})
		when = append(when, fmt.Sprintf("PART-%d-READ", i))
	}
	script = append(script, practice.Entry{When: when, Say: "There are nine parts."})
	dir := t.TempDir()
	facts := ""
	for i := range 500 {
		facts += fmt.Sprintf("fact %d is like the others\n", i)
	}
	files := map[string]string{"facts.txt": facts}
	for i := 1; i < turns; i++ {
		files[fmt.Sprintf("part%d.txt", i)] = fmt.Sprintf("PART-%d-READ\n", i)
	}
	for name, body := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := harness.Start(t, harness.LlamaServer, script, practice.Options{Tools: true})
	client, err := llamaserver.Connect(lifecycle.Endpoint{Engine: lifecycle.LlamaServer, URL: s.URL, Model: s.Model, Context: 16384, Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	model := &counted{Completer: client}
	home := harness.Home(t)
	layout := paths.Layout{Run: filepath.Join(home, "run"), State: filepath.Join(home, "state")}
	loop, err := toolloop.New(toolloop.Options{Completer: model, Source: given{dir}, Root: dir, Dir: dir, Layout: layout})
	if err != nil {
		t.Fatal(err)
	}
	defer loop.Close()
	tree, err := workspace.Open(layout, dir, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	runner := delegate.Runner{Completer: model, Tree: tree, Locker: treelock.Tree{Layout: layout, Project: dir}, Worker: loop}
	res, err := runner.Run(t.Context(), delegate.Job{Task: delegate.Task{Task: "TASK-CACHE: count the parts.", Mode: delegate.ModeAgent, ContextFiles: []string{"facts.txt"}}, Slot: -1})
	if err != nil || res.Status != delegate.Unverified || res.Turns != turns || len(model.turns) != turns || res.MalformedCalls != 0 {
		t.Fatalf("%v, %d turns: %+v", err, len(model.turns), res)
	}
	for i, n := range model.turns {
		cached := float64(n.Cached) / float64(n.Prompt)
		t.Logf("turn %d: %d tokens, %d cached, %.1f %%", i+1, n.Prompt, n.Cached, 100*cached)
		if i > 0 && cached < share {
			t.Errorf("turn %d: only %.1f %% of %d tokens were cached", i+1, 100*cached, n.Prompt)
		}
	}
}
