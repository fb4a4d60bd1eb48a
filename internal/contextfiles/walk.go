package contextfiles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"localllm/internal/hint"
	layout "localllm/internal/paths"
)

// errEnough ends a walk.
var errEnough = errors.New("enough")

// walk takes the files under a glob, in the order of their paths. Links are not followed: a file has one place.
func (e *expansion) walk(ctx context.Context, src source, pattern, glob string) error {
	if !doublestar.ValidatePattern(glob) {
		return &Refused{pattern, "is not a valid glob"}
	}
	base, _ := doublestar.SplitPattern(glob)
	w := walker{expansion: e, src: src, pattern: pattern, glob: glob, ignores: ignores{root: src.root}}
	if info, err := src.root.Stat(base); err != nil || !info.IsDir() {
		return &Refused{pattern, "matches no file"}
	}
	err := fs.WalkDir(src.root.FS(), base, func(name string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return w.visit(name, d, err)
	})
	switch {
	case err != nil && !errors.Is(err, errEnough):
		return err
	case w.refused != nil:
		return w.refused
	case w.matched == 0 && w.ignored > 0:
		return hint.Add(&Refused{pattern, fmt.Sprintf("matches only files that .gitignore excludes (%d)", w.ignored)}, "name such a file by itself to have it all the same")
	case w.matched == 0:
		return &Refused{pattern, "matches no file"}
	}
	return nil
}

// walker is one pattern under way.
type walker struct {
	*expansion
	src     source
	pattern string
	glob    string
	ignores ignores
	refused error
	visited int
	matched int
	ignored int
}

func (w *walker) visit(name string, d fs.DirEntry, err error) error {
	if err != nil {
		w.skip(name, "can't be read")
		if d != nil && d.IsDir() {
			return fs.SkipDir
		}
		return nil
	}
	if w.visited++; w.visited > maxVisited {
		w.refused = hint.Add(&Refused{w.pattern, fmt.Sprintf("looks at more than %d files", maxVisited)}, "name a folder further down")
		return errEnough
	}
	if d.IsDir() {
		if name != "." && (path.Base(name) == ".git" || w.ignores.match(name, true)) {
			if w.couldMatch(name) {
				w.ignored++
			}
			return fs.SkipDir
		}
		return nil
	}
	if ok, _ := doublestar.Match(w.glob, name); !ok || w.ownLog(name) {
		return nil
	}
	if w.ignores.match(name, false) {
		w.ignored++
		return nil
	}
	return w.take(name, d)
}

// ownLog reports a delegation log that a wider pattern comes across. Each delegation makes it longer: it would crowd out
// what the task is about, and end each prompt's cache where it stands.
func (w *walker) ownLog(name string) bool {
	dir := path.Dir(layout.DelegationLog)
	stem, _, _ := strings.Cut(path.Base(layout.DelegationLog), ".")
	return !w.couldMatch(dir) && strings.HasPrefix(path.Base(name), stem) && (path.Dir(name) == dir || strings.HasSuffix(path.Dir(name), "/"+dir))
}

// couldMatch reports whether an excluded folder is what the pattern was about.
func (w *walker) couldMatch(dir string) bool {
	base, _ := doublestar.SplitPattern(w.glob)
	return path.Base(dir) != ".git" && (base == dir || len(base) > len(dir) && base[:len(dir)+1] == dir+"/")
}

func (w *walker) take(name string, d fs.DirEntry) error {
	shown := path.Join(w.src.label, name)
	w.matched++
	if w.seen[shown] {
		return nil
	}
	if len(w.set.Files)+len(w.set.Skipped) >= w.MaxFiles {
		w.refused = hint.Add(&Refused{w.pattern, fmt.Sprintf("comes to more than %d files", w.MaxFiles)}, "name the files that the task needs, or a narrower glob")
		return errEnough
	}
	switch {
	case d.Type()&fs.ModeSymlink != 0:
		w.skip(shown, "is a symbolic link")
		return nil
	case secretName(name):
		w.skip(shown, "is a secret by its name")
		return nil
	}
	body, reason, err := readText(w.src.root, name, w.MaxFileBytes)
	switch {
	case err != nil:
		w.skip(shown, "can't be read")
	case reason != "":
		w.skip(shown, reason)
	default:
		if w.refused = w.add(shown, body); w.refused != nil {
			return errEnough
		}
	}
	return nil
}

func (w *walker) skip(name, reason string) {
	w.set.Skipped = append(w.set.Skipped, Skip{name, reason})
}
