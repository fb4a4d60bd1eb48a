// Package workspace is the part of a project that a delegation may write: it admits outputs, puts them in place one
// step each, and puts everything back. It never goes through a link and never writes what was not declared.
package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"unicode"

	"localllm/delegate"
	"localllm/internal/paths"
	"localllm/internal/secretfile"
	"localllm/internal/treefile"
)

// maxOutput is the size of an existing output up to which a model could be asked to write it again.
const maxOutput = 4 << 20

// Workspace is one working folder. It implements delegate.Tree and may be used from many goroutines.
type Workspace struct {
	layout  paths.Layout
	project string
	dir     string // real path
	root    *treefile.Root
}

// Open opens the working folder, which belongs to the project at projectRoot: often the same.
func Open(layout paths.Layout, projectRoot, workdir string) (*Workspace, error) {
	dir, err := filepath.Abs(workdir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the working folder: %w", err)
	}
	root, err := treefile.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the working folder: %w", err)
	}
	return &Workspace{layout: layout, project: projectRoot, dir: dir, root: root}, nil
}

// Close lets go of the folder.
func (w *Workspace) Close() error { return w.root.Close() }

// Dir is the working folder's real path.
func (w *Workspace) Dir() string { return w.dir }

// Admit is delegate.Tree's.
func (w *Workspace) Admit(outputs []delegate.OutputFile, allow []string) ([]delegate.Output, error) {
	allowed := map[string]bool{}
	for _, a := range allow {
		allowed[cleaned(a)] = true
	}
	out := make([]delegate.Output, 0, len(outputs))
	seen := map[string]string{}
	for _, o := range outputs {
		real, err := w.resolve(o.Path, allowed[cleaned(o.Path)])
		if err != nil {
			return nil, err
		}
		key := real
		if foldsCase {
			key = strings.ToLower(real)
		}
		if first, twice := seen[key]; twice {
			return nil, refuse(o.Path, "is the same file as "+first, "name each file once")
		}
		seen[key] = o.Path
		body, exists, err := w.current(o.Path, real, allowed[cleaned(o.Path)])
		if err != nil {
			return nil, err
		}
		out = append(out, delegate.Output{Path: cleaned(o.Path), Description: o.Description, Exists: exists, Body: string(body)})
	}
	return out, nil
}

// macOS and Windows take a.go and A.go for the same file, mostly.
const foldsCase = runtime.GOOS == "darwin" || runtime.GOOS == "windows"

func cleaned(p string) string { return path.Clean(filepath.ToSlash(p)) }

func refuse(p, reason, hint string) *delegate.Refusal {
	return &delegate.Refusal{Reason: fmt.Sprintf("%s %s", p, reason), Hint: hint}
}

// resolve turns a declared path into one without links, below the root.
func (w *Workspace) resolve(declared string, allowed bool) (string, error) {
	rel := cleaned(declared)
	switch {
	case declared == "" || strings.ContainsRune(declared, 0):
		return "", refuse(fmt.Sprintf("%q", declared), "is no path", "give a path relative to the working folder")
	case path.IsAbs(rel) || filepath.IsAbs(declared) || filepath.VolumeName(declared) != "":
		return "", refuse(declared, "is an absolute path", "give it relative to the working folder")
	case rel == ".." || strings.HasPrefix(rel, "../"):
		return "", refuse(declared, "is outside the working folder", "call with the workdir that it is in")
	case rel == "." || strings.HasSuffix(filepath.ToSlash(declared), "/"):
		return "", refuse(declared, "is a folder; an output is a file", "name the file itself")
	case !fs.ValidPath(rel) || !filepath.IsLocal(filepath.FromSlash(rel)):
		return "", refuse(fmt.Sprintf("%q", declared), "is no path that can be written here", "use a plain name")
	}
	if why := disguised(rel); why != "" {
		return "", refuse(fmt.Sprintf("%q", declared), why, "use a plain name")
	}
	real, err := w.real(rel)
	if err != nil {
		return "", w.explain(declared, err)
	}
	for _, p := range []string{rel, real} {
		if Secret(p) && !allowed {
			return "", refuse(declared, "is by its name a file of secrets", "write it yourself")
		}
		if AutoRun(p) && !allowed {
			return "", refuse(declared, "is a file that programs run or obey by themselves", "if it is really wanted, name it in allow_paths")
		}
	}
	return real, nil
}

