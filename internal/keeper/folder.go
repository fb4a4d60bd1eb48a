package keeper

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"localllm/internal/atomicfile"
	"localllm/internal/filelock"
	"localllm/internal/hint"
	"localllm/internal/paths"
	"localllm/internal/proc"
	"localllm/lifecycle"
)

// folder is the run folder: every file that processes meet at.
type folder struct{ layout paths.Layout }

func (f folder) lockPath() string   { return filepath.Join(f.layout.Run, "folder.lock") }
func (f folder) keeperPath() string { return filepath.Join(f.layout.Run, "keeper.lock") }
func (f folder) wantedPath() string { return filepath.Join(f.layout.Run, "wanted.json") }
func (f folder) statusPath() string { return filepath.Join(f.layout.Run, "status.json") }
func (f folder) recordPath() string { return filepath.Join(f.layout.Run, "engine.json") }
func (f folder) leases() string     { return filepath.Join(f.layout.Run, "leases") }
func (f folder) engineDir() string  { return filepath.Join(f.layout.Run, "engine") }
func (f folder) logPath() string    { return filepath.Join(f.layout.State, "logs", "engine.log") }

func (f folder) make() error {
	for _, dir := range []string{f.layout.Run, f.leases(), filepath.Dir(f.logPath())} {
		if err := paths.Private(dir); err != nil {
			return err
		}
	}
	return nil
}

// exists reports whether localllm ever enabled anything here.
func (f folder) exists() bool {
	_, err := os.Stat(f.leases())
	return err == nil
}

// remove takes a lease away. The caller holds the folder's lock.
func (f folder) remove(id string) { _ = os.Remove(f.leasePath(id)) }

// Whoever holds the folder's lock does a few reads and writes, or waits for a keeper's first breath.
const lockPatience = 15 * time.Second

// lock takes the folder's own lock: no lease is made or removed, and nothing wanted, without it.
func (f folder) lock(ctx context.Context) (*filelock.Lock, error) {
	bounded, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	l, err := filelock.Take(bounded, f.lockPath())
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return nil, hint.New(fmt.Sprintf("locking the run folder: another localllm has held it for %v", lockPatience),
			"look for a suspended one (state T): ps -eo pid,stat,args | grep localllm")
	}
	if err != nil {
		return nil, fmt.Errorf("locking the run folder: %w", err)
	}
	return l, nil
}

// keeperAlive reports whether a keeper holds its lock.
func (f folder) keeperAlive() bool {
	held, err := filelock.Held(f.keeperPath())
	return err == nil && held
}

// version is the head that every file has.
type version struct {
	Version int `json:"version"`
}

// read fills v from a file of the run folder. A missing or torn file is as good as none (the zero value): the files
// are replaced whole, so a torn one is some other program's doing. A newer format is an error.
func (f folder) read(path string, v any) error {
	var head version
	err := atomicfile.ReadJSON(path, &head)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && head.Version > lifecycle.FormatVersion {
		return hint.New(fmt.Sprintf("%s was written by a newer localllm (format %d, this one knows %d)", path, head.Version, lifecycle.FormatVersion),
			"update this localllm, or stop the engine with the newer one: localllm disable")
	}
	if err == nil {
		err = atomicfile.ReadJSON(path, v)
	}
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return fmt.Errorf("reading the run folder: %w", err)
	}
	return nil
}

// wanted is what is asked of the keeper. What was asked before the last boot is not asked any more.
func (f folder) wanted() (w lifecycle.Wanted, err error) {
	err = f.read(f.wantedPath(), &w)
	if w.Boot != proc.BootID() {
		w = lifecycle.Wanted{Generation: w.Generation}
	}
	return w, err
}

func (f folder) status() (s lifecycle.Status, err error) {
	err = f.read(f.statusPath(), &s)
	if s.State == "" || s.Boot != proc.BootID() {
		s = lifecycle.Status{State: lifecycle.Off, Generation: s.Generation}
	}
	return s, err
}

func (f folder) writeWanted(w lifecycle.Wanted) error {
	w.Version, w.Boot, w.By, w.At = lifecycle.FormatVersion, proc.BootID(), process(proc.Self()), time.Now().UTC()
	return atomicfile.WriteJSON(f.wantedPath(), w)
}

func (f folder) writeStatus(s lifecycle.Status) error {
	s.Version, s.Boot = lifecycle.FormatVersion, proc.BootID()
	return atomicfile.WriteJSON(f.statusPath(), s)
}

// situation is one look at everything. The keeper's lock is probed first: what a living keeper wrote is read after.
func (f folder) situation() (lifecycle.Situation, error) {
	var s lifecycle.Situation
	var err error
	s.Keeper = f.keeperAlive()
	if s.Wanted, err = f.wanted(); err != nil {
		return s, err
	}
	if s.Status, err = f.status(); err != nil {
		return s, err
	}
	s.Leases, err = f.observe()
	return s, err
}

// clean removes what a killed writer left half made. The caller holds the folder's lock, so nobody is at it now.
func (f folder) clean() {
	for _, dir := range []string{f.layout.Run, f.leases()} {
		left, _ := filepath.Glob(filepath.Join(dir, ".localllm-tmp-*"))
		for _, path := range left {
			// The keeper and the warden write without the lock: theirs are renamed within moments.
			if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > time.Minute {
				_ = os.Remove(path)
			}
		}
	}
}

func process(id proc.Identity) lifecycle.Process {
	return lifecycle.Process{PID: id.PID, Start: id.Start, Boot: id.Boot, Exe: id.Exe}
}

func identity(p lifecycle.Process) proc.Identity {
	return proc.Identity{PID: p.PID, Start: p.Start, Boot: p.Boot, Exe: p.Exe}
}

func self() lifecycle.Process { return process(proc.Self()) }
