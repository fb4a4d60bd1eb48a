package proc

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
)

// Identity names one process for good: a pid alone is used again by the next process.
type Identity struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`           // as the kernel gives it: clock ticks since boot on Linux, microseconds since 1970 on macOS
	Exe   string `json:"exe,omitempty"`   // for the reader; scripts and wrappers change it by exec
	Boot  string `json:"boot,omitempty"`  // of the boot in which Start counts
	Nonce string `json:"nonce,omitempty"` // in the environment of the process and of its descendants
}

// ErrNotThere means that no such process lives (a zombie counts as gone), or that the pid is somebody else's now.
var ErrNotThere = errors.New("the process is not there any more")

// NewNonce is a fresh mark for one start.
func NewNonce() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails, by crypto/rand's promise
	return hex.EncodeToString(b[:])
}

// Self is this process.
func Self() Identity {
	id, err := Identify(os.Getpid())
	if err != nil {
		return Identity{PID: os.Getpid()}
	}
	return id
}

// Alive reports whether the very process that id names still lives. It is false where that can't be proven.
func (id Identity) Alive() bool {
	now, err := Identify(id.PID)
	return err == nil && id.same(now)
}

// Suspended reports whether the process stands still, after a SIGSTOP or in a debugger.
func (id Identity) Suspended() bool { return suspended(id.PID) && id.Alive() }

func (id Identity) same(now Identity) bool {
	return id.PID > 0 && id.Start != 0 && id.PID == now.PID && id.Start == now.Start && id.Boot == now.Boot
}

// Ours reports whether id is alive and provably was started by us: besides pid, start time and boot, its environment
// carries the nonce where the system lets us see it (Linux), else its executable is the recorded one.
func (id Identity) Ours() bool {
	now, err := Identify(id.PID)
	if err != nil || !id.same(now) || id.PID == 1 { // the first process of a container may be a client, and is never ours
		return false
	}
	if nonce, visible := nonceOf(id.PID); visible {
		return id.Nonce != "" && nonce == id.Nonce
	}
	return id.Exe != "" && id.Exe == now.Exe
}
