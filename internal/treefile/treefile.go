// Package treefile reads, replaces and removes single files below a root. It never goes through a link, and never
// writes into an existing file: a hard link to somebody's file elsewhere would carry the text there.
package treefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"
)

// Errors that callers branch on.
var (
	ErrLink    = errors.New("is a link")
	ErrNotFile = errors.New("is no regular file")
	ErrTooBig  = errors.New("is too large")
)

// TempPrefix begins the names of temporary files in a tree: dotfiles without a source ending, which no build reads.
const TempPrefix = ".localllm-"

// Root is an open folder. It may be used from many goroutines.
type Root struct{ root *os.Root }

// Open opens the folder at dir, which may itself be reached through links.
func Open(dir string) (*Root, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Root{root}, nil
}

// Close lets go of the folder.
func (r *Root) Close() error { return r.root.Close() }

// FS is the folder as a file system for looking around; links that leave it can't be followed there.
func (r *Root) FS() fs.FS { return r.root.FS() }

// Name is the path the folder was opened with.
func (r *Root) Name() string { return r.root.Name() }

// dir opens the folder part of rel by one component after the other. Each is checked to be a folder and no link, and
// the one that was opened to be the one that was checked: somebody may be swapping them all the while.
func (r *Root) dir(rel string) (*os.Root, error) {
	at, err := r.root.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	if rel == "." || rel == "" {
		return at, nil
	}
	for part := range strings.SplitSeq(rel, "/") {
		next, err := enter(at, part)
		_ = at.Close()
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: rel, Err: err}
		}
		at = next
	}
	return at, nil
}

func enter(at *os.Root, part string) (*os.Root, error) {
	want, err := at.Lstat(part)
	if err != nil {
		return nil, err
	}
	if want.Mode()&fs.ModeSymlink != 0 {
		return nil, ErrLink
	}
	if !want.IsDir() {
		return nil, fs.ErrNotExist
	}
	next, err := at.OpenRoot(part)
	if err != nil {
		return nil, err
	}
	got, err := next.Stat(".")
	if err == nil && !os.SameFile(want, got) {
		err = ErrLink
	}
	if err != nil {
		_ = next.Close()
		return nil, err
	}
	return next, nil
}

// split opens the folder of rel, a clean path with slashes.
func (r *Root) split(rel string) (dir *os.Root, name string, err error) {
	if !fs.ValidPath(rel) || rel == "." {
		return nil, "", &fs.PathError{Op: "open", Path: rel, Err: fs.ErrInvalid}
	}
	folder, name := path.Split(rel)
	dir, err = r.dir(path.Clean(folder))
	return dir, name, err
}

// Stat says what rel is, itself and not what it may point to.
func (r *Root) Stat(rel string) (fs.FileInfo, error) {
	if rel == "." {
		return r.root.Lstat(".")
	}
	dir, name, err := r.split(rel)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.Lstat(name)
}

// Read returns a regular file of at most limit bytes, and what it is. It never blocks on a pipe.
func (r *Root) Read(rel string, limit int64) ([]byte, fs.FileInfo, error) {
	dir, name, err := r.split(rel)
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close()
	info, err := dir.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return nil, nil, &fs.PathError{Op: "read", Path: rel, Err: ErrLink}
	}
	if !info.Mode().IsRegular() {
		return nil, nil, &fs.PathError{Op: "read", Path: rel, Err: ErrNotFile}
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if opened, err := f.Stat(); err != nil || !os.SameFile(info, opened) {
		return nil, nil, &fs.PathError{Op: "read", Path: rel, Err: ErrNotFile}
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = &fs.PathError{Op: "read", Path: rel, Err: ErrTooBig}
	}
	return data, info, err
}

// Form is how a file shall be beside its text. A zero Mode or Time leaves it to the system; Like gives the owner.
type Form struct {
	Mode fs.FileMode
	Time time.Time
	Like fs.FileInfo
}

// Replace puts data at rel in one step, by a temporary file named temp beside it, which is gone whatever happens
// short of a crash. A link at rel is replaced itself.
func (r *Root) Replace(rel, temp string, data []byte, form Form) error {
	dir, name, err := r.split(rel)
	if err != nil {
		return err
	}
	defer dir.Close()
	if info, err := dir.Lstat(name); err == nil && info.IsDir() {
		return &fs.PathError{Op: "write", Path: rel, Err: ErrNotFile}
	}
	if err := fill(dir, temp, data, form); err != nil {
		_ = dir.Remove(temp)
		return fmt.Errorf("writing %s: %w", rel, err)
	}
	if err := dir.Rename(temp, name); err != nil {
		_ = dir.Remove(temp)
		return fmt.Errorf("writing %s: %w", rel, err)
	}
	return nil
}

func fill(dir *os.Root, temp string, data []byte, form Form) error {
	_ = dir.Remove(temp)
	mode := fs.FileMode(0o600) // until it is whole and has its own
	if form.Mode == 0 {
		mode = 0o666
		if bytes.HasPrefix(data, []byte("#!")) {
			mode = 0o777
		}
	}
	f, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	own(f, form.Like)
	if err == nil && form.Mode != 0 {
		err = f.Chmod(form.Mode)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil && !form.Time.IsZero() {
		err = dir.Chtimes(temp, time.Time{}, form.Time)
	}
	return err
}

// Restamp gives a file the mode and time of form, its text left alone.
func (r *Root) Restamp(rel string, form Form) error {
	dir, name, err := r.split(rel)
	if err != nil {
		return err
	}
	defer dir.Close()
	info, err := dir.Lstat(name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return &fs.PathError{Op: "restamp", Path: rel, Err: ErrNotFile}
	}
	if info.Mode() != form.Mode {
		if err := dir.Chmod(name, form.Mode); err != nil {
			return err
		}
	}
	if info.ModTime().Equal(form.Time) {
		return nil
	}
	return dir.Chtimes(name, time.Time{}, form.Time)
}

// Remove removes a file, or an empty folder. What is not there is fine.
func (r *Root) Remove(rel string) error {
	dir, name, err := r.split(rel)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Missing lists the folders that would have to be made for rel, outermost first.
func (r *Root) Missing(rel string) ([]string, error) {
	var missing []string
	for dir := path.Dir(rel); dir != "."; dir = path.Dir(dir) {
		info, err := r.Stat(dir)
		switch {
		case err == nil && info.IsDir():
			return missing, nil
		case err == nil:
			return nil, &fs.PathError{Op: "mkdir", Path: dir, Err: ErrNotFile}
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
		missing = append([]string{dir}, missing...)
	}
	return missing, nil
}

// MakeFolder makes one folder; one that is there already is fine.
func (r *Root) MakeFolder(rel string) error {
	dir, name, err := r.split(rel)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Mkdir(name, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// nearest opens the innermost folder of rel that exists.
func (r *Root) nearest(rel string) (*os.Root, error) {
	for dir := path.Dir(rel); ; dir = path.Dir(dir) {
		folder, err := r.dir(dir)
		if err == nil || dir == "." || !errors.Is(err, fs.ErrNotExist) {
			return folder, err
		}
	}
}
