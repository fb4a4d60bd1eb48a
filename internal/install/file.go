package install

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// largest is more than any configuration has.
const largest = 32 << 20

var byteOrderMark = []byte("\xef\xbb\xbf")

// target is a file to change, as it is now.
type target struct {
	path   string // as the client names it
	real   string // where the bytes are, links followed
	backup string
	text   []byte
	exists bool
	mode   os.FileMode
}

// open reads the file, or refuses it with a sentence: a link is followed only to an ordinary file, and in a project
// only to one in the project, for a project's files may be anybody's.
func open(path string, o Options) (target, error) {
	t := target{path: path, real: path, backup: path + ".localllm-backup", mode: 0o644}
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return t, insideProject(filepath.Dir(path), o)
	}
	if err != nil {
		return t, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		if t.real, err = filepath.EvalSymlinks(path); err != nil {
			return t, errors.New("it is a link that leads nowhere")
		}
		if info, err = os.Stat(t.real); err != nil {
			return t, err
		}
		t.backup = t.real + ".localllm-backup"
	}
	if err := insideProject(t.real, o); err != nil {
		return t, err
	}
	switch {
	case !info.Mode().IsRegular():
		return t, errors.New("it is no ordinary file")
	case info.Mode().Perm()&0o200 == 0:
		return t, errors.New("it is read-only")
	case info.Size() > largest:
		return t, fmt.Errorf("it has %d bytes, which no configuration has", info.Size())
	}
	t.exists, t.mode = true, info.Mode().Perm()
	t.text, err = os.ReadFile(t.real)
	return t, err
}

// insideProject refuses, in project scope, a path that links lead out of the project. The path itself may not exist.
func insideProject(path string, o Options) error {
	if o.Scope != Project {
		return nil
	}
	root, err := filepath.EvalSymlinks(o.Project)
	if err != nil {
		return err
	}
	for {
		real, err := filepath.EvalSymlinks(path)
		if errors.Is(err, fs.ErrNotExist) && path != filepath.Dir(path) {
			path = filepath.Dir(path)
			continue
		}
		if err != nil {
			return err
		}
		if rel, err := filepath.Rel(root, real); err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return errors.New("a link leads out of the project")
		}
		return nil
	}
}

func (t target) readBackup() (text []byte, there bool, err error) {
	info, err := os.Lstat(t.backup)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if !info.Mode().IsRegular() || info.Size() > largest {
		return nil, false, fmt.Errorf("%s is no ordinary file", t.backup)
	}
	text, err = os.ReadFile(t.backup)
	return text, err == nil, err
}

// withoutMark runs f on the text behind a byte order mark and puts the mark back.
func withoutMark(text []byte, f func([]byte) ([]byte, error)) ([]byte, error) {
	rest, marked := bytes.CutPrefix(text, byteOrderMark)
	out, err := f(rest)
	if err == nil && marked {
		out = append(bytes.Clone(byteOrderMark), out...)
	}
	return out, err
}
