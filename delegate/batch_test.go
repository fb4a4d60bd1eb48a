package delegate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"localllm/delegate"
)

// cached is an engine with a cache for each slot. It counts what it has to read anew.
type cached struct {
	mu      sync.Mutex
	limits  delegate.Limits
	slots   map[int]string
	busy    map[int]bool
	most    int // requests at once
	read    int // tokens
	shares  int
	deaf    bool // states are restored, and of no use
	fail    error
	sharing error
}

func (c *cached) Count(_ context.Context, m []delegate.Message, _ []delegate.Tool) (int, bool, error) {
	return tokens(m), true, nil
}
func (c *cached) Limits() delegate.Limits { return c.limits }

func (c *cached) Share(_ context.Context, from int, to []int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shares++
	if !c.deaf {
		for _, s := range to {
			c.slots[s] = c.slots[from]
		}
	}
	return c.sharing
}

func (c *cached) Complete(ctx context.Context, r delegate.Request) (delegate.Completion, error) {
	text := ""
	for _, m := range r.Messages {
		text += m.Content
	}
	c.mu.Lock()
	if r.Slot >= 0 && c.busy[r.Slot] {
		c.mu.Unlock()
		return delegate.Completion{}, fmt.Errorf("slot %d is busy", r.Slot)
	}
	c.busy[r.Slot] = true
	c.most = max(c.most, len(c.busy))
	n := 0
	for old := c.slots[r.Slot]; n < min(len(old), len(text)) && old[n] == text[n]; {
		n++
	}
	c.slots[r.Slot] = text
	c.read += len(text) - n
	c.mu.Unlock()
	time.Sleep(time.Second)
	if r.Progress != nil {
		r.Progress(delegate.Generating{Phase: "generating"})
	}
	time.Sleep(time.Duration(len(text)%7) * time.Second)
	c.mu.Lock()
	delete(c.busy, r.Slot)
	c.mu.Unlock()
	if strings.Contains(text, "please fail") {
		return delegate.Completion{}, errFault
	}
	_, after, _ := strings.Cut(text, "## Task\n")
	answer, _, _ := strings.Cut(after, "\n")
	return delegate.Completion{Text: "Re: " + answer, Finish: delegate.FinishStop, Tokens: delegate.Tokens{Prompt: len(text), Cached: n, Generated: 3}}, c.fail
}

func batchOf(n int) []delegate.Job {
	jobs := make([]delegate.Job, n)
	for i := range jobs {
		jobs[i] = delegate.Job{ID: fmt.Sprint(i), Task: delegate.Task{Task: fmt.Sprintf("question %d", i), ContextFiles: []string{"shown.txt"}}}
	}
	return jobs
}

func TestBatch(t *testing.T) {
	const context = 20_000 // bytes, which are this engine's tokens
	rows := []struct {
		name   string
		engine *cached
		jobs   int
		most   int
		shares int
		reads  int // times the whole context is read
	}{
		{"one slot", &cached{limits: delegate.Limits{Slots: 1}}, 6, 1, 0, 1},
		{"four slots share", &cached{limits: delegate.Limits{Slots: 4, PinnedSlots: true}}, 12, 4, 1, 1},
		{"more slots than tasks", &cached{limits: delegate.Limits{Slots: 8, PinnedSlots: true}}, 2, 2, 1, 1},
		{"sharing fails: one after the other on the warm slot", &cached{limits: delegate.Limits{Slots: 4, PinnedSlots: true}, sharing: errFault, deaf: true}, 6, 1, 1, 1},
		{"sharing is of no use, say the counters", &cached{limits: delegate.Limits{Slots: 4, PinnedSlots: true}, deaf: true}, 12, 4, 1, 4},
	}
	for _, r := range rows {
		synctest.Test(t, func(t *testing.T) {
			e := r.engine
			e.slots, e.busy = map[int]string{}, map[int]bool{}
			e.limits.Loopback = true
			b := newBench(outcomes(red("")))
			b.tree.files["shown.txt"] = strings.Repeat("some context. ", context/14)
			b.Completer = e
			b.Log = nil
			res, err := b.Batch(t.Context(), batchOf(r.jobs))
			if err != nil || !res.OK || res.Succeeded != r.jobs || res.Failed != 0 || res.Seconds == 0 {
				t.Fatalf("%s: %v %+v", r.name, err, res)
			}
			for i, one := range res.Results {
				if one.Text != fmt.Sprintf("Re: question %d", i) || one.TaskID != fmt.Sprint(i) {
					t.Errorf("%s: result %d is %q", r.name, i, one.Text)
				}
			}
			if e.most != r.most || e.shares != r.shares || e.read < r.reads*context || e.read > r.reads*context+context/2+5000 {
				t.Errorf("%s: %d at once, shared %d times, %d tokens read, %.1f times the context", r.name, e.most, e.shares, e.read, float64(e.read)/context)
			}
		})
	}
}

