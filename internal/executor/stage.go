package executor

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

	"localllm/delegate"
	"localllm/internal/hint"
	"localllm/internal/workspace"
)

// A copy is bounded: it is made anew for each try.
const (
	maxFiles = 20_000
	maxBytes = 512 << 20
	maxFile  = 4 << 20 // of a changed file, as for every output
)

// leftOut are folders that no agent needs for writing a file: histories, and what tools fill by themselves.
var leftOut = map[string]bool{
	".git": true, ".hg": true, ".svn": true, ".jj": true, "node_modules": true, "__pycache__": true, ".venv": true, "venv": true,
	"target": true, ".gradle": true, ".next": true, ".cache": true, ".terraform": true, ".tox": true, ".mypy_cache": true, ".pytest_cache": true,
}

// copied is a copy of the working folder, and what each file in it was like.
type copied struct {
	dir   string
	from  string
	files map[string]seen // by relative path with slashes
}

type seen struct {
	size int64
	time int64
}

// copyTree copies what an agent may see: no secrets, no links, no histories, and nothing of an agent's own
// configuration, which would grant what the task does not.
func copyTree(ctx context.Context, from, to string) (copied, error) {
	from, err := filepath.EvalSymlinks(from) // a walk does not follow a link, not even its first folder
	if err != nil {
		return copied{}, fmt.Errorf("copying the working folder: %w", err)
	}
	c := copied{dir: to, from: from, files: map[string]seen{}}
	total := int64(0)
	err = filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || ctx.Err() != nil {
			return errors.Join(ctx.Err(), ignoreMissing(err))
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		slashed := filepath.ToSlash(rel)
		if d.IsDir() {
			if rel != "." && (leftOut[d.Name()] || steers(slashed)) {
				return fs.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		if !d.Type().IsRegular() || workspace.Secret(slashed) || steers(slashed) {
			return nil
		}
		n, err := c.take(slashed)
		if total += n; err == nil && (len(c.files) > maxFiles || total > maxBytes) {
			return hint.New(fmt.Sprintf("the working folder is too large to be copied for an executor: over %d files or %d MB", maxFiles, maxBytes>>20), "give a workdir that holds less")
		}
		return err
	})
	if err != nil {
		return c, fmt.Errorf("copying the working folder: %w", err)
	}
	return c, nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// steers reports whether a coding agent would read a path as its configuration.
func steers(rel string) bool {
	first, _, _ := strings.Cut(strings.ToLower(rel), "/")
	return slices.Contains([]string{".claude", ".opencode", ".codex", ".mcp.json", "opencode.json", "opencode.jsonc"}, first)
}

func (c *copied) take(rel string) (int64, error) {
	in, err := os.Open(filepath.Join(c.from, filepath.FromSlash(rel)))
	if err != nil {
		return 0, ignoreMissing(err)
	}
	defer in.Close()
	path := filepath.Join(c.dir, filepath.FromSlash(rel))
	info, err := in.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0, err
	}
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm()|0o600)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		return n, err
	}
	made, err := os.Stat(path)
	if err == nil {
		c.files[rel] = seen{made.Size(), made.ModTime().UnixNano()}
	}
	return n, err
}

// changes are the files that are new or different in the copy. A file that was deleted there is none: a delegation
// deletes nothing.
func (c copied) changes() ([]delegate.File, error) {
	var out []delegate.File
	err := filepath.WalkDir(c.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return ignoreMissing(err)
		}
		rel, err := filepath.Rel(c.dir, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() && rel != "." && (leftOut[d.Name()] || steers(rel)) {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() {
			return ignoreMissing(err)
		}
		if was, there := c.files[rel]; there && was == (seen{info.Size(), info.ModTime().UnixNano()}) || steers(rel) || info.Size() > maxFile {
			return nil
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if old, err := os.ReadFile(filepath.Join(c.from, filepath.FromSlash(rel))); err == nil && bytes.Equal(old, body) {
			return nil
		}
		out = append(out, delegate.File{Path: rel, Body: string(body)})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking at what the executor changed: %w", err)
	}
	return out, nil
}
