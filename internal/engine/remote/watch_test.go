package remote

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"localllm/delegate"
)

// slow is a client that tells of progress at each tick, and goes on for ever without an end.
type slow struct {
	every time.Duration
	ticks int // 0: for ever
}

func (s slow) Complete(ctx context.Context, r delegate.Request) (delegate.Completion, error) {
	r.Progress(delegate.Generating{Phase: "waiting"})
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return delegate.Completion{Text: "so far"}, ctx.Err()
		case <-time.After(s.every):
		}
		r.Progress(delegate.Generating{Phase: "generating"})
		if n == s.ticks {
			return delegate.Completion{Text: "all"}, nil
		}
	}
}

func (slow) Count(context.Context, []delegate.Message, []delegate.Tool) (int, bool, error) {
	return 0, false, nil
}
func (slow) Limits() delegate.Limits { return delegate.Limits{Engine: "ollama", Context: 9} }

func TestWatchEndsWhatStalls(t *testing.T) {
	for name, c := range map[string]struct {
		client slow
		stalls bool
		after  time.Duration
	}{
		"progress until the end": {slow{50 * time.Second, 5}, false, 250 * time.Second},
		"nothing at first":       {slow{time.Hour, 0}, true, 5 * time.Minute},
		"progress for ever":      {slow{50 * time.Second, 0}, true, 10 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			w := Watch(c.client, Endpoint{Profile: "p", First: 5 * time.Minute, Idle: time.Minute, Total: 10 * time.Minute})
			out, err := w.Complete(t.Context(), delegate.Request{})
			var e *Error
			if stalled := errors.As(err, &e) && e.Kind == Stalled; stalled != c.stalls || out.Text == "" {
				t.Errorf("%s: %q %v", name, out.Text, err)
			}
			if took := time.Since(start); took != c.after {
				t.Errorf("%s: ended after %s, want %s", name, took, c.after)
			}
			if l := w.Limits(); l.Profile != "p" || l.Context != 9 {
				t.Errorf("%+v", l)
			}
		})
	}
	// The caller's own end stays the caller's.
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Watch(slow{time.Hour, 0}, Endpoint{}).Complete(ctx, delegate.Request{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