// An endpoint that does not pin slots gets the first task alone until it has read its prompt.
func TestBatchElsewhereWarmsByItsFirstTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		var mu sync.Mutex
		var begun []time.Duration
		b := newBench(outcomes(red("")))
		b.Log = nil
		b.model.limits.Slots = 3
		b.model.do = func(_ context.Context, r delegate.Request) (delegate.Completion, error) {
			mu.Lock()
			begun = append(begun, time.Since(started))
			mu.Unlock()
			return delegate.Completion{Text: "Yes.", Finish: delegate.FinishStop}, nil
		}
		b.Completer = slowReader{b.model}
		res, err := b.Batch(t.Context(), batchOf(5))
		if err != nil || res.Succeeded != 5 || begun[0] != 0 || begun[1] != 5*time.Second || begun[2] != 5*time.Second {
			t.Errorf("%v %+v begun at %v", err, res, begun)
		}
	})
}

// slowReader takes 5 s until it generates, and 10 s for that.
type slowReader struct{ *talker }

func (s slowReader) Complete(ctx context.Context, r delegate.Request) (delegate.Completion, error) {
	tell := r.Progress
	r.Progress = nil
	c, err := s.talker.Complete(ctx, r)
	time.Sleep(5 * time.Second)
	if tell != nil {
		tell(delegate.Generating{Phase: "generating"})
	}
	time.Sleep(10 * time.Second)
	return c, err
}

func TestOneFailureSparesTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &cached{limits: delegate.Limits{Slots: 2, PinnedSlots: true, Loopback: true}, slots: map[int]string{}, busy: map[int]bool{}}
		b := newBench(outcomes(red("")))
		b.Completer = e
		b.Log = nil
		jobs := batchOf(4)
		jobs[1].Task.Task = "please fail"
		jobs[2].Task.ContextFiles = []string{"other.txt"}
		res, err := b.Batch(t.Context(), jobs)
		if !errors.Is(err, errFault) || res.OK || res.Succeeded != 3 || res.Failed != 1 || res.Results[1].Status != delegate.Failed || !res.Results[3].OK || e.shares != 0 {
			t.Errorf("%v %+v", err, res)
		}
	})
}

func TestMalformedBatch(t *testing.T) {
	b := newBench(outcomes(red("")), "x")
	for _, r := range []struct {
		jobs  []delegate.Job
		field string
	}{{nil, "tasks"}, {batchOf(13), "tasks"}, {append(batchOf(2), delegate.Job{}), "tasks[2].task"}} {
		_, err := b.Batch(t.Context(), r.jobs)
		var e *delegate.FieldError
		if !errors.As(err, &e) || e.Field != r.field || len(b.model.requests) > 0 {
			t.Errorf("%v, want %s", err, r.field)
		}
	}
}

// Slots that other sessions use are left to them.
func TestBatchBorrowsOnlyFreeSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &cached{limits: delegate.Limits{Slots: 4, PinnedSlots: true, Loopback: true}, slots: map[int]string{3: "theirs"}, busy: map[int]bool{}}
		b := newBench(outcomes(red("")))
		b.tree.files["shown.txt"] = strings.Repeat("some context. ", 1000)
		b.Completer, b.Log = e, nil
		returned := 0
		b.MoreSlots = func(n int) ([]int, func()) { return []int{2}[:min(n, 1)], func() { returned++ } }
		jobs := batchOf(6)
		for i := range jobs {
			jobs[i].Slot = 1
		}
		res, err := b.Batch(t.Context(), jobs)
		if err != nil || !res.OK || e.slots[3] != "theirs" || e.slots[0] != "" || e.slots[1] == "" || e.slots[2] == "" || e.most != 2 || returned != 1 {
			t.Errorf("%v %+v slots in use %d, returned %d", err, res, e.most, returned)
		}
	})
}
