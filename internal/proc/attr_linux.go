package proc

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

func attributes(c Command) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: !c.Session, Setsid: c.Session, Pdeathsig: c.Death}
}

// awaitZombie blocks until the child has ended, leaves it to be reaped, and reports whether it could.
func awaitZombie(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}
