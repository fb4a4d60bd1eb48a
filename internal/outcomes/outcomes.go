// Package outcomes remembers how delegations of each kind went on this machine, over all projects. It is a view of
// the logs that can be made again from them at any time, and it never keeps a task's text.
package outcomes

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"localllm/internal/atomicfile"
	"localllm/internal/filelock"
	"localllm/internal/logfile"
	"localllm/internal/paths"
	"localllm/scoring"
	"localllm/stats"
)

// Bounds of the index. What was seen longest ago goes first.
const (
	mostKinds    = 4096
	mostProjects = 1000
)

const (
	version   = 1
	indexFile = "outcomes.json"
	// The projects have a file of their own, so that a lost index can be made again.
	projectsFile = "outcome-projects.json"
	lockFile     = "outcomes.lock"
)

// Index is the outcomes kept in one folder. It holds no file open between calls.
type Index struct{ dir string }

// Open names the index in dir, which is the state folder; it touches nothing.
func Open(dir string) *Index { return &Index{dir: dir} }

type index struct {
	Version  int             `json:"version"`
	Projects map[string]mark `json:"projects"` // how far each project's log is taken in
	Kinds    []counted       `json:"kinds"`
}

// mark is how many bytes of a log, put-aside parts included, are in the index, up to a line's end.
type mark struct {
	Bytes int64  `json:"bytes"`
	Head  string `json:"head"`
}

type counted struct {
	scoring.Kind
	Tried     int   `json:"tried"`
	Succeeded int   `json:"succeeded"`
	Last      int64 `json:"last"` // when, in Unix seconds: what goes first when there is no room
}

type projects struct {
	Version int      `json:"version"`
	Roots   []string `json:"roots"` // the one used last is the last
}

// Sync takes in what the log of the project at root says since the last time, and gives what is known then. Call it
// after an append and before a score. It is safe to call from many processes; what one takes in, no other does again.
func (x *Index) Sync(ctx context.Context, root string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return fmt.Errorf("syncing the outcomes: %w", err)
	}
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	if err := paths.Private(x.dir); err != nil {
		return fmt.Errorf("syncing the outcomes: %w", err)
	}
	lock, err := filelock.Take(ctx, filepath.Join(x.dir, lockFile))
	if err != nil {
		return fmt.Errorf("syncing the outcomes: %w", err)
	}
	defer lock.Release()
	known, err := x.remember(root)
	if err != nil {
		return fmt.Errorf("syncing the outcomes: %w", err)
	}
	if err := x.sync(ctx, root, known); err != nil {
		return fmt.Errorf("syncing the outcomes: %w", err)
	}
	return nil
}

func (x *Index) sync(ctx context.Context, root string, known []string) error {
	idx, err := x.load()
	todo := []string{root}
	if err != nil {
		// Lost, damaged or of another version: the logs have it all.
		idx, todo = empty(), known
	}
	changed := err != nil
	for _, project := range todo {
		more, err := idx.takeIn(ctx, project)
		if errors.Is(err, errReplaced) {
			return x.rebuild(ctx, known)
		}
		if err != nil && (project == root || ctx.Err() != nil) {
			return err
		}
		changed = changed || more
	}
	if !changed {
		return nil
	}
	return x.save(idx)
}

// rebuild makes the index from all the logs there are.
func (x *Index) rebuild(ctx context.Context, known []string) error {
	idx := empty()
	for _, project := range known {
		if _, err := idx.takeIn(ctx, project); err != nil && ctx.Err() != nil {
			return err
		}
	}
	return x.save(idx)
}

// Similar is what is known of tasks like this one.
func (x *Index) Similar(t scoring.Task) (scoring.History, error) {
	idx, err := x.load()
	if errors.Is(err, fs.ErrNotExist) {
		return scoring.History{}, nil
	}
	if err != nil {
		return scoring.History{}, fmt.Errorf("reading the outcomes: %w", err)
	}
	return scoring.Collect(scoring.KindOf(t), idx.tallies()), nil
}

func empty() *index { return &index{Version: version, Projects: map[string]mark{}} }

