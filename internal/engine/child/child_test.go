//go:build unix

package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"localllm/internal/proc"
	"localllm/lifecycle"
	"localllm/test/harness"
)

func TestMain(m *testing.M) {
	switch os.Getenv("CHILD_TEST_ROLE") {
	case "":
		goleak.VerifyTestMain(m)
	case "prints":
		for i := range 200 {
			fmt.Println("line", i)
		}
		fmt.Fprint(os.Stderr, "last words")
	case "hangs":
		live()
	case "moves": // by its memory alone, and then not any more
		var held [][]byte
		pace := time.Tick(20 * time.Millisecond)
		for range 100 {
			<-pace
			more := make([]byte, 2<<20)
			for i := range more {
				more[i] = 1
			}
			held = append(held, more)
		}
		live()
		runtime.KeepAlive(held)
	}
}

// live is what a child does until it is killed. One that a killed test left is gone within the hour.
func live() { time.Sleep(time.Hour) }

func begin(t *testing.T, role, log string, line func(string)) *Child {
	t.Helper()
	c, err := Start(Options{
		Path: os.Args[0], Env: append(os.Environ(), "CHILD_TEST_ROLE="+role, "GORACE=atexit_sleep_ms=0"), Grace: 100 * time.Millisecond, Line: line,
		Host: lifecycle.Host{Dir: t.TempDir(), LogPath: log, Nonce: proc.NewNonce()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Stop(context.Background()) })
	return c
}

func TestOutputGoesToLogTailAndLines(t *testing.T) {
	log := filepath.Join(t.TempDir(), "engine.log")
	for run := range 2 {
		var mu sync.Mutex
		var got []string
		c := begin(t, "prints", log, func(l string) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, l)
		})
		_ = c.Wait()
		harness.Until(t, "201 lines", 10*time.Second, func() bool { mu.Lock(); defer mu.Unlock(); return len(got) == 201 })
		mu.Lock()
		if got[0] != "line 0" || !slices.Contains(got, "last words") {
			t.Errorf("lines %q … %q", got[0], got[200])
		}
		mu.Unlock()
		if !strings.Contains(c.Tail(), "last words") || c.LogTrouble() != nil {
			t.Errorf("tail %q, trouble %v", c.Tail(), c.LogTrouble())
		}
		text, err := os.ReadFile(log)
		if err != nil || strings.Count(string(text), "\n") < 200 {
			t.Errorf("log of %d bytes, %v", len(text), err)
		}
		_, err = os.Stat(log + ".1")
		if (err == nil) != (run == 1) {
			t.Errorf("run %d: the log before it: %v", run, err)
		}
	}
}

func TestFullDiskDoesNotStopTheChild(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Log("there is no /dev/full here: only the missing folder is tried")
	}
	for _, log := range []string{"/dev/full", filepath.Join(t.TempDir(), "no", "folder")} {
		c := begin(t, "prints", log, nil)
		if err := c.Wait(); err != nil {
			t.Errorf("%s: the child: %v", log, err)
		}
		if c.LogTrouble() == nil || !strings.Contains(c.Tail(), "last words") {
			t.Errorf("%s: trouble %v, tail of %d bytes", log, c.LogTrouble(), len(c.Tail()))
		}
	}
	if _, err := os.Stat("/dev/full.1"); err == nil {
		t.Fatal("the device was set aside")
	}
}

func TestWatch(t *testing.T) {
	for role, c := range map[string]struct {
		cause error
		least time.Duration
	}{
		"prints": {ErrExited, 0},
		"hangs":  {ErrStalled, time.Second},
		"moves":  {ErrStalled, 2500 * time.Millisecond},
	} {
		began := time.Now()
		child := begin(t, role, "", nil)
		ticks := 0
		ctx, end := child.Watch(t.Context(), time.Second, func(int64) { ticks++ })
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: nothing for 20 s", role)
		}
		end()
		if cause := context.Cause(ctx); !errors.Is(cause, c.cause) || time.Since(began) < c.least {
			t.Errorf("%s: %v after %v", role, cause, time.Since(began))
		}
		if role == "moves" && ticks == 0 {
			t.Error("no ticks")
		}
	}
}

func TestWatchNoticesASuspendedChild(t *testing.T) {
	child := begin(t, "hangs", "", nil)
	if err := syscall.Kill(child.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, end := child.Watch(t.Context(), time.Hour, nil)
	defer end()
	select {
	case <-ctx.Done():
	case <-time.After(30 * time.Second):
		t.Fatal("not noticed")
	}
	if cause := context.Cause(ctx); !errors.Is(cause, ErrSuspended) || !errors.Is(cause, ErrStalled) || Still(cause) == Still(ErrStalled) {
		t.Errorf("%v", cause)
	}
}

func TestCauseOfABrokenConnection(t *testing.T) {
	talks := make(chan struct{})
	var once sync.Once
	c := begin(t, "prints", "", func(string) { once.Do(func() { close(talks) }) })
	<-talks
	ctx, end := c.Watch(t.Context(), time.Hour, nil)
	defer end()
	if err := c.Cause(ctx, fmt.Errorf("asking: %w", io.EOF)); !errors.Is(err, ErrExited) {
		t.Errorf("a connection that broke with the child's end: %v", err)
	}
	other := errors.New("a bad answer")
	alive := begin(t, "hangs", "", nil)
	ctx, end = alive.Watch(t.Context(), time.Hour, nil)
	defer end()
	if err := alive.Cause(ctx, other); !errors.Is(err, other) {
		t.Errorf("Cause = %v", err)
	}
}

func TestFreePort(t *testing.T) {
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nb\r\nc"), 1)
	f.Add([]byte(strings.Repeat("x", 40000)), 4096)
	f.Fuzz(func(t *testing.T, text []byte, cut int) {
		var out []byte
		l := lines{each: func(s string) {
			if strings.ContainsAny(s, "\r\n") {
				t.Errorf("a line with an end inside: %q", s)
			}
			out = append(out, s...)
		}}
		cut = max(0, min(cut, len(text)))
		l.write(text[:cut])
		l.write(text[cut:])
		l.flush()
		want := strings.NewReplacer("\n", "", "\r", "").Replace(string(text))
		if string(out) != want {
			t.Errorf("%q became %q", text, out)
		}
	})
}
