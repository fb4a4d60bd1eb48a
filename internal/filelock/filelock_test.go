package filelock

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// The child branch holds the lock until it is killed, or its input ends with the test: a real process, because threads
// of one process prove nothing.
func TestMain(m *testing.M) {
	if path := os.Getenv("FILELOCK_HOLD"); path != "" {
		if _, err := Try(path); err != nil {
			os.Exit(3)
		}
		os.Stdout.WriteString("held\n")
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func holder(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FILELOCK_HOLD="+path)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatalf("the holder did not get the lock: %v", err)
	}
	return cmd
}

func TestSIGKILLReleases(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	child := holder(t, path)

	if _, err := Try(path); !errors.Is(err, ErrHeld) {
		t.Fatalf("Try while held: %v", err)
	}
	if held, err := Held(path); err != nil || !held {
		t.Fatalf("Held = %v, %v", held, err)
	}
	released := make(chan error, 1)
	go func() { released <- Wait(path) }()
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-released:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Wait did not notice the holder's death")
	}
	l, err := Try(path)
	if err != nil {
		t.Fatalf("after the holder's death: %v", err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestTakeEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	l, err := Try(path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := Take(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Take = %v", err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	got, err := Take(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	_ = got.Release()
}

func TestMissingFileIsFree(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none")
	if held, err := Held(path); err != nil || held {
		t.Errorf("Held = %v, %v", held, err)
	}
	if err := Wait(path); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Error("looking made the file")
	}
}

// Looking takes the lock shared for a moment. A Try that met that moment once took it for a holder: a task's runner
// died of somebody who only asked how far it was.
func TestLookingIsNotHolding(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	stop := make(chan struct{})
	var lookers sync.WaitGroup
	for range 4 {
		lookers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_, _ = Held(path)
				}
			}
		})
	}
	defer lookers.Wait()
	defer close(stop)
	for range 2000 {
		l, err := Try(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
	}
}