func (x *Index) load() (*index, error) {
	idx := empty()
	if err := atomicfile.ReadJSON(filepath.Join(x.dir, indexFile), idx); err != nil {
		return nil, err
	}
	if idx.Version != version || idx.Projects == nil {
		return nil, fmt.Errorf("%s has version %d, not %d", indexFile, idx.Version, version)
	}
	return idx, nil
}

func (x *Index) save(idx *index) error {
	if len(idx.Kinds) > mostKinds {
		slices.SortStableFunc(idx.Kinds, func(a, b counted) int { return int(min(max(b.Last-a.Last, -1), 1)) })
		idx.Kinds = idx.Kinds[:mostKinds]
	}
	return atomicfile.WriteJSON(filepath.Join(x.dir, indexFile), idx)
}

// remember puts root at the end of the list of projects and gives the list.
func (x *Index) remember(root string) ([]string, error) {
	path := filepath.Join(x.dir, projectsFile)
	var p projects
	if err := atomicfile.ReadJSON(path, &p); err != nil || p.Version != version {
		p = projects{Version: version}
	}
	if n := len(p.Roots); n > 0 && p.Roots[n-1] == root {
		return p.Roots, nil
	}
	p.Roots = append(slices.DeleteFunc(p.Roots, func(r string) bool { return r == root }), root)
	if over := len(p.Roots) - mostProjects; over > 0 {
		p.Roots = p.Roots[over:]
	}
	return p.Roots, atomicfile.WriteJSON(path, p)
}

// errReplaced means that a log is not the one that was taken in: it was removed, or another took its place.
var errReplaced = errors.New("the log is another than it was")

// takeIn counts what a project's log has beyond its mark.
func (idx *index) takeIn(ctx context.Context, root string) (changed bool, err error) {
	if _, err := os.Stat(root); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	r, err := logfile.Open(root, nil).Read(ctx)
	if err != nil {
		return false, err
	}
	defer r.Close()
	head, err := headOf(r)
	if err != nil {
		return false, err
	}
	from := idx.Projects[root].Bytes
	switch size := r.Size(); {
	case size < from || from > 0 && head != idx.Projects[root].Head:
		return false, errReplaced
	case size == from:
		return false, nil
	}
	kinds := idx.byKind()
	parts := r.From(from)
	upTo := from
	for i, part := range parts {
		// Only the last part can still be growing; the others count whole, a torn end included.
		lines := &wholeLines{r: part, all: i < len(parts)-1}
		if _, err := stats.Briefs(ctx, lines, kinds.add); err != nil {
			return false, err
		}
		upTo += lines.whole
	}
	if upTo == from {
		return false, nil
	}
	idx.Kinds = kinds.list()
	idx.Projects[root] = mark{Bytes: upTo, Head: head}
	return true, nil
}

// headOf is a fingerprint of a log's first line, by which a log that was replaced is known for another.
func headOf(r *logfile.Reader) (string, error) {
	parts := r.Parts()
	if len(parts) == 0 {
		return "", nil
	}
	begin := make([]byte, 1024)
	n, err := io.ReadFull(parts[0], begin)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return "", err
	}
	line, _, _ := bytes.Cut(begin[:n], []byte{'\n'})
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:8]), nil
}

func (idx *index) tallies() map[scoring.Kind]scoring.Tally {
	m := make(map[scoring.Kind]scoring.Tally, len(idx.Kinds))
	for _, c := range idx.Kinds {
		m[c.Kind] = scoring.Tally{Tried: c.Tried, Succeeded: c.Succeeded}
	}
	return m
}

// Outcome is what a line says for the score: the kind of its task, whether it went well, and whether it counts.
func Outcome(b *stats.Brief) (k scoring.Kind, success, counts bool) {
	success, counts = stats.Verdict(b.Outcome)
	k = scoring.Kind{Type: b.TaskType, Model: b.Model, Size: scoring.SizeClass(b.Prompt)}
	if k.Type == "" {
		return k, success, false
	}
	if b.Files >= 0 {
		k.Outputs = scoring.OutputClass(b.Files)
	}
	// An answer that was rejected may have had a verify that was never reached: that is «not known».
	if b.Verified {
		k.Verify = 1
	}
	return k, success, counts
}
