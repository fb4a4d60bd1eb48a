package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"syscall"

	"github.com/rogpeppe/go-internal/diff"

	"localllm/delegate"
	"localllm/internal/journal"
)

// change is one try at the outputs. Writes come one at a time.
type change struct {
	w *Workspace
	j *journal.Journal

	mu       sync.Mutex
	allow    []string
	admitted map[string]delegate.Output
	real     map[string]string // declared path → path without links
	order    []string          // declared paths, as written
}

// Begin is delegate.Tree's.
func (w *Workspace) Begin(id string, outputs []delegate.Output, allow []string) (delegate.Change, error) {
	c := &change{w: w, allow: allow, admitted: map[string]delegate.Output{}, real: map[string]string{}}
	for _, o := range outputs {
		c.admitted[o.Path] = o
	}
	j, err := journal.Begin(w.layout, w.project, id, w.root)
	if err != nil {
		return nil, c.failed("the journal", fmt.Errorf("nothing was written: %w", err))
	}
	c.j = j
	return c, nil
}

// Write is delegate.Change's.
func (c *change) Write(files []delegate.File) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.prepare(files); err != nil {
		return err
	}
	for _, f := range files {
		real := c.real[f.Path]
		old, err := c.j.Before(real)
		if err != nil {
			return err
		}
		// A file that is the same already keeps its time, unless an earlier write of ours has to be undone.
		if c.admittedExists(f.Path) && bytes.Equal(old, []byte(f.Body)) && c.untouched(real) {
			continue
		}
		if err := c.j.Put(real, []byte(f.Body)); err != nil {
			return c.failed(f.Path, err)
		}
	}
	return nil
}

// prepare finds conflicts before anything is written, and keeps the earlier forms.
func (c *change) prepare(files []delegate.File) error {
	var conflict delegate.Conflict
	for _, f := range files {
		if _, known := c.real[f.Path]; !known {
			real, err := c.place(f.Path)
			if err != nil {
				return err
			}
			c.real[f.Path] = real
			c.order = append(c.order, f.Path)
		}
		if !c.asLeft(f.Path) {
			conflict.Paths = append(conflict.Paths, f.Path)
		}
	}
	if len(conflict.Paths) > 0 {
		return &conflict
	}
	for _, f := range files {
		if err := c.j.Keep(c.real[f.Path]); err != nil {
			return c.failed("the journal's copy of "+f.Path, err)
		}
	}
	return nil
}

// place finds where a declared path is. One that was not admitted, because the tool loop thought of it, has to pass
// the same checks now.
func (c *change) place(declared string) (string, error) {
	if _, admitted := c.admitted[declared]; !admitted {
		if _, err := c.w.Admit([]delegate.OutputFile{{Path: declared}}, c.allow); err != nil {
			return "", err
		}
	}
	real, err := c.w.real(declared)
	if err != nil {
		return "", c.w.explain(declared, err)
	}
	return real, nil
}

// asLeft reports whether a file is as Admit saw it, or as this change wrote it.
func (c *change) asLeft(declared string) bool {
	o, admitted := c.admitted[declared]
	data, _, err := c.w.root.Read(c.real[declared], journal.MaxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return !admitted || !o.Exists
	case err != nil:
		return false
	case c.j.Ours(c.real[declared], journal.Sum(data)):
		return true
	}
	if !admitted {
		return true // the tool loop's: seen here for the first time
	}
	return o.Exists && string(data) == o.Body
}

func (c *change) admittedExists(declared string) bool {
	o, ok := c.admitted[declared]
	return !ok || o.Exists
}

// untouched reports whether this change has not written real yet.
func (c *change) untouched(real string) bool {
	_, err := c.w.root.Stat(real)
	return err == nil && !c.j.Wrote(real)
}

// failed words an error of the disk.
func (c *change) failed(what string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &delegate.Refusal{Reason: what + " can't be written: the disk is full", Hint: "make room and delegate again"}
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENAMETOOLONG):
		return c.w.explain(what, err)
	}
	return err
}

// Undo is delegate.Change's.
func (c *change) Undo() ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	theirs, err := c.j.Undo()
	declared := map[string]string{}
	for d, r := range c.real {
		declared[r] = d
	}
	for i, r := range theirs {
		theirs[i] = declared[r]
	}
	return theirs, err
}

// Saved is delegate.Change's.
func (c *change) Saved() string { return c.j.Saved() }

// Keep is delegate.Change's.
func (c *change) Keep() ([]delegate.FileChange, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]delegate.FileChange, 0, len(c.order))
	for _, declared := range c.order {
		f, err := c.compare(declared)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, c.j.Commit()
}

func (c *change) compare(declared string) (delegate.FileChange, error) {
	old, now, existed, err := c.both(declared)
	if err != nil {
		return delegate.FileChange{}, err
	}
	f := delegate.FileChange{Path: declared, Change: "modified", SHA256: journal.Sum(now)}
	switch {
	case !existed:
		f.Change = "created"
		f.Added = lines(now)
	case bytes.Equal(old, now):
		f.Change = "unchanged"
	default:
		f.Added, f.Removed = count(diff.Diff("a", old, "b", now))
	}
	return f, nil
}

func (c *change) both(declared string) (old, now []byte, existed bool, err error) {
	real := c.real[declared]
	if old, err = c.j.Before(real); err != nil {
		return nil, nil, false, err
	}
	now, _, err = c.w.root.Read(real, journal.MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s is gone: verify or somebody else removed it", declared)
	}
	return old, now, c.j.Existed(real), err
}

// Diff is delegate.Change's.
func (c *change) Diff() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out strings.Builder
	for _, declared := range c.order {
		old, now, existed, err := c.both(declared)
		if err != nil {
			continue
		}
		from := "a/" + declared
		if !existed {
			from = "/dev/null"
		}
		out.Write(diff.Diff(from, old, "b/"+declared, now))
	}
	return out.String()
}

func lines(data []byte) int {
	n := bytes.Count(data, []byte("\n"))
	if len(data) > 0 && data[len(data)-1] != '\n' {
		n++
	}
	return n
}

// count counts the lines of a unified diff. Its head ends at the first @@: after that, a line that begins with --- is a
// removed one of SQL or Lua.
func count(d []byte) (added, removed int) {
	_, hunks, _ := bytes.Cut(d, []byte("\n@@"))
	for line := range bytes.Lines(hunks) {
		switch {
		case line[0] == '+':
			added++
		case line[0] == '-':
			removed++
		}
	}
	return added, removed
}
