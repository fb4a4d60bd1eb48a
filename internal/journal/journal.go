// Package journal remembers what files were before a change, so that whoever comes next can put them back after a
// crash. It survives the death of its process, not the loss of power, and it never touches a file that is not what
// the change wrote.
package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"localllm/internal/filelock"
	"localllm/internal/paths"
	"localllm/internal/treefile"
)

const format = 1

const (
	logName  = "log"
	lockName = "lock"
)

// MaxFile is the size up to which files are read and kept.
const MaxFile = 64 << 20

// Journal is the record of one change under way. It is locked by its owner for as long as the owner lives. One
// goroutine uses it.
type Journal struct {
	dir  string
	lock *filelock.Lock
	log  *os.File
	size int64 // of the log
	root *treefile.Root
	id   string

	entries []*entry
	byPath  map[string]*entry
	made    []string // folders, in the order in which they were made
	saved   string
}

// entry is one file's history.
type entry struct {
	Path   string
	Before before
	Ours   map[string]bool // hashes of what we wrote, or were about to
	Temp   string
}

type before struct {
	Exists bool        `json:"exists"`
	Mode   fs.FileMode `json:"mode,omitempty"`
	Time   int64       `json:"time,omitempty"` // nanoseconds since 1970
	Hash   string      `json:"hash,omitempty"`
	Copy   string      `json:"copy,omitempty"` // name of the copy in the journal's folder
}

// line is one line of the log. Exactly one of the parts is there.
type line struct {
	Head  *head   `json:"head,omitempty"`
	Path  string  `json:"path,omitempty"`
	Was   *before `json:"was,omitempty"`
	Write string  `json:"write,omitempty"` // hash
	Temp  string  `json:"temp,omitempty"`
	Dir   string  `json:"dir,omitempty"`
}

type head struct {
	Format int       `json:"format"`
	ID     string    `json:"id"`
	Root   string    `json:"root"`
	Begun  time.Time `json:"begun"`
}

// Begin opens a journal for a change in root, the working folder, which belongs to the project at projectRoot.
func Begin(layout paths.Layout, projectRoot, id string, root *treefile.Root) (*Journal, error) {
	home, err := Home(layout, projectRoot)
	if err != nil {
		return nil, err
	}
	staged, err := stage(home)
	if err != nil {
		return nil, fmt.Errorf("opening a journal: %w", err)
	}
	j := &Journal{root: root, id: id, byPath: map[string]*entry{}, saved: filepath.Join(layout.State, "saved", safe(id))}
	if err := j.open(staged, home); err != nil {
		_ = os.RemoveAll(staged)
		return nil, fmt.Errorf("opening a journal: %w", err)
	}
	return j, nil
}

// stage makes a folder under a passing name. One under its final name always has a lock that somebody held: else
// another process would take it for what a crash left.
func stage(home string) (string, error) {
	for attempt := 1; ; attempt++ {
		if err := paths.Private(home); err != nil {
			return "", err
		}
		staged, err := os.MkdirTemp(home, ".new-")
		// The last journal of somebody else takes the folder with it.
		if !errors.Is(err, fs.ErrNotExist) || attempt == 10 {
			return staged, err
		}
	}
}

func (j *Journal) open(staged, home string) (err error) {
	if j.lock, err = filelock.Try(filepath.Join(staged, lockName)); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = j.lock.Release()
		}
	}()
	where, err := filepath.Abs(j.root.Name())
	if err != nil {
		return err
	}
	if j.log, err = os.OpenFile(filepath.Join(staged, logName), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return err
	}
	if err = j.note(line{Head: &head{format, j.id, where, time.Now()}}); err == nil {
		j.dir = filepath.Join(home, safe(j.id)+"-"+filepath.Base(staged)[len(".new-"):])
		err = os.Rename(staged, j.dir)
	}
	if err != nil {
		_ = j.log.Close()
	}
	return err
}

// Home is where the journals of a project are kept, by its real path.
func Home(layout paths.Layout, projectRoot string) (string, error) {
	key, err := Key(projectRoot)
	if err != nil {
		return "", err
	}
	return filepath.Join(layout.State, "journals", key), nil
}

// Key is a short name for a project, by its real path: the same through every link.
func Key(projectRoot string) (string, error) {
	abs, err := filepath.Abs(projectRoot)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", fmt.Errorf("finding the project's real path: %w", err)
	}
	return Sum([]byte(abs))[:20], nil
}

// Sum is the hash by which contents are compared.
func Sum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// safe makes a file name of an id.
func safe(id string) string {
	out := []byte(id)
	for i, c := range out {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
			out[i] = '_'
		}
	}
	if len(out) == 0 || len(out) > 64 {
		return "change"
	}
	return string(out)
}

