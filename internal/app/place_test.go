package app

import (
	"context"
	"testing"
	"time"

	"localllm/delegate"
	"localllm/internal/paths"
	"localllm/internal/slots"
)

type slotSeen struct {
	delegate.Completer
	slot int
}

func (s *slotSeen) Complete(_ context.Context, r delegate.Request) (delegate.Completion, error) {
	s.slot = r.Slot
	return delegate.Completion{}, nil
}

type freeTree struct{}

func (freeTree) Lock(context.Context, func()) (func(), error) { return func() {}, nil }

func TestAProofLeavesThePlaceToOthers(t *testing.T) {
	pool := slots.Open(paths.Layout{Run: t.TempDir()}, "http://127.0.0.1:1", 2)
	p := &place{pool: pool, index: 1}
	model := &slotSeen{}
	ask := func(slot int) int {
		t.Helper()
		if _, err := (placed{model, p}).Complete(t.Context(), delegate.Request{Slot: slot}); err != nil {
			t.Fatal(err)
		}
		return model.slot
	}
	if got := ask(1); got != 1 || pool.Busy() != 1 {
		t.Fatalf("slot %d, %d busy", got, pool.Busy())
	}
	if ask(1); pool.Busy() != 1 {
		t.Errorf("asked twice, %d busy", pool.Busy())
	}
	unlock, err := leaving{freeTree{}, p}.Lock(t.Context(), nil)
	if err != nil || pool.Busy() != 0 {
		t.Fatalf("%d busy while it proves, %v", pool.Busy(), err)
	}
	theirs, err := pool.Take(t.Context(), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Release()
	unlock()
	if got := ask(1); got != 0 {
		t.Errorf("slot %d was used, which somebody else holds", got)
	}
	if got := ask(-1); got != -1 {
		t.Errorf("slot %d was asked of an endpoint that has none", got)
	}
	p.release()
	if pool.Busy() != 1 {
		t.Errorf("%d busy after the end", pool.Busy())
	}
}

func TestTheLimitOfABackgroundTask(t *testing.T) {
	for _, c := range []struct {
		task delegate.Task
		want time.Duration
	}{
		{delegate.Task{}, time.Hour},
		{delegate.Task{TimeoutS: 60}, 2 * time.Minute},
		{delegate.Task{Tasks: []delegate.Task{{TimeoutS: 60}, {TimeoutS: 30}}}, 3 * time.Minute},
	} {
		if got := taskLimit(&c.task); got != c.want {
			t.Errorf("%+v: %v, want %v", c.task, got, c.want)
		}
	}
}
