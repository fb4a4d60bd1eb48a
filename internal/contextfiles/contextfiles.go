// Package contextfiles reads what a task names as context: files, folders and globs, always in the same order, never
// from outside the folders that the call may read. It writes nothing and keeps nothing open.
package contextfiles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"localllm/delegate"
	"localllm/internal/hint"
)

// Defaults of Options. A local model's window holds about 100 KB to 1 MB of text; these only keep mistakes cheap.
const (
	MaxFiles     = 500
	MaxFileBytes = 1 << 20
	MaxBytes     = 8 << 20
	maxVisited   = 200_000 // entries that one pattern may look at
)

// Options say where to read and how much; a limit of 0 is its default.
type Options struct {
	Root         string   // the project's folder
	ReadRoots    []string // more folders, absolute, that this call may read
	MaxFiles     int
	MaxFileBytes int64
	MaxBytes     int64
}

// Set is what the patterns came to.
type Set struct {
	Files   []delegate.File // in the order of the patterns, each pattern's files by path, each file once
	Skipped []Skip          // found by a folder or glob and left out
}

// Skip is a file that was left out, and why.
type Skip struct {
	Path   string
	Reason string
}

// Refused is a pattern or path that is not read. A task with one is not tried.
type Refused struct {
	Path   string
	Reason string
}

func (r *Refused) Error() string { return r.Path + ": " + r.Reason }

// Expand reads the files that patterns name. A file that is named by itself must be readable text, or the error says
// why not; one that a folder or glob turns up is skipped instead. .gitignore counts for folders and globs only.
func Expand(ctx context.Context, o Options, patterns []string) (Set, error) {
	o = o.withDefaults()
	e := expansion{Options: o, seen: map[string]bool{}}
	defer e.close()
	for _, pattern := range patterns {
		if err := e.expand(ctx, pattern); err != nil {
			return Set{}, err
		}
	}
	return e.set, nil
}

// Read is one file of the project as it is now; exists is false where there is none. It is for declared outputs.
func Read(root, name string) (body string, exists bool, err error) {
	rel, err := local(name)
	if err != nil {
		return "", false, err
	}
	r, err := os.OpenRoot(root)
	if err != nil {
		return "", false, fmt.Errorf("opening the project: %w", err)
	}
	defer func() { _ = r.Close() }()
	data, reason, err := readFile(r, rel, MaxBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("reading %s: %w", name, err)
	case reason != "":
		return "", false, &Refused{name, reason}
	}
	return string(data), true, nil
}

func (o Options) withDefaults() Options {
	if o.MaxFiles <= 0 {
		o.MaxFiles = MaxFiles
	}
	if o.MaxFileBytes <= 0 {
		o.MaxFileBytes = MaxFileBytes
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = MaxBytes
	}
	return o
}

// expansion is one Expand under way.
type expansion struct {
	Options
	set   Set
	bytes int64
	seen  map[string]bool // by the path that the model sees
	open  []source
}

// source is a folder that may be read.
type source struct {
	dir   string
	label string // stands before its paths; empty for the project
	root  *os.Root
}

func (e *expansion) close() {
	for _, s := range e.open {
		_ = s.root.Close()
	}
}

// expand reads one pattern: an existing file or folder of that name comes before its meaning as a glob.
func (e *expansion) expand(ctx context.Context, pattern string) error {
	src, rel, err := e.locate(pattern)
	if err != nil {
		return err
	}
	info, err := src.root.Stat(rel)
	switch {
	case err == nil && info.IsDir():
		return e.walk(ctx, src, pattern, path.Join(rel, "**"))
	case err == nil:
		return e.named(src, rel)
	case strings.ContainsAny(rel, "*?[{"):
		return e.walk(ctx, src, pattern, rel)
	case errors.Is(err, fs.ErrNotExist):
		if _, lerr := src.root.Lstat(rel); lerr == nil {
			return &Refused{pattern, "is a symbolic link to nothing"}
		}
		return hint.Add(&Refused{pattern, "does not exist"}, "paths are relative to "+e.Root)
	case strings.Contains(err.Error(), "escapes"): // os.Root has no sentinel for it
		return &Refused{pattern, "leads outside of the folder"}
	}
	return fmt.Errorf("reading %s: %w", pattern, err)
}

