//go:build linux || darwin

package mcpserver

import (
	"os"

	"golang.org/x/sys/unix"
)

// takeStdout moves the standard output to a descriptor that no child inherits, and puts the standard error in its
// place: a stray print anywhere, in this process or below it, can't get between two messages.
func takeStdout() (*os.File, error) {
	fd, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	if err := dup(2, 1); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "stdout"), nil
}
