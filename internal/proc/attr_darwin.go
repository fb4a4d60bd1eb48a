package proc

import "syscall"

// There is no parent-death signal here.
func attributes(c Command) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: !c.Session, Setsid: c.Session}
}

// awaitZombie would have to wait without reaping, which this system's library does not offer.
func awaitZombie(int) bool { return false }
