// Package logfile is the delegation log on disk: it appends whole lines under a lock and opens the log for reading.
// It never goes through a symbolic link, never leaves the project's folder and never removes a line.
package logfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"localllm/internal/filelock"
	"localllm/internal/hint"
	"localllm/internal/paths"
	"localllm/stats"
)

// Limit is the size at which the log is put aside and a new one begun.
const Limit = 64 << 20

// patience is how long an append waits for other writers. They hold the lock for less than a millisecond each, so
// only a stuck one makes it end.
const patience = 10 * time.Second

var (
	folder   = path.Dir(paths.DelegationLog)
	lockFile = folder + "/delegation-log.lock"
)

// Log is one project's log. It holds no file open between calls, and may be used by many goroutines.
type Log struct {
	root   string
	redact func(string) string
	limit  int64
}

// Open names the log of the project at root; it touches nothing. redact takes the secrets out of a text before it
// is written; it may be nil for a log that is only read.
func Open(root string, redact func(string) string) *Log {
	return &Log{root: root, redact: redact, limit: Limit}
}

// Path is where the log is.
func (l *Log) Path() string { return filepath.Join(l.root, filepath.FromSlash(paths.DelegationLog)) }

// Append writes one record as one line in one write. After an error the log is as it was.
func (l *Log) Append(ctx context.Context, r stats.Record) error {
	if l.redact == nil {
		return errors.New("logging without taking secrets out: the log was opened for reading")
	}
	line, err := r.Line(l.redact)
	if err != nil {
		return err
	}
	if err := l.append(ctx, line); err != nil {
		return hint.Add(fmt.Errorf("logging to %s: %w", l.Path(), err), advice(err)...)
	}
	return nil
}

func advice(err error) []string {
	switch {
	case errors.Is(err, errNotPlain):
		return []string{"move what is there out of the way: the log has to be a plain file in plain folders"}
	case errors.Is(err, fs.ErrPermission):
		return []string{"make .claude/workflow writable for this user"}
	}
	return nil
}

func (l *Log) append(ctx context.Context, line []byte) error {
	root, err := os.OpenRoot(l.root)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := makeFolder(root); err != nil {
		return err
	}
	lock, err := l.lock(ctx, root)
	if err != nil {
		return err
	}
	defer lock.Release()

	f, size, err := openPlain(root, paths.DelegationLog, os.O_RDWR|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if size > 0 && size+int64(len(line)) > l.limit {
		if f, err = rotate(root, f, size); err != nil {
			return err
		}
		size = 0
	}
	return write(f, size, line)
}

// write appends line, beginning a new one if an earlier writer died in the middle of its own. What a full disk let
// through is taken back.
func write(f *os.File, size int64, line []byte) error {
	torn, err := torn(f, size)
	if err != nil {
		return err
	}
	if torn {
		line = append([]byte{'\n'}, line...)
	}
	if n, err := f.Write(line); err != nil {
		if n > 0 {
			err = errors.Join(err, f.Truncate(size))
		}
		return err
	}
	return nil
}

// torn says whether the log ends in the middle of a line.
func torn(f *os.File, size int64) (bool, error) {
	if size == 0 {
		return false, nil
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], size-1); err != nil {
		return false, fmt.Errorf("looking for a torn last line: %w", err)
	}
	return last[0] != '\n', nil
}

// rotate puts the full log aside under the next number and begins a new one.
func rotate(root *os.Root, full *os.File, size int64) (*os.File, error) {
	rotated, err := rotatedNames(root)
	if err != nil {
		return full, err
	}
	next := 1
	if n := len(rotated); n > 0 {
		next = rotated[n-1].number + 1
	}
	if torn, err := torn(full, size); err != nil {
		return full, err
	} else if torn {
		if _, err := full.Write([]byte{'\n'}); err != nil {
			return full, err
		}
	}
	// Windows renames no open file.
	if err := full.Close(); err != nil {
		return full, err
	}
	if err := root.Rename(paths.DelegationLog, rotatedName(next)); err != nil {
		return full, fmt.Errorf("putting the full log aside: %w", err)
	}
	f, _, err := openPlain(root, paths.DelegationLog, os.O_RDWR|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return full, err
	}
	return f, nil
}

// lock takes the log's lock, which is a file beside it: the log's own would go away with a rotation.
func (l *Log) lock(ctx context.Context, root *os.Root) (*filelock.Lock, error) {
	// filelock works by path and would follow a link: make sure of a plain file first, and that it is the one locked.
	f, _, err := openPlain(root, lockFile, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	lock, err := filelock.Take(ctx, filepath.Join(l.root, filepath.FromSlash(lockFile)))
	if err != nil {
		return nil, err
	}
	if err := sameFile(f, lock.File()); err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	return lock, nil
}

func sameFile(a, b *os.File) error {
	x, err := a.Stat()
	if err != nil {
		return err
	}
	y, err := b.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(x, y) {
		return fmt.Errorf("%s was exchanged under our hands: %w", a.Name(), errNotPlain)
	}
	return nil
}

var errNotPlain = errors.New("not a plain file in plain folders")

// makeFolder makes the log's folders. The first may be the project's own and has the usual mode.
func makeFolder(root *os.Root) error {
	for _, dir := range []string{path.Dir(folder), folder} {
		if err := root.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return plainFolders(root)
}

// plainFolders refuses a folder that is a link, though it should point inside the project.
func plainFolders(root *os.Root) error {
	for _, dir := range []string{path.Dir(folder), folder} {
		info, err := root.Lstat(dir)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("%s is %s: %w", dir, describe(info.Mode()), errNotPlain)
		}
	}
	return nil
}

// openPlain opens a regular file that no link leads to. It looks before, so that a FIFO can't hang it, and again
// after, so that what it looked at is what it has.
func openPlain(root *os.Root, name string, flag int) (*os.File, int64, error) {
	info, err := root.Lstat(name)
	if err == nil && !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s is %s: %w", name, describe(info.Mode()), errNotPlain)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, err
	}
	f, err := root.OpenFile(name, flag, 0o600)
	if err != nil {
		return nil, 0, err
	}
	size, err := check(root, f, name, flag&os.O_CREATE != 0)
	if err != nil {
		_ = f.Close()
		return nil, 0, err
	}
	return f, size, nil
}

func check(root *os.Root, f *os.File, name string, ours bool) (int64, error) {
	now, err := root.Lstat(name)
	if err != nil {
		return 0, err
	}
	got, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if !now.Mode().IsRegular() || !os.SameFile(now, got) {
		return 0, fmt.Errorf("%s was exchanged under our hands: %w", name, errNotPlain)
	}
	if ours && got.Mode().Perm()&0o077 != 0 {
		if err := private(f); err != nil {
			return 0, err
		}
	}
	return got.Size(), nil
}

func describe(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m.IsDir():
		return "a folder"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m.IsRegular():
		return "a file"
	}
	return "a special file"
}
