package delegate_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"localllm/delegate"
)

type worker struct {
	bodies   []string
	unusable string
	err      error
	feedback []string
}

func (w *worker) Work(_ context.Context, o delegate.WorkOrder) (delegate.WorkDone, error) {
	cost := 0.25
	done := delegate.WorkDone{Text: "done", Turns: 2, ToolCalls: 3, StopReason: "end", CostUSD: &cost, Unusable: w.unusable, Containment: "landlock"}
	if w.err != nil {
		return done, w.err
	}
	body := w.bodies[min(len(w.feedback), len(w.bodies)-1)]
	w.feedback = append(w.feedback, o.Feedback)
	return done, o.Change.Write([]delegate.File{{Path: "a.txt", Body: body}})
}

// The tool loop writes as it goes, so it holds the tree from the baseline on, and keeps its files between rounds.
func TestToolLoopIsProvenLikeAnythingElse(t *testing.T) {
	task := writeA
	task.Mode = delegate.ModeAgent
	b := newBench(outcomes(red(""), red("x.go:1: bad"), green("")))
	w := &worker{bodies: []string{"wrong\n", "right\n"}}
	b.Worker = w
	res := b.run(t, task)
	if res.Status != delegate.Proven || res.Turns != 4 || res.ToolCalls != 6 || *res.CostUSD != 0.5 || res.Containment != "landlock" || b.tree.files["a.txt"] != "right\n" {
		t.Errorf("%+v", res)
	}
	if want := "lock verify write verify write verify keep unlock"; b.did() != want {
		t.Errorf("did %s, want %s", b.did(), want)
	}
	if w.feedback[0] != "" || !strings.Contains(w.feedback[1], "x.go:1: bad") {
		t.Errorf("feedback %q", w.feedback)
	}

	for name, set := range map[string]func(*bench, *worker){
		"still red":    func(b *bench, w *worker) { b.verify.outcomes = []delegate.Outcome{red("")} },
		"unusable":     func(b *bench, w *worker) { w.unusable = "it did nothing" },
		"engine fails": func(b *bench, w *worker) { w.err = errFault },
	} {
		b := newBench(outcomes(red(""), green("")))
		w := &worker{bodies: []string{"wrong\n"}}
		b.Worker = w
		set(b, w)
		res, _ := b.Run(t.Context(), delegate.Job{Task: task})
		if res.OK || b.tree.files["a.txt"] != "old\n" || !slices.Contains(b.tree.log, "undo") || len(b.log.entries) != 1 {
			t.Errorf("%s: %+v, did %s", name, res, b.did())
		}
	}
	task.Verify = nil
	b = newBench(outcomes(red("")))
	b.Worker = &worker{bodies: []string{"done\n"}}
	if res := b.run(t, task); res.Status != delegate.Unverified {
		t.Errorf("%+v", res)
	}
}

// A result of mode agent has all of that mode's figures, zeros too and also where it did not begin; others have none.
func TestFiguresOfAgentMode(t *testing.T) {
	task := writeA
	task.Mode = delegate.ModeAgent
	for name, r := range map[string]struct {
		verify *checker
		mode   string
		want   bool
	}{"agent": {outcomes(red("")), delegate.ModeAgent, true}, "refused": {outcomes(delegate.Outcome{Exit: 126}), delegate.ModeAgent, true}, "files": {outcomes(red("")), delegate.ModeFiles, false}} {
		task.Mode, task.Attempts = r.mode, 1
		b := newBench(r.verify, newA)
		b.Worker = &worker{bodies: []string{"wrong\n"}}
		raw, err := json.Marshal(b.run(t, task))
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range []string{"turns", "tool_calls", "malformed_calls", "stop_reason", "hit_turn_limit", "agent_source", "containment"} {
			if got := strings.Contains(string(raw), `"`+field+`":`); got != r.want {
				t.Errorf("%s: %s is there: %v, want %v", name, field, got, r.want)
			}
		}
	}
}
