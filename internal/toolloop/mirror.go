package toolloop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"localllm/internal/contextfiles"
	"localllm/internal/paths"
	"localllm/internal/scratch"
	"localllm/internal/treefile"
	"localllm/internal/workspace"
)

// A copy is made for every delegation that runs commands: it must not take minutes, nor fill the disk.
const (
	copyFiles = 20_000
	copyBytes = 512 << 20
	copyLarge = 32 << 20 // a file over this size is linked, and so can be read only
	mostTaken = 200
)

// Folders that are linked instead of copied: large, and for reading only.
var linked = map[string]bool{".git": true, ".hg": true, ".jj": true, "node_modules": true, ".venv": true, "venv": true}

// Folders that tools fill by themselves: neither copied nor taken over.
var caches = map[string]bool{"__pycache__": true, ".pytest_cache": true, ".mypy_cache": true, ".ruff_cache": true, ".tox": true, ".gradle": true, "target": true, ".next": true, ".nuxt": true, ".turbo": true,
	".cache": true, ".parcel-cache": true, ".terraform": true, ".dart_tool": true, ".zig-cache": true, ".build": true, ".eggs": true, ".hypothesis": true, ".nyc_output": true}

// mirror is a copy of a project for commands to work on, without its secrets. The project itself is never written.
type mirror struct {
	root, tree, temp string
	place            *scratch.Folder // of both
	at               *os.Root        // tree: a command may have put links there, and nothing of ours must follow them out
	secrets          []string        // left out: absolute paths in the project
	had              map[string]look // what the copy was given, by relative path with slashes
	source           map[string]look // what that was copied from
}

type look struct {
	size int64
	time time.Time
	mode fs.FileMode
}

func lookAt(info fs.FileInfo) look { return look{info.Size(), info.ModTime(), info.Mode()} }

func newMirror(layout paths.Layout, root string) (*mirror, error) {
	place, err := scratch.Make(layout, filepath.Join(layout.State, "copies"), "")
	if err != nil {
		return nil, err
	}
	m := &mirror{root: root, place: place, had: map[string]look{}, source: map[string]look{}}
	m.tree, m.temp = filepath.Join(place.Path, "tree"), filepath.Join(place.Path, "tmp")
	err = errors.Join(os.Mkdir(m.tree, 0o700), os.Mkdir(m.temp, 0o700))
	if err == nil {
		m.at, err = os.OpenRoot(m.tree)
	}
	if err != nil {
		return nil, fmt.Errorf("making a copy of the project: %w", errors.Join(err, place.Remove()))
	}
	return m, nil
}

// close removes the copy.
func (m *mirror) close() error { return errors.Join(m.at.Close(), m.place.Remove()) }

// refresh makes the copy as the project is now, but for what commands made there that the project has no file for.
func (m *mirror) refresh(ctx context.Context) error {
	var bytes int64
	seen := map[string]bool{}
	m.secrets = m.secrets[:0]
	err := filepath.WalkDir(m.root, func(p string, d fs.DirEntry, err error) error {
		rel, rerr := filepath.Rel(m.root, p)
		if rerr != nil || ctx.Err() != nil {
			return errors.Join(rerr, ctx.Err())
		}
		rel = filepath.ToSlash(rel)
		switch {
		case err != nil || rel == ".":
			return nil
		case strings.HasPrefix(d.Name(), treefile.TempPrefix):
			return nil
		case linked[d.Name()] && d.IsDir():
			_ = m.at.Symlink(p, rel)
			return fs.SkipDir
		case caches[d.Name()] && d.IsDir():
			return fs.SkipDir
		case workspace.Secret(rel):
			m.secrets = append(m.secrets, p)
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			if there, err := m.at.Lstat(rel); err == nil && !there.IsDir() {
				_ = m.at.RemoveAll(rel)
			}
			return m.at.MkdirAll(rel, 0o755)
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		seen[rel] = true
		bytes += min(info.Size(), copyLarge)
		if len(seen) > copyFiles || bytes > copyBytes {
			return fmt.Errorf("the project is too large to copy: over %d files or %d MB", copyFiles, copyBytes>>20)
		}
		return m.bring(rel, p, info)
	})
	if err != nil {
		return err
	}
	for rel := range m.had {
		if !seen[rel] {
			m.forget(rel)
		}
	}
	return nil
}

// bring copies one file, unless it is there already.
func (m *mirror) bring(rel, from string, info fs.FileInfo) error {
	now := lookAt(info)
	if was, ok := m.source[rel]; ok && was == now {
		if there, err := m.at.Lstat(rel); err == nil && lookAt(there) == m.had[rel] {
			return nil
		}
	}
	if err := m.at.RemoveAll(rel); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("copying the project: %w", err)
	}
	var err error
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		var target string
		if target, err = os.Readlink(from); err == nil {
			err = m.at.Symlink(target, rel)
		}
	case !info.Mode().IsRegular():
		return nil
	case info.Size() > copyLarge:
		err = m.at.Symlink(from, rel)
	default:
		err = m.copyFile(from, rel, info)
	}
	if err != nil {
		return nil // unreadable for us is absent for the command
	}
	there, err := m.at.Lstat(rel)
	if err != nil {
		return fmt.Errorf("copying the project: %w", err)
	}
	m.had[rel], m.source[rel] = lookAt(there), now
	return nil
}

