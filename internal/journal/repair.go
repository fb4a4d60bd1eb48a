package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"localllm/internal/filelock"
	"localllm/internal/paths"
	"localllm/internal/scratch"
	"localllm/internal/treefile"
)

// Repaired says what was put back after a crash.
type Repaired struct {
	Changes   int      // that had been left in the middle
	Files     []string // that were put back
	Conflicts []string // files that somebody changed since, left as they are
	Saved     []string // folders with the earlier forms of those
}

// Repair puts back what a delegation that died in the middle had written in the project, and first ends what its commands
// have left running. It looks only at journals whose owner is gone, and costs next to nothing where there is none. It is
// safe to call from many processes.
func Repair(layout paths.Layout, projectRoot string) (Repaired, error) {
	return repair(layout, projectRoot, tryTwice)
}

// tryTwice waits a little for a lock that seems held: a child that the dead owner was about to start keeps what it
// inherited until its own program begins.
func tryTwice(path string) (*filelock.Lock, error) {
	ctx, cancel := context.WithTimeout(context.Background(), inherited)
	defer cancel()
	lock, err := filelock.Take(ctx, path)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, filelock.ErrHeld
	}
	return lock, err
}

const inherited = 50 * time.Millisecond

// Settle is Repair for the holder of the tree's lock: no change is under way then, so a journal that is held is just
// being repaired by somebody, which it waits for.
func Settle(ctx context.Context, layout paths.Layout, projectRoot string) (Repaired, error) {
	return repair(layout, projectRoot, func(path string) (*filelock.Lock, error) { return filelock.Take(ctx, path) })
}

func repair(layout paths.Layout, projectRoot string, take func(string) (*filelock.Lock, error)) (Repaired, error) {
	scratch.Sweep(layout)
	var done Repaired
	home, err := Home(layout, projectRoot)
	if err != nil {
		return done, err
	}
	folders, err := os.ReadDir(home)
	if errors.Is(err, fs.ErrNotExist) {
		return done, nil
	}
	if err != nil {
		return done, fmt.Errorf("looking for journals: %w", err)
	}
	var errs []error
	for _, f := range folders {
		dir := filepath.Join(home, f.Name())
		if strings.HasPrefix(f.Name(), ".new-") {
			sweep(dir, f)
			continue
		}
		if err := repairOne(layout, dir, take, &done); err != nil {
			errs = append(errs, fmt.Errorf("repairing after a crash, from %s: %w", dir, err))
		}
	}
	_ = os.Remove(home)
	return done, errors.Join(errs...)
}

// sweep removes what a process left that died while it opened a journal: nothing had been written by it.
func sweep(dir string, f fs.DirEntry) {
	if info, err := f.Info(); err == nil && time.Since(info.ModTime()) > time.Hour {
		_ = os.RemoveAll(dir)
	}
}

func repairOne(layout paths.Layout, dir string, take func(string) (*filelock.Lock, error), done *Repaired) error {
	if _, err := os.Stat(filepath.Join(dir, lockName)); errors.Is(err, fs.ErrNotExist) {
		// It is being removed, or was when its process died: the log goes first, the lock with the rest.
		if _, err := os.Stat(filepath.Join(dir, logName)); errors.Is(err, fs.ErrNotExist) {
			_ = os.RemoveAll(dir)
		}
		return nil
	}
	lock, err := take(filepath.Join(dir, lockName))
	if errors.Is(err, filelock.ErrHeld) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	j := &Journal{dir: dir, lock: lock, byPath: map[string]*entry{}}
	j.log, err = os.Open(filepath.Join(dir, logName))
	if errors.Is(err, fs.ErrNotExist) { // it was final already
		j.discard()
		return nil
	}
	if err == nil {
		err = j.undoDead(layout, done)
	}
	if err != nil {
		_ = lock.Release()
	}
	return err
}

func (j *Journal) undoDead(layout paths.Layout, done *Repaired) error {
	defer j.log.Close()
	h, err := j.read(j.log)
	if err != nil {
		return err
	}
	if h == nil { // it died while it wrote the first line
		j.discard()
		return nil
	}
	j.id, j.saved = h.ID, filepath.Join(layout.State, "saved", safe(h.ID))
	if j.root, err = treefile.Open(h.Root); err != nil {
		if errors.Is(err, fs.ErrNotExist) { // the whole folder is gone, and nothing is left to put back
			j.discard()
			return nil
		}
		return err
	}
	defer j.root.Close()
	conflicts, err := j.Undo()
	done.Changes++
	for _, e := range j.entries {
		if len(e.Ours) > 0 && !slices.Contains(conflicts, e.Path) {
			done.Files = append(done.Files, e.Path)
		}
	}
	if len(conflicts) > 0 {
		done.Conflicts = append(done.Conflicts, conflicts...)
		done.Saved = append(done.Saved, j.saved)
	}
	return err
}