// named takes a file that the caller named by itself.
func (e *expansion) named(src source, rel string) error {
	name := path.Join(src.label, rel)
	if e.seen[name] {
		return nil
	}
	if src.secret(rel) {
		return &Refused{name, "is a secret by its name and is not given to a model"}
	}
	body, reason, err := readText(src.root, rel, e.MaxFileBytes)
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	if reason != "" {
		return &Refused{name, reason}
	}
	return e.add(name, body)
}

func (e *expansion) add(name, body string) error {
	e.seen[name] = true
	e.bytes += int64(len(body))
	if e.bytes > e.MaxBytes {
		return hint.Add(&Refused{name, fmt.Sprintf("the context files up to here are over %d KiB together", e.MaxBytes>>10)},
			"name fewer files; a local model's window holds far less than this")
	}
	e.set.Files = append(e.set.Files, delegate.File{Path: name, Body: body})
	return nil
}

// locate finds the folder that a pattern belongs to and its path there, with slashes.
func (e *expansion) locate(pattern string) (source, string, error) {
	if !filepath.IsAbs(pattern) {
		rel, err := local(pattern)
		if err != nil {
			return source{}, "", err
		}
		src, err := e.source(e.Root, "")
		return src, rel, err
	}
	for _, dir := range append([]string{e.Root}, e.ReadRoots...) {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return source{}, "", fmt.Errorf("resolving %s: %w", dir, err)
		}
		rel, err := filepath.Rel(abs, pattern)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		if rel, err = local(rel); err != nil {
			return source{}, "", err
		}
		label := ""
		if dir != e.Root {
			label = e.label(abs)
		}
		src, err := e.source(dir, label)
		return src, rel, err
	}
	return source{}, "", hint.Add(&Refused{pattern, "is outside of the project and of the folders that may be read"},
		"name its folder in read_roots, or use a path relative to the project")
}

// label is a read root's short name; the absolute path would tie the prompt to this machine. It is never the name of
// something in the project.
func (e *expansion) label(abs string) string {
	for _, s := range e.open {
		if s.dir == abs {
			return s.label
		}
	}
	label := filepath.Base(abs)
	taken := func(l string) bool {
		for _, s := range e.open {
			if s.label == l {
				return true
			}
		}
		_, err := os.Lstat(filepath.Join(e.Root, l))
		return err == nil
	}
	for n := 2; taken(label); n++ {
		label = fmt.Sprintf("%s-%d", filepath.Base(abs), n)
	}
	return label
}

func (e *expansion) source(dir, label string) (source, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return source{}, fmt.Errorf("resolving %s: %w", dir, err)
	}
	for _, s := range e.open {
		if s.dir == abs {
			return s, nil
		}
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return source{}, fmt.Errorf("opening folder %s: %w", dir, err)
	}
	s := source{dir: abs, label: label, root: root}
	e.open = append(e.open, s)
	return s, nil
}

// local is a pattern as a clean relative path with slashes.
func local(pattern string) (string, error) {
	s := filepath.ToSlash(pattern)
	switch {
	case strings.TrimSpace(s) == "":
		return "", &Refused{`""`, "is empty"}
	case strings.ContainsRune(s, 0):
		return "", &Refused{strings.ReplaceAll(s, "\x00", `\0`), "holds a NUL"}
	case strings.HasPrefix(s, "/") || filepath.IsAbs(pattern):
		return "", &Refused{pattern, "is absolute"}
	}
	for _, part := range strings.Split(s, "/") {
		if part == ".." {
			return "", &Refused{pattern, "leads outside by .."}
		}
	}
	return path.Clean(s), nil
}
