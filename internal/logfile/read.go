package logfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"localllm/internal/hint"
	"localllm/internal/paths"
)

// Reader is the whole log, put-aside parts first.
type Reader struct {
	parts []*os.File
	sizes []int64
}

// Read opens the log for reading as it is at this moment. A project without one has an empty Reader.
func (l *Log) Read(ctx context.Context) (*Reader, error) {
	r, err := l.open(ctx)
	if err != nil {
		return nil, hint.Add(fmt.Errorf("reading %s: %w", l.Path(), err), advice(err)...)
	}
	return r, nil
}

func (l *Log) open(ctx context.Context) (*Reader, error) {
	root, err := os.OpenRoot(l.root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := plainFolders(root); errors.Is(err, fs.ErrNotExist) {
		return &Reader{}, nil
	} else if err != nil {
		return nil, err
	}
	// Under the lock no line is half written and no rotation is half done. Who can't write here reads without.
	if lock, err := l.lock(ctx, root); err == nil {
		defer lock.Release()
	} else if ctx.Err() != nil {
		return nil, err
	}
	rotated, err := rotatedNames(root)
	if err != nil {
		return nil, err
	}
	r := &Reader{}
	for _, part := range rotated {
		if err := r.add(root, part.name); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	if err := r.add(root, paths.DelegationLog); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *Reader) add(root *os.Root, name string) error {
	f, size, err := openPlain(root, name, os.O_RDONLY)
	if err != nil {
		return err
	}
	r.parts = append(r.parts, f)
	r.sizes = append(r.sizes, size)
	return nil
}

// Parts are the files to read, oldest first, each up to where it ended when the Reader was opened.
func (r *Reader) Parts() []io.Reader { return r.From(0) }

// From is Parts without the first n bytes of all. A rotation moves no byte in that count.
func (r *Reader) From(n int64) []io.Reader {
	var parts []io.Reader
	for i, f := range r.parts {
		begin := min(n, r.sizes[i])
		n -= begin
		if begin < r.sizes[i] {
			parts = append(parts, io.NewSectionReader(f, begin, r.sizes[i]-begin))
		}
	}
	return parts
}

// Size is the bytes in all parts.
func (r *Reader) Size() int64 {
	var n int64
	for _, size := range r.sizes {
		n += size
	}
	return n
}

// Close closes the parts.
func (r *Reader) Close() error {
	var errs []error
	for _, f := range r.parts {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
