package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"localllm/delegate"
	"localllm/internal/journal"
)

// Files that may be stamped: hashing more would take longer than most verifies.
const (
	maxStamped = 5000
	maxHashed  = 1 << 20 // a larger file is told by its size and time
)

// Stamp is delegate.Tree's.
func (w *Workspace) Stamp(patterns []string) (map[string]string, error) {
	stamps := map[string]string{}
	for _, p := range patterns {
		rel := cleaned(p)
		if !fs.ValidPath(rel) {
			return nil, refuse(p, "is outside the working folder", "name files inside it")
		}
		if err := w.stampAll(rel, stamps); err != nil {
			return nil, err
		}
	}
	return stamps, nil
}

func (w *Workspace) stampAll(rel string, stamps map[string]string) error {
	info, err := w.root.Stat(rel)
	switch {
	case err == nil && info.IsDir():
		return w.glob(path.Join(escape(rel), "**"), stamps)
	case err == nil:
		return w.stampOne(rel, stamps)
	case strings.ContainsAny(rel, "*?[{"):
		return w.glob(rel, stamps)
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return w.stampOne(rel, stamps) // through a link, or not to be looked at
}

func escape(rel string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "{", `\{`).Replace(rel)
}

func (w *Workspace) glob(pattern string, stamps map[string]string) error {
	err := doublestar.GlobWalk(w.root.FS(), pattern, func(p string, d fs.DirEntry) error {
		if d.IsDir() || strings.HasPrefix(p, ".git/") {
			return nil
		}
		return w.stampOne(p, stamps)
	}, doublestar.WithNoFollow())
	if err != nil && !errors.Is(err, doublestar.ErrBadPattern) {
		return err
	}
	if err != nil {
		return refuse(pattern, "is no pattern", "use * ** ? [a-z] {a,b}")
	}
	return nil
}

func (w *Workspace) stampOne(rel string, stamps map[string]string) error {
	if len(stamps) >= maxStamped {
		return &delegate.Refusal{Reason: fmt.Sprintf("more than %d files are to be protected", maxStamped), Hint: "name fewer in protect and context_files"}
	}
	data, info, err := w.root.Read(rel, maxHashed)
	switch {
	case err == nil:
		stamps[rel] = journal.Sum(data)
	case info != nil:
		stamps[rel] = fmt.Sprint(info.Size(), info.Mode(), info.ModTime().UnixNano())
	case !errors.Is(err, fs.ErrNotExist):
		stamps[rel] = "?"
		if info, serr := fs.Stat(w.root.FS(), rel); serr == nil {
			stamps[rel] = fmt.Sprint(info.Size(), info.Mode(), info.ModTime().UnixNano())
		}
	}
	return nil
}
