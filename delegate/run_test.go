package delegate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"localllm/delegate"
)

// The lock is held from the baseline to the verdict; between attempts everything is put back and the lock let go; the
// baseline is run again only where the tree may have moved.
func TestOrderOfTheProof(t *testing.T) {
	b := newBench(outcomes(red("r"), red("r"), green("ok")), newA)
	if res := b.run(t, writeA); res.Status != delegate.Proven || res.Score != 0.68 || res.Model != "fake-1" || res.TokensPerSecond != 10 || res.Tokens.Generated != 20 {
		t.Errorf("%+v", res)
	}
	if want := "lock verify write verify undo unlock lock write verify keep unlock"; b.did() != want {
		t.Errorf("did\n%s, want\n%s", b.did(), want)
	}
	moved := newBench(outcomes(red("r"), red("r"), red("r"), green("ok")), newA)
	moved.verify.during = func(n int) { moved.verify.state = fmt.Sprint(n) }
	moved.verify.state = ""
	moved.run(t, writeA)
	if want := "lock verify write verify undo unlock lock write verify undo unlock lock write verify keep unlock"; moved.did() != want {
		t.Errorf("did\n%s, want\n%s", moved.did(), want)
	}
	unseen := newBench(outcomes(red("r"), red("r"), red("r"), green("ok")), newA)
	unseen.verify.state = ""
	unseen.run(t, writeA)
	if want := "lock verify write verify undo unlock lock verify write verify keep unlock"; unseen.did() != want {
		t.Errorf("a tree too large to look at: did\n%s, want\n%s", unseen.did(), want)
	}
}

func TestPhasesAreTold(t *testing.T) {
	b := newBench(outcomes(red(""), green("")), newA)
	b.run(t, writeA)
	want := []string{"preparing", "generating", "generating", "waiting for the tree", "waiting for another delegation in this tree", "checking the baseline", "writing", "verifying"}
	if !slices.Equal(b.phases, want) {
		t.Errorf("phases %q", b.phases)
	}
}

func TestVerdicts(t *testing.T) {
	protect := writeA
	protect.Protect = []string{"p.txt"}
	rows := []struct {
		name   string
		v      *checker
		task   delegate.Task
		set    func(*bench)
		status string
		says   string
		undone bool
	}{
		{"red, then green", outcomes(red(""), green("")), writeA, nil, delegate.Proven, "", false},
		{"green, then green", outcomes(green("")), writeA, nil, delegate.Unproven, "", false},
		{"no test was run", outcomes(red(""), green("testing: warning: no tests to run\nPASS\nok  \tm\t0.1s [no tests to run]\n")), writeA, nil, delegate.Unproven, "without running a test", false},
		{"other packages have no tests", outcomes(red(""), green("?   \tm/x\t[no test files]\nok  \tm\t0.1s\n")), writeA, nil, delegate.Proven, "", false},
		{"nothing changed", outcomes(red(""), green("")), writeA, func(b *bench) { b.tree.files["a.txt"] = "new\n" }, delegate.Unproven, "no file changed", false},
		{"a protected file changed", outcomes(red(""), green("")), protect, func(b *bench) {
			b.verify.during = func(n int) { b.tree.files["p.txt"] = fmt.Sprint(n) }
		}, delegate.Failed, "p.txt", true},
		{"a protected file is new", outcomes(red(""), green("")), protect, func(b *bench) {
			b.verify.during = func(n int) {
				if n == 1 {
					b.tree.files["p.txt"] = "x"
				}
			}
		}, delegate.Failed, "p.txt", true},
		{"a context file changed", outcomes(red(""), green("")), writeA, func(b *bench) {
			b.tree.files["shown.txt"] = "1"
			b.verify.during = func(n int) { b.tree.files["shown.txt"] += "x" }
		}, delegate.Failed, "shown.txt", true},
		{"a test changed", outcomes(red(""), delegate.Outcome{Changed: []string{"a.txt", "x_test.go", "x.log"}}), writeA, nil, delegate.Failed, "x_test.go", true},
		{"something else changed", outcomes(red(""), delegate.Outcome{Changed: []string{"a.txt", "x.log"}}), writeA, nil, delegate.Proven, "", false},
		{"verify vanished", outcomes(red(""), delegate.Outcome{Missing: "gone"}), writeA, nil, delegate.Failed, "could not be started", true},
		{"time out", outcomes(red(""), delegate.Outcome{TimedOut: true}), writeA, nil, delegate.Failed, "did not end", true},
		{"baseline can't run", outcomes(delegate.Outcome{Exit: 126, Output: "sh: denied\n"}), writeA, nil, delegate.Refused, "denied", false},
		{"baseline is too slow", outcomes(delegate.Outcome{TimedOut: true}), writeA, nil, delegate.Refused, "on the tree as it is", false},
		{"check fails", &checker{check: errFault}, writeA, nil, delegate.Refused, "a fault", false},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			b := newBench(r.v, newA)
			if r.set != nil {
				r.set(b)
			}
			res := b.run(t, r.task)
			if res.Status != r.status || !strings.Contains(res.Reason, r.says) {
				t.Errorf("%s: %+v", res.Status, res)
			}
			if undone := strings.Contains(b.did(), "undo"); undone != r.undone {
				t.Errorf("did %s", b.did())
			}
			if n := strings.Count(b.did(), "lock"); n%2 != 0 {
				t.Errorf("the lock is left: %s", b.did())
			}
			if len(b.log.entries) != 1 {
				t.Errorf("%d lines in the log", len(b.log.entries))
			}
			// What was only looked at before was not verified: its exit is the baseline's, in the result and in the log.
			e := b.log.entries[0]
			if strings.HasPrefix(r.name, "baseline") && (e.VerifyExit != nil || e.BaselineExit == nil || *e.BaselineExit != res.Verify.Exit || res.Verify.BaselineExit != res.Verify.Exit) {
				t.Errorf("logged as %v and %v, told as %+v", e.BaselineExit, e.VerifyExit, res.Verify)
			}
			if slices.Contains(res.ChangedByVerify, "a.txt") || strings.HasPrefix(r.name, "something") && !slices.Equal(res.ChangedByVerify, []string{"x.log"}) {
				t.Errorf("changed by verify: %q", res.ChangedByVerify)
			}
		})
	}
}

