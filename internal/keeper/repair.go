package keeper

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"localllm/internal/atomicfile"
	"localllm/internal/paths"
	"localllm/internal/proc"
	"localllm/lifecycle"
)

// record is what proves later that a process is one of ours. It is written before the engine starts, with the nonce
// alone, and again with the process.
type record struct {
	Version int           `json:"version"`
	Boot    string        `json:"boot"`
	Nonce   string        `json:"nonce"`
	Engine  proc.Identity `json:"engine"` // PID 0: it was about to start
	Keeper  proc.Identity `json:"keeper"`
	At      time.Time     `json:"at"`
}

// Repair ends what a killed keeper left and clears its status. Every localllm calls it when it begins: where there is
// nothing to repair it costs two looks at the file system.
func Repair(layout paths.Layout) error {
	f := folder{layout}
	if !f.needsRepair() {
		return nil
	}
	// A killed process counts as gone while its last threads still hold its files, for a few milliseconds.
	for end := time.Now().Add(200 * time.Millisecond); f.keeperAlive(); time.Sleep(2 * time.Millisecond) {
		if s, err := f.status(); err != nil || identity(s.Keeper).Alive() || time.Now().After(end) {
			return nil
		}
	}
	lock, err := f.lock(context.Background())
	if err != nil {
		return err
	}
	defer lock.Release()
	if !f.keeperAlive() {
		repairLocked(f)
	}
	return nil
}

// needsRepair reports whether a record is there, or a status that only a living keeper may show.
func (f folder) needsRepair() bool {
	if _, err := os.Stat(f.recordPath()); err == nil {
		return true
	}
	s, err := f.status()
	return err == nil && s.Keeper.PID != 0
}

// repairLocked is Repair under the folder's lock, where no keeper lives.
func repairLocked(f folder) {
	var r record
	err := atomicfile.ReadJSON(f.recordPath(), &r)
	if err == nil && r.Boot == proc.BootID() {
		endRecorded(r)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		_ = os.Remove(f.recordPath())
		_ = os.RemoveAll(f.engineDir())
	}
	if s, err := f.status(); err == nil && s.Keeper.PID != 0 {
		// No generation: a session that waits for its engine is not answered by this, it starts another keeper.
		off := lifecycle.Status{State: lifecycle.Off, Since: time.Now().UTC(), Release: s.Release}
		if s.State != lifecycle.Off {
			off.LastError = fmt.Sprintf("the keeper (pid %d) was killed; what it left was ended", s.Keeper.PID)
		}
		_ = f.writeStatus(off)
	}
}

// endRecorded kills the recorded process with its group, and everything that carries its nonce. Nothing else: a pid
// that is somebody else's now, another start time, another nonce, and it is let be.
func endRecorded(r record) {
	id := r.Engine
	id.Nonce = r.Nonce
	if id.PID > 1 && id.Ours() {
		killGroup(id)
	} else {
		id = proc.Identity{} // somebody else's, or gone: not waited for either
	}
	// A child between its fork and its exec does not carry the nonce yet: look again until nothing new shows.
	for quiet := 0; quiet < 3; quiet++ {
		if proc.Sweep(r.Nonce) > 0 {
			quiet = -1
		}
		time.Sleep(5 * time.Millisecond)
	}
	for range 200 { // what was killed is gone when the kernel has taken its memory back
		if !id.Alive() && len(proc.Marked(r.Nonce)) == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// killGroup ends the group that id leads. The group's number is its leader's pid, and can't be used again while the
// leader lives.
func killGroup(id proc.Identity) {
	if leadsGroup(id.PID) && id.Ours() {
		_ = signalGroup(id.PID, syscall.SIGKILL)
		return
	}
	_ = proc.Signal(id, syscall.SIGKILL)
}
