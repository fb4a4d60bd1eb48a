// Package treelock lets one delegation at a time prove something in a project, across processes and through whatever
// path each of them found it. It never waits for a process that has died.
package treelock

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"localllm/delegate"
	"localllm/internal/filelock"
	"localllm/internal/journal"
	"localllm/internal/paths"
)

// Tree is the lock of one project. It implements delegate.Locker.
type Tree struct {
	Layout  paths.Layout
	Project string

	// Repaired is told what a crash had left and was put back before the lock was given out; may be nil.
	Repaired func(journal.Repaired)
}

// Lock is delegate.Locker's. What a crashed delegation left in the project is put back first: nothing is proven on a
// tree that is half somebody else's.
func (t Tree) Lock(ctx context.Context, waiting func()) (unlock func(), err error) {
	path, err := t.path()
	if err != nil {
		return nil, err
	}
	lock, err := filelock.Try(path)
	if errors.Is(err, filelock.ErrHeld) {
		if waiting != nil {
			waiting()
		}
		lock, err = filelock.Take(ctx, path)
	}
	if err != nil {
		return nil, fmt.Errorf("locking the project: %w", err)
	}
	done, err := journal.Settle(ctx, t.Layout, t.Project)
	if err != nil {
		_ = lock.Release()
		if ctx.Err() != nil {
			return nil, err
		}
		return nil, &delegate.Refusal{Reason: "an earlier delegation was killed in the middle, and its files can't be put back: " + err.Error(),
			Hint: "make room or mend the permissions and call again; the earlier forms of the files are in the folder that the message names"}
	}
	if t.Repaired != nil && done.Changes > 0 {
		t.Repaired(done)
	}
	return func() { _ = lock.Release() }, nil
}

func (t Tree) path() (string, error) {
	key, err := journal.Key(t.Project)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(t.Layout.Run, "trees")
	return filepath.Join(dir, key+".lock"), paths.Private(dir)
}