func (j *Journal) note(l line) error {
	data, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("writing the journal: %w", err)
	}
	n, err := j.log.Write(append(data, '\n'))
	if err != nil {
		// What a full disk let through would hide the lines that come when there is room again.
		return fmt.Errorf("writing the journal: %w", errors.Join(err, j.log.Truncate(j.size)))
	}
	j.size += int64(n)
	return nil
}

// Keep records what rel is before it is touched for the first time; later calls do nothing.
func (j *Journal) Keep(rel string) error {
	if j.byPath[rel] != nil {
		return nil
	}
	data, info, err := j.root.Read(rel, MaxFile)
	was := before{}
	switch {
	case err == nil:
		was = before{Exists: true, Mode: info.Mode(), Time: info.ModTime().UnixNano(), Hash: Sum(data), Copy: strconv.Itoa(len(j.entries)) + ".copy"}
		if err := os.WriteFile(filepath.Join(j.dir, was.Copy), data, 0o600); err != nil {
			return fmt.Errorf("keeping a copy of %s: %w", rel, err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("keeping a copy of %s: %w", rel, err)
	}
	if err := j.note(line{Path: rel, Was: &was}); err != nil {
		return err
	}
	j.add(rel, was)
	return nil
}

func (j *Journal) add(rel string, was before) *entry {
	e := &entry{Path: rel, Before: was, Ours: map[string]bool{}}
	j.entries = append(j.entries, e)
	j.byPath[rel] = e
	return e
}

// Put writes a file whose earlier form Keep has recorded, folders included.
func (j *Journal) Put(rel string, data []byte) error {
	e := j.byPath[rel]
	missing, err := j.root.Missing(rel)
	if err != nil {
		return err
	}
	for _, dir := range missing {
		if err := j.note(line{Dir: dir}); err != nil {
			return err
		}
		j.made = append(j.made, dir)
		if err := j.root.MakeFolder(dir); err != nil {
			return fmt.Errorf("making folder %s: %w", dir, err)
		}
	}
	hash := Sum(data)
	e.Temp = treefile.TempPrefix + filepath.Base(j.dir)
	if err := j.note(line{Path: rel, Write: hash, Temp: e.Temp}); err != nil {
		return err
	}
	e.Ours[hash] = true
	form := treefile.Form{}
	if e.Before.Exists {
		form.Mode = e.Before.Mode
		form.Like, _ = j.root.Stat(rel)
	}
	return j.root.Replace(rel, e.Temp, data, form)
}

// Ours reports whether this change wrote a file with that hash at rel.
func (j *Journal) Ours(rel, hash string) bool {
	e := j.byPath[rel]
	return e != nil && e.Ours[hash]
}

// Before is what rel held, as Keep recorded it; nil where it did not exist.
func (j *Journal) Before(rel string) ([]byte, error) {
	e := j.byPath[rel]
	if e == nil || !e.Before.Exists {
		return nil, nil
	}
	return os.ReadFile(filepath.Join(j.dir, e.Before.Copy))
}

// Paths lists the files that Keep recorded.
func (j *Journal) Paths() []string {
	out := make([]string, len(j.entries))
	for i, e := range j.entries {
		out[i] = e.Path
	}
	return out
}

// Commit makes the change final, in one step for all its files.
func (j *Journal) Commit() error {
	if err := os.Remove(filepath.Join(j.dir, logName)); err != nil {
		return fmt.Errorf("closing the journal: %w", err)
	}
	j.discard()
	return nil
}

// discard removes the journal. Without its log it means nothing any more.
func (j *Journal) discard() {
	_ = j.log.Close()
	_ = os.Remove(filepath.Join(j.dir, logName))
	_ = os.RemoveAll(j.dir)
	_ = j.lock.Release()
	_ = os.Remove(filepath.Dir(j.dir)) // if it was the last one
}

// Saved is the folder where the earlier forms of files go that can't be put back.
func (j *Journal) Saved() string { return j.saved }

// Existed reports whether rel was there when Keep recorded it.
func (j *Journal) Existed(rel string) bool {
	e := j.byPath[rel]
	return e != nil && e.Before.Exists
}

// Wrote reports whether Put has been called for rel.
func (j *Journal) Wrote(rel string) bool {
	e := j.byPath[rel]
	return e != nil && len(e.Ours) > 0
}

// Abandon lets go of the journal and leaves it to Repair, as the death of this process would.
func (j *Journal) Abandon() {
	_ = j.log.Close()
	_ = j.lock.Release()
}
