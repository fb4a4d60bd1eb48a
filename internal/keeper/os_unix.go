//go:build unix

package keeper

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func leadsGroup(pid int) bool {
	pgid, err := unix.Getpgid(pid)
	return err == nil && pgid == pid && pid > 1
}

func signalGroup(leader int, sig syscall.Signal) error { return unix.Kill(-leader, sig) }

// endSignals tell a keeper to end.
var endSignals = []os.Signal{unix.SIGTERM, unix.SIGINT}