// A fault anywhere leaves the tree as it was, unlocked, with a line in the log.
func TestFaults(t *testing.T) {
	for _, method := range []string{"admit", "gather", "lock", "begin", "write", "stamp", "keep", "verify"} {
		b := newBench(outcomes(red(""), green("")), newA)
		if method == "verify" {
			b.verify.err = errFault
		} else {
			b.tree.faults[method] = errFault
		}
		res := b.run(t, writeA)
		if res.Status != delegate.Failed || !strings.Contains(res.Reason, errFault.Error()) || b.tree.files["a.txt"] != "old\n" || len(b.log.entries) != 1 {
			t.Errorf("%s: %+v, tree %v", method, res, b.tree.files)
		}
		b.tree.faults[method] = &delegate.Refusal{Reason: "no", Hint: "do"}
		if method != "verify" && method != "keep" {
			if res := b.run(t, writeA); res.Status != delegate.Refused || res.Hint != "do" {
				t.Errorf("%s: %+v", method, res)
			}
		}
	}
	b := newBench(outcomes(red(""), red("")), newA)
	b.tree.faults["undo"] = errFault
	b.tree.conflicts = []string{"a.txt"}
	res := b.run(t, writeA)
	if all := strings.Join(res.Warnings, "; "); !strings.Contains(all, "tries again") || !strings.Contains(all, "/saved") || !slices.Equal(res.Conflicts, []string{"a.txt"}) || len(res.Attempts) != 1 {
		t.Errorf("an undo that fails: %+v", res)
	}
	b = newBench(outcomes(red(""), green("")), newA)
	b.log.err = errFault
	if res := b.run(t, writeA); !res.OK || !strings.Contains(strings.Join(res.Warnings, ""), "log could not") {
		t.Errorf("a log that fails: %+v", res)
	}
}

func TestEngineFailures(t *testing.T) {
	b := newBench(outcomes(red("")), "")
	b.model.do = func(context.Context, delegate.Request) (delegate.Completion, error) {
		return delegate.Completion{}, errFault
	}
	res, err := b.Run(t.Context(), delegate.Job{ID: "e", Task: writeA})
	var failed *delegate.EngineError
	if !errors.As(err, &failed) || !errors.Is(err, errFault) || res.Status != delegate.Failed || len(b.log.entries) != 1 || len(b.tree.log) > 0 {
		t.Errorf("%v %+v", err, res)
	}
}

