//go:build unix

package proc

import (
	"syscall"

	"golang.org/x/sys/unix"
)

func signalGroup(leader int, sig syscall.Signal) {
	if leader > 1 {
		_ = unix.Kill(-leader, sig)
	}
}

func signalByPID(id Identity, sig unix.Signal) error {
	if !id.Ours() {
		return ErrNotThere
	}
	return unix.Kill(id.PID, sig)
}

// Sweep kills every process that carries nonce, until a look finds none, and returns how many there were.
func Sweep(nonce string) int {
	killed := map[Identity]bool{}
	for range 50 { // a process that forks faster than this is stopped by nothing in user space
		living := Marked(nonce)
		if len(living) == 0 {
			break
		}
		for _, id := range living {
			if Signal(id, unix.SIGKILL) == nil {
				killed[id] = true
			}
		}
	}
	return len(killed)
}
