// Package scratch makes folders for work that is thrown away, and sees that neither they nor the processes that work
// there stay for good when their maker is killed: whoever comes next ends and removes them. It never touches a folder
// or a process that was not recorded as its own before.
package scratch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"localllm/internal/atomicfile"
	"localllm/internal/filelock"
	"localllm/internal/paths"
	"localllm/internal/proc"
)

// Folder is one folder of a living process, which holds its record locked.
type Folder struct {
	Path  string // absolute, without links
	Nonce string // the mark of the processes that work there

	record string
	lock   *filelock.Lock
}

const format = 1

// record says what to look for when its owner has died. It is written before there is anything, and its name is the
// nonce.
type record struct {
	Version int           `json:"version"`
	Path    string        `json:"path"`
	Owner   proc.Identity `json:"owner"`
}

func recordsOf(layout paths.Layout) string { return filepath.Join(layout.Run, "scratch") }

// Make makes a private folder below the folder in, which it makes too, with a name that begins with prefix. Where in is
// empty it is the system's own for temporary files.
func Make(layout paths.Layout, in, prefix string) (*Folder, error) {
	f, err := begin(layout, in, prefix)
	if err == nil {
		if err = os.Mkdir(f.Path, 0o700); err != nil {
			f.letGo()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("making a temporary folder: %w", err)
	}
	return f, nil
}

// begin holds the record of a folder that is about to be.
func begin(layout paths.Layout, in, prefix string) (*Folder, error) {
	if in == "" {
		in = os.TempDir()
	} else if err := paths.Private(in); err != nil {
		return nil, err
	}
	in, err := filepath.EvalSymlinks(in)
	if err == nil {
		in, err = filepath.Abs(in)
	}
	if err != nil {
		return nil, err
	}
	records := recordsOf(layout)
	if err := paths.Private(records); err != nil {
		return nil, err
	}
	nonce := proc.NewNonce()
	f := &Folder{Path: filepath.Join(in, nameOf(prefix, nonce)), Nonce: nonce, record: filepath.Join(records, nonce)}
	if f.lock, err = filelock.Try(f.record); err != nil {
		return nil, err
	}
	text, err := json.Marshal(record{format, f.Path, proc.Self()})
	if err == nil {
		_, err = f.lock.File().Write(text)
	}
	if err != nil {
		f.letGo()
		return nil, err
	}
	return f, nil
}

// nameOf is short: programs put sockets into their folder for temporary files, and a socket's path may have a hundred
// bytes.
func nameOf(prefix, nonce string) string { return prefix + nonce[:10] }

// Remove removes the folder with all that is in it. What worked there must have ended.
func (f *Folder) Remove() error {
	err := removeAll(f.Path)
	f.letGo()
	return err
}

// letGo drops the record. Windows removes no open file, so the lock goes first; for whoever takes it in between there
// is nothing left to do.
func (f *Folder) letGo() {
	_ = f.lock.Release()
	_ = os.Remove(f.record)
}

// removeAll removes also what was made read-only, as tools do with what they unpack. It follows no link.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(p, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// Sweep ends the processes and removes the folders that killed makers left. It costs a look at one folder where there
// are none, and may be called by many processes at once.
func Sweep(layout paths.Layout) {
	records := recordsOf(layout)
	entries, err := os.ReadDir(records)
	if err != nil {
		return
	}
	for _, e := range entries {
		path := filepath.Join(records, e.Name())
		var r record
		if err := atomicfile.ReadJSON(path, &r); err == nil {
			if r.Version == format {
				sweepOne(path, e.Name(), r)
			}
			continue
		}
		// Its maker is about to write it, or died before: then there was no folder yet.
		if info, err := e.Info(); err != nil || time.Since(info.ModTime()) < time.Hour {
			continue
		}
		if held, err := filelock.Held(path); err == nil && !held { // it may also be that we could not read
			_ = os.Remove(path)
		}
	}
}

// sweepOne looks after one record. It was read before its lock is taken, but never changes.
func sweepOne(path, nonce string, r record) {
	lock, err := filelock.Try(path)
	if errors.Is(err, filelock.ErrHeld) && !r.Owner.Alive() {
		lock, err = await(path, nonce)
	}
	if err != nil {
		return // it lives, or the next one tries again
	}
	if r.Owner.Boot == proc.BootID() {
		end(nonce)
	}
	if name := filepath.Base(r.Path); filepath.IsAbs(r.Path) && len(nonce) > 10 && strings.HasSuffix(name, nameOf("", nonce)) {
		_ = removeAll(r.Path)
	}
	(&Folder{record: path, lock: lock}).letGo()
}

// await waits for the lock of a dead owner. A child that he was about to start keeps what it inherited until its own
// program begins. Or somebody else sweeps: then what worked there has to be gone before we go on, for it could write
// over the files that our caller is going to put back.
func await(path, nonce string) (*filelock.Lock, error) {
	for until := time.Now().Add(patience); ; {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		lock, err := filelock.Take(ctx, path)
		cancel()
		if err == nil || time.Now().After(until) || len(proc.Marked(nonce)) == 0 {
			return lock, err
		}
	}
}

// patience is how long what was killed may take to go.
const patience = 2 * time.Second

// end kills what carries the nonce, and waits until the kernel has taken it away: until then it may still write. A
// process that is just becoming another program shows no environment for a moment: what is gone is so at several looks.
func end(nonce string) {
	for quiet, until := 0, time.Now().Add(patience); quiet < 3 && time.Now().Before(until); quiet++ {
		proc.Sweep(nonce)
		if len(proc.Marked(nonce)) > 0 {
			quiet = -1
		}
		time.Sleep(5 * time.Millisecond)
	}
}
