//go:build unix

package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func tryLock(f *os.File) error    { return flock(f, unix.LOCK_EX|unix.LOCK_NB) }
func tryShared(f *os.File) error  { return flock(f, unix.LOCK_SH|unix.LOCK_NB) }
func waitShared(f *os.File) error { return flock(f, unix.LOCK_SH) }
func unlock(f *os.File) error     { return flock(f, unix.LOCK_UN) }

func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return ErrHeld
		default:
			return err
		}
	}
}