func (m *mirror) copyFile(from, rel string, info fs.FileInfo) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := m.at.OpenFile(rel, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm()|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(in, copyLarge))
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = m.at.Chtimes(rel, time.Time{}, info.ModTime())
	}
	return err
}

// file is one that a command changed in the copy.
type file struct {
	path, body string
	problem    string // why it can't be taken over
	stays      bool   // it may stay in the copy all the same
}

// changed lists what is not as it was given, in the order of paths.
func (m *mirror) changed(ctx context.Context) ([]file, error) {
	var out []file
	seen := map[string]bool{}
	visited := 0
	err := filepath.WalkDir(m.tree, func(p string, d fs.DirEntry, err error) error {
		if visited++; visited > 4*copyFiles {
			return errors.New("the copy holds too many files")
		}
		rel, rerr := filepath.Rel(m.tree, p)
		switch rel = filepath.ToSlash(rel); {
		case rerr != nil || ctx.Err() != nil:
			return errors.Join(rerr, ctx.Err())
		case err != nil || rel == ".":
			return nil
		case d.IsDir() && (caches[d.Name()] || linked[d.Name()]):
			return fs.SkipDir
		case d.IsDir() || linked[d.Name()] && d.Type()&fs.ModeSymlink != 0:
			return nil
		}
		seen[rel] = true
		info, err := d.Info()
		if err != nil || lookAt(info) == m.had[rel] {
			return nil
		}
		if f, worth := m.read(ctx, rel, info); worth {
			out = append(out, f)
		}
		if len(out) > mostTaken {
			return fmt.Errorf("it changed more than %d files", mostTaken)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for rel := range m.had {
		if !seen[rel] {
			out = append(out, file{path: rel, problem: "removing a file is not possible"})
		}
	}
	slices.SortFunc(out, func(a, b file) int { return strings.Compare(a.path, b.path) })
	return out, nil
}

// read is a changed file with its text; worth is false where nobody needs to hear of it.
func (m *mirror) read(ctx context.Context, rel string, info fs.FileInfo) (f file, worth bool) {
	f.path = rel
	_, known := m.had[rel]
	if !known && m.ignored(ctx, rel) {
		return f, false
	}
	if !info.Mode().IsRegular() {
		f.problem = "it is no regular file"
		return f, true
	}
	if info.Size() > maxFile {
		f.problem, f.stays = "it is too large", !known
		return f, true
	}
	raw, err := m.at.ReadFile(rel)
	switch {
	case err != nil:
		f.problem = err.Error()
	case bytes.IndexByte(raw, 0) >= 0 || !utf8.Valid(raw):
		f.problem, f.stays = "it is binary", !known
	default:
		f.body = string(raw)
		if was, err := os.ReadFile(filepath.Join(m.root, filepath.FromSlash(rel))); known && err == nil && bytes.Equal(was, raw) {
			m.keep(rel)
			return f, false // only its time or mode, which are not the model's
		}
	}
	return f, true
}

// ignored reports whether the project's .gitignore files leave a new file out. A name with a choice of nothing behind it
// is a pattern, and patterns respect them.
func (m *mirror) ignored(ctx context.Context, rel string) bool {
	if strings.ContainsAny(rel, `*?[]{}\`) {
		return false
	}
	_, err := contextfiles.Expand(ctx, contextfiles.Options{Root: m.tree, MaxFileBytes: 1}, []string{rel + "{,}"})
	return err != nil && strings.Contains(err.Error(), ".gitignore")
}

// keep takes a file of the copy for what the project has now.
func (m *mirror) keep(rel string) {
	there, err := m.at.Lstat(rel)
	if err != nil {
		return
	}
	m.had[rel] = lookAt(there)
	if info, err := os.Lstat(filepath.Join(m.root, filepath.FromSlash(rel))); err == nil {
		m.source[rel] = lookAt(info)
	}
}

// forget has the next refresh bring the project's form again, or nothing where the project has none.
func (m *mirror) forget(rel string) {
	_ = m.at.RemoveAll(rel)
	delete(m.had, rel)
	delete(m.source, rel)
}

// relative takes the copy's place out of what a command printed.
func (m *mirror) relative(s, sub string) string {
	s = strings.ToValidUTF8(s, "?")
	dir := filepath.Join(m.tree, filepath.FromSlash(sub))
	s = strings.ReplaceAll(s, dir+string(filepath.Separator), "")
	s = strings.ReplaceAll(s, dir, ".")
	return strings.ReplaceAll(s, m.temp, "$TMPDIR")
}