func TestPromptThatIsCutByTheEngine(t *testing.T) {
	b := newBench(outcomes(red("")), newA)
	b.model.counted = func(n int) int { return n / 2 }
	if res := b.run(t, writeA); res.Status != delegate.Rejected || !strings.Contains(res.Reason, "saw only") || len(b.tree.log) > 0 {
		t.Errorf("%+v", res)
	}
}

func TestPromptThatDoesNotFit(t *testing.T) {
	b := newBench(outcomes(red("")), newA)
	b.model.limits.Context = 500
	if res := b.run(t, writeA); res.Status != delegate.Refused || !strings.Contains(res.Reason, "does not fit") || len(b.model.requests) > 0 {
		t.Errorf("%+v", res)
	}
	// A repair that has no room becomes a fresh sample.
	b = newBench(outcomes(red(strings.Repeat("x y\n", 600)), green("")), newA, block("a.txt", strings.Repeat("long ", 2000)+"\n"))
	b.model.answers = []string{block("a.txt", strings.Repeat("long ", 2000)+"\n"), newA}
	b.verify.outcomes = []delegate.Outcome{red(""), red(""), green("")}
	b.model.limits.Context = 9000
	if res := b.run(t, writeA); res.Status != delegate.Proven || len(b.model.requests[1].Messages) != 2 || b.model.requests[1].Temperature <= b.model.requests[0].Temperature {
		t.Errorf("%+v, %d turns", res, len(b.model.requests[1].Messages))
	}
}

func TestDryRun(t *testing.T) {
	b := newBench(outcomes(red("")), newA)
	b.tree.files["shown.txt"] = "s"
	task := writeA
	task.DryRun = true
	res := b.run(t, task)
	if p := res.Plan; !res.OK || p == nil || !p.Fits || !p.Exact || p.PromptTokens < 100 || p.OutputTokens < 100 || p.VerifyCommand != "check" || p.Mode != "files" ||
		!slices.Equal(p.ContextFiles, []string{"shown.txt"}) || !slices.Equal(p.OutputFiles, []string{"a.txt"}) {
		t.Errorf("%+v %+v", res, p)
	}
	if len(b.model.requests)+len(b.tree.log)+len(b.log.entries) > 0 {
		t.Errorf("a dry run did %v, logged %d", b.tree.log, len(b.log.entries))
	}
}

func TestTextIsBounded(t *testing.T) {
	b := newBench(outcomes(red("")), strings.Repeat("All is well. ", 3000))
	b.SaveText = func(id, text string) (string, error) { return "/texts/" + id + fmt.Sprint(len(text)), nil }
	res := b.run(t, delegate.Task{Task: "explain"})
	if res.Status != delegate.Answered || len(res.Text) > 16<<10 || len(res.Text) < 15<<10 || res.TextFile != "/texts/id38999" || !strings.HasSuffix(res.Text, "bytes in all]") {
		t.Errorf("%d bytes, file %q, end %q", len(res.Text), res.TextFile, res.Text[len(res.Text)-30:])
	}
	b.SaveText = func(string, string) (string, error) { return "", errFault }
	if res := b.run(t, delegate.Task{Task: "explain"}); !res.OK || !strings.Contains(strings.Join(res.Warnings, ""), "could not be kept") {
		t.Errorf("%+v", res)
	}
}

func TestTailIsBoundedAndRedacted(t *testing.T) {
	b := newBench(outcomes(red(strings.Repeat("noise ", 3000)+"the end: sesame")), newA)
	b.Redact = func(s string) string { return strings.ReplaceAll(s, "sesame", "[redacted]") }
	task := writeA
	task.Attempts = 1
	v := b.run(t, task).Verify
	if len(v.Tail) > 4<<10 || !strings.HasSuffix(v.Tail, "the end: [redacted]") || v.BaselineExit != 1 || v.Exit != 1 {
		t.Errorf("%d bytes, %q", len(v.Tail), v.Tail[len(v.Tail)-30:])
	}
}

func TestTimeIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(outcomes(red("")), newA)
		b.model.do = func(ctx context.Context, _ delegate.Request) (delegate.Completion, error) {
			<-ctx.Done()
			return delegate.Completion{}, ctx.Err()
		}
		started := time.Now()
		task := writeA
		task.TimeoutS = 90
		res := b.run(t, task)
		if res.Status != delegate.TimedOut || time.Since(started) != 90*time.Second || res.Seconds != 90 || len(b.log.entries) != 1 {
			t.Errorf("%+v", res)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		res, err := b.Run(ctx, delegate.Job{ID: "c", Task: task})
		if err != nil || res.Status != delegate.Cancelled {
			t.Errorf("%v %+v", err, res)
		}
	})
}

type slotMemory map[int]delegate.Session

func (s slotMemory) Load(slot int) delegate.Session        { return s[slot] }
func (s slotMemory) Store(slot int, sess delegate.Session) { s[slot] = sess }

func TestSessionIsKeptBySlot(t *testing.T) {
	b := newBench(outcomes(red(""), green("")), newA)
	b.tree.files["shown.txt"] = "body"
	kept := slotMemory{}
	b.Sessions = kept
	b.run(t, writeA)
	if len(kept[-1].Blocks) != 1 || kept[-1].Blocks[0].Path != "shown.txt" {
		t.Errorf("%+v", kept)
	}
}

func TestDiffOnlyWhenAsked(t *testing.T) {
	b := newBench(outcomes(red(""), green("")), newA)
	res, _ := b.Run(t.Context(), delegate.Job{Task: writeA, Diff: true})
	if res.Diff != "the diff" || b.run(t, writeA).Diff != "" {
		t.Errorf("diff %q", res.Diff)
	}
}

func TestUnusableAnswers(t *testing.T) {
	rows := []struct {
		name    string
		answers []string
		finish  string
		tokens  int
		tries   int
		turns   []int // of each request
	}{
		{"empty, three times", []string{""}, "", 0, 3, []int{2, 4, 6}},
		{"cut off: a fresh sample, and no third", []string{"### File: a.txt\n```\nne"}, delegate.FinishLength, 0, 2, []int{2, 2}},
		{"cut off by the caller's own limit", []string{"### File: a.txt\n```\nne"}, delegate.FinishLength, 400, 1, []int{2}},
	}
	for _, r := range rows {
		b := newBench(outcomes(red("")), r.answers...)
		b.model.finish = r.finish
		task := writeA
		task.MaxTokens = r.tokens
		res := b.run(t, task)
		var turns []int
		for _, q := range b.model.requests {
			turns = append(turns, len(q.Messages))
		}
		if res.Status != delegate.Rejected || len(res.Attempts) != r.tries || !slices.Equal(turns, r.turns) || res.Hint == "" || slices.Contains(b.tree.log, "write") {
			t.Errorf("%s: %+v, turns %v, did %s", r.name, res, turns, b.did())
		}
	}
}

// An output that somebody changed while the answer was written is asked for anew, from what it is now.
func TestOvertaken(t *testing.T) {
	b := newBench(outcomes(red("")), newA)
	b.tree.faults["write"] = &delegate.Conflict{Paths: []string{"a.txt"}}
	res := b.run(t, writeA)
	if res.Status != delegate.Failed || !slices.Equal(res.Conflicts, []string{"a.txt"}) || len(res.Attempts) != 3 || !strings.Contains(res.Reason, "somebody else") {
		t.Errorf("%+v", res)
	}
	for _, q := range b.model.requests {
		if len(q.Messages) != 2 {
			t.Errorf("%d turns", len(q.Messages))
		}
	}
	if strings.Count(b.did(), "lock") != 6 || strings.Count(b.did(), "verify") != 1 {
		t.Errorf("did %s", b.did())
	}
}

// Somebody above may catch a panic and go on: the tree must be whole and free then too.
func TestPanicLeavesTheTreeWhole(t *testing.T) {
	b := newBench(outcomes(red("")), newA)
	b.verify.during = func(n int) {
		if n == 1 {
			panic("a fault of ours")
		}
	}
	func() {
		defer func() { _ = recover() }()
		b.run(t, writeA)
	}()
	if b.tree.files["a.txt"] != "old\n" || b.did() != "lock verify write verify undo unlock" {
		t.Errorf("%v, did %s", b.tree.files, b.did())
	}
}
