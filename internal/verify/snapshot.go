package verify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"localllm/internal/paths"
	"localllm/internal/treefile"
)

// A look at the tree is bounded: a project may hold millions of files, and a look must cost little beside a verify.
const (
	maxFiles = 50_000
	maxTime  = time.Second
)

// Folders that tools fill by themselves: nobody wants to read that they changed.
var caches = map[string]bool{
	".git": true, ".hg": true, ".svn": true, ".jj": true, "node_modules": true, "__pycache__": true, ".pytest_cache": true, ".mypy_cache": true, ".ruff_cache": true, ".tox": true, ".nox": true, ".venv": true, "venv": true, ".gradle": true,
	"target": true, ".next": true, ".nuxt": true, ".turbo": true, ".cache": true, ".parcel-cache": true, ".terraform": true, ".dart_tool": true, "zig-cache": true, ".zig-cache": true, ".build": true, ".eggs": true, ".hypothesis": true, ".nyc_output": true,
}

// Of the version control's folder, what would run by itself.
var watched = []string{".git/config", ".git/hooks"}

// snapshot is what the files of a tree looked like from outside, by relative path with slashes.
type snapshot map[string]look

type look struct {
	size int64
	time int64
	mode fs.FileMode
}

var errEnough = errors.New("too many files to look at")

// look walks the tree; ok is false where it is too large, or ctx ended.
func (f Folder) look(ctx context.Context) (snapshot, bool) {
	root, err := filepath.EvalSymlinks(f.Dir) // a walk does not follow a link, not even its first folder
	if err != nil {
		return nil, false
	}
	s := snapshot{}
	until := time.Now().Add(maxTime)
	see := func(p string, d fs.DirEntry) error {
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if strings.HasPrefix(d.Name(), treefile.TempPrefix) || rel == paths.DelegationLog {
			return nil // ours
		}
		info, err := d.Info()
		if err != nil {
			return nil // gone meanwhile
		}
		s[rel] = look{info.Size(), info.ModTime().UnixNano(), info.Mode()}
		if len(s) > maxFiles || len(s)%512 == 0 && (time.Now().After(until) || ctx.Err() != nil) {
			return errEnough
		}
		return nil
	}
	walk := func(top string, skip bool) error {
		return filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil // not to be read: not to be told either
			case d.IsDir() && skip && p != top && caches[d.Name()]:
				return fs.SkipDir
			case d.IsDir():
				return nil
			}
			return see(p, d)
		})
	}
	if walk(root, true) != nil {
		return nil, false
	}
	for _, w := range watched {
		p := filepath.Join(root, filepath.FromSlash(w))
		if _, err := os.Lstat(p); err == nil && walk(p, false) != nil {
			return nil, false
		}
	}
	return s, true
}

// changed lists files that are new, gone or different.
func (s snapshot) changed(after snapshot) []string {
	var out []string
	for p, was := range s {
		if now, there := after[p]; !there || now != was {
			out = append(out, p)
		}
	}
	for p := range after {
		if _, there := s[p]; !there {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

// Fingerprint is delegate.Verifier's.
func (f Folder) Fingerprint(ctx context.Context) string {
	s, ok := f.look(ctx)
	if !ok {
		return ""
	}
	paths := make([]string, 0, len(s))
	for p := range s {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	h := sha256.New()
	for _, p := range paths {
		fmt.Fprintf(h, "%s\x00%d %d %d\n", p, s[p].size, s[p].time, s[p].mode)
	}
	return hex.EncodeToString(h.Sum(nil))
}
