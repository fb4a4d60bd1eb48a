// Package filelock locks files between processes. The kernel lets go of a lock when its holder dies, however it
// dies; nothing here depends on a clock or a process id, and no lock file is ever removed by this package.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// ErrHeld means that somebody else holds the lock.
var ErrHeld = errors.New("the lock is held by another process")

// Lock is a held exclusive lock.
type Lock struct{ f *os.File }

// Try takes the lock on path at once or returns ErrHeld. The file is made, mode 0600, if it is not there.
func Try(path string) (*Lock, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	for range lookers {
		if err = tryLock(f); !errors.Is(err, ErrHeld) {
			break
		}
		// Whoever only looks (Held, Wait) has the lock shared for a moment; that is no holder.
		if looked := tryShared(f); looked != nil {
			err = looked
			break
		}
		if err = unlock(f); err != nil {
			break
		}
		err = ErrHeld
		time.Sleep(100 * time.Microsecond)
	}
	if err != nil {
		_ = f.Close()
		return nil, wrap(path, err)
	}
	return &Lock{f}, nil
}

// lookers bounds how often Try lets somebody who only looks go first; a second of them is no accident.
const lookers = 10_000

// Take waits for the lock on path until ctx ends. Waiting polls, with at most 20 ms between two looks: a blocking
// flock can't be given up when ctx ends.
func Take(ctx context.Context, path string) (*Lock, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	pause := time.Millisecond
	for {
		err := tryLock(f)
		if err == nil {
			return &Lock{f}, nil
		}
		if !errors.Is(err, ErrHeld) {
			_ = f.Close()
			return nil, wrap(path, err)
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("waiting for the lock %s: %w", path, ctx.Err())
		case <-time.After(pause):
		}
		pause = min(2*pause, 20*time.Millisecond)
	}
}

// Wait blocks a thread until nobody holds path exclusively, and says so by returning; it holds nothing afterwards.
// It costs no wake-ups. A missing file counts as free.
func Wait(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening %s: %w", path, err)
	}
	defer f.Close()
	if err := waitShared(f); err != nil {
		return wrap(path, err)
	}
	return nil
}

// Held reports whether another holder has path now. A missing file is not held.
func Held(path string) (bool, error) {
	f, err := os.OpenFile(path, os.O_RDONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("opening %s: %w", path, err)
	}
	defer f.Close()
	switch err := tryShared(f); {
	case err == nil:
		return false, nil
	case errors.Is(err, ErrHeld):
		return true, nil
	default:
		return false, wrap(path, err)
	}
}

// File is the locked file, for its holder to read and write.
func (l *Lock) File() *os.File { return l.f }

// Release lets go of the lock. Closing is what releases it; the file stays.
func (l *Lock) Release() error { return l.f.Close() }

func open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock: %w", err)
	}
	return f, nil
}

func wrap(path string, err error) error {
	if errors.Is(err, ErrHeld) {
		return err
	}
	return fmt.Errorf("locking %s: %w", path, err)
}
