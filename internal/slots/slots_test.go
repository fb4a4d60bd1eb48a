package slots

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"localllm/internal/paths"
)

func pool(t *testing.T, total int) Pool {
	t.Helper()
	return Open(paths.Layout{Run: t.TempDir()}, "http://127.0.0.1:1", total)
}

func take(t *testing.T, p Pool, preferred int) *Slot {
	t.Helper()
	s, err := p.Take(t.Context(), preferred, func() { t.Error("had to wait") })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestThePreferredPlaceComesFirstAndThenAnyOther(t *testing.T) {
	p := pool(t, 3)
	a, b, c := take(t, p, 2), take(t, p, 2), take(t, p, 2)
	if a.Index != 2 || b.Index != 0 || c.Index != 1 {
		t.Errorf("got %d, %d, %d", a.Index, b.Index, c.Index)
	}
	if p.Busy() != 3 {
		t.Errorf("busy %d", p.Busy())
	}
	b.Release()
	if got := take(t, p, 1); got.Index != 0 {
		t.Errorf("got %d, want the only free one", got.Index)
	}
}

func TestWaitingEndsWithAReleaseOrTheContext(t *testing.T) {
	p := pool(t, 1)
	held := take(t, p, -1)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	told := 0
	if _, err := p.Take(ctx, 0, func() { told++ }); !errors.Is(err, context.DeadlineExceeded) || told != 1 {
		t.Errorf("Take = %v, told %d times", err, told)
	}
	done := make(chan error, 1)
	go func() {
		s, err := p.Take(context.Background(), 0, nil)
		if err == nil {
			s.Release()
		}
		done <- err
	}()
	held.Release()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestEndpointsDoNotShare(t *testing.T) {
	layout := paths.Layout{Run: t.TempDir()}
	a, b := Open(layout, "http://127.0.0.1:1", 1), Open(layout, "http://127.0.0.1:2", 1)
	take(t, a, 0)
	take(t, b, 0)
}

func TestMorePlacesAreThoseThatNobodyHolds(t *testing.T) {
	p := pool(t, 4)
	mine, theirs := take(t, p, 1), take(t, p, 3)
	more := p.More(3)
	if len(more) != 2 || more[0].Index != 0 || more[1].Index != 2 {
		t.Fatalf("got %v beside %d and %d", more, mine.Index, theirs.Index)
	}
	if none := p.More(1); len(none) != 0 {
		t.Errorf("got %v though all are held", none)
	}
	more[1].Release()
	if again := p.More(2); len(again) != 1 || again[0].Index != 2 {
		t.Errorf("got %v after a release", again)
	}
}

func TestCleanKeepsWhatIsHeldOrWasUsed(t *testing.T) {
	layout := paths.Layout{Run: t.TempDir()}
	old, held, used := Open(layout, "old", 1), Open(layout, "held", 1), Open(layout, "used", 1)
	take(t, old, 0).Release()
	kept := take(t, held, 0)
	defer kept.Release()
	take(t, used, 0).Release()
	long := time.Now().Add(-time.Hour)
	for _, p := range []Pool{old, held, used} {
		if err := os.Chtimes(p.dir, long, long); err != nil {
			t.Fatal(err)
		}
	}
	take(t, used, 0).Release()
	Clean(layout, 10*time.Minute)
	for name, p := range map[string]Pool{"old": old, "held": held, "used": used} {
		if _, err := os.Stat(p.dir); errors.Is(err, os.ErrNotExist) != (name == "old") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if take(t, old, 0).Index != 0 {
		t.Error("a cleaned endpoint has no place")
	}
}