// disguised finds names that some file systems take for another one: the deny-list would not know them again.
func disguised(rel string) string {
	for part := range strings.SplitSeq(rel, "/") {
		for _, r := range part {
			if unicode.Is(unicode.Cf, r) || unicode.IsControl(r) || r == unicode.ReplacementChar {
				return "holds characters that can't be seen"
			}
		}
		if strings.HasSuffix(part, ".") || strings.HasSuffix(part, " ") {
			return "has a part that ends in a dot or a space, which some systems drop"
		}
		if strings.ContainsRune(part, ':') && (runtime.GOOS == "windows" || strings.HasPrefix(strings.ToLower(part), ".git")) {
			return "holds a colon"
		}
		if low := strings.ToLower(part); strings.HasPrefix(low, "git~") {
			return "is a short name for .git on some systems"
		}
		if strings.HasPrefix(part, treefile.TempPrefix) {
			return "is named like localllm's own temporary files"
		}
	}
	return ""
}

var (
	errOutside = errors.New("is outside the working folder")
	errLinked  = errors.New("is a link")
)

// real follows the links in rel's folders, as long as they stay below the root. The file itself must not be one.
func (w *Workspace) real(rel string) (string, error) {
	folder, name := path.Split(rel)
	folder = path.Clean(folder)
	rest := []string{name}
	for {
		full, err := filepath.EvalSymlinks(filepath.Join(w.dir, filepath.FromSlash(folder)))
		if errors.Is(err, fs.ErrNotExist) && folder != "." {
			// A link that points to nothing would be made real by us, wherever it points.
			if _, lerr := os.Lstat(filepath.Join(w.dir, filepath.FromSlash(folder))); lerr == nil {
				return "", errLinked
			}
			rest = append([]string{path.Base(folder)}, rest...)
			folder = path.Dir(folder)
			continue
		}
		if err != nil && strings.Contains(err.Error(), "too many links") { // a loop; the library has no error value for it
			return "", errLinked
		}
		if err != nil {
			return "", err
		}
		inside, err := filepath.Rel(w.dir, full)
		if err != nil || inside == ".." || strings.HasPrefix(inside, ".."+string(filepath.Separator)) {
			return "", errOutside
		}
		return path.Join(append([]string{filepath.ToSlash(inside)}, rest...)...), nil
	}
}

// current reads an output as it is now, and refuses what is no plain file of its own.
func (w *Workspace) current(declared, real string, allowed bool) (body []byte, exists bool, err error) {
	if err := w.root.Writable(real); err != nil {
		return nil, false, w.explain(declared, err)
	}
	info, err := w.root.Stat(real)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := w.root.Missing(real); err != nil {
			return nil, false, w.explain(declared, err)
		}
		return nil, false, nil
	}
	if err != nil {
		return nil, false, w.explain(declared, err)
	}
	switch {
	case info.IsDir():
		return nil, false, refuse(declared, "is a folder; an output is a file", "name the file itself")
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, false, refuse(declared, "is a symbolic link", "name the file that it points to")
	case !info.Mode().IsRegular():
		return nil, false, refuse(declared, "is no regular file", "name another one")
	case treefile.Links(info) > 1 && !allowed:
		return nil, false, refuse(declared, fmt.Sprintf("is a hard link: the file has %d names, and some may be elsewhere", treefile.Links(info)), "name it in allow_paths to let this name become a file of its own")
	case info.Size() > maxOutput:
		return nil, false, refuse(declared, fmt.Sprintf("is %d MB large, too large for a model to write again", info.Size()>>20), "split the file")
	}
	body, _, err = w.root.Read(real, maxOutput)
	if err != nil {
		return nil, false, w.explain(declared, err)
	}
	if bytes.IndexByte(body[:min(len(body), 8000)], 0) >= 0 {
		return nil, false, refuse(declared, "is a binary file", "name a text file")
	}
	if secretfile.Text(body) && !allowed {
		return nil, false, refuse(declared, "holds a private key", "write it yourself")
	}
	return body, true, nil
}

// explain makes a refusal of an error of the file system.
func (w *Workspace) explain(declared string, err error) error {
	switch {
	case errors.Is(err, errOutside):
		return refuse(declared, "leads out of the working folder through a link", "name a file inside it")
	case errors.Is(err, errLinked), errors.Is(err, treefile.ErrLink):
		return refuse(declared, "goes through a link", "name the file that it leads to")
	case errors.Is(err, treefile.ErrNotFile), errors.Is(err, syscall.ENOTDIR):
		return refuse(declared, "can't be there: a part of its path is no folder", "use another path")
	case errors.Is(err, syscall.EROFS):
		return refuse(declared, "can't be written: the file system is read-only", "work in a folder that can be written")
	case errors.Is(err, fs.ErrPermission):
		return refuse(declared, "can't be written: its folder does not allow it", "work in a folder that can be written")
	case errors.Is(err, syscall.ENAMETOOLONG):
		return refuse(declared, "has a name that is too long for this file system", "use a shorter name")
	}
	return fmt.Errorf("looking at %s: %w", declared, err)
}
