package proc

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

var bootID = sync.OnceValue(func() string {
	tv, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return ""
	}
	return strconv.FormatInt(tv.Sec, 10)
})

// BootID names this boot of the system.
func BootID() string { return bootID() }

const (
	stopped = 4 // SSTOP
	zombie  = 5 // SZOMB
)

func lookUp(pid int) (*unix.KinfoProc, error) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(k.Proc.P_pid) != pid || k.Proc.P_stat == zombie {
		return nil, ErrNotThere
	}
	return k, nil
}

// Identify reads who pid is now.
func Identify(pid int) (Identity, error) {
	k, err := lookUp(pid)
	if err != nil {
		return Identity{}, err
	}
	start := k.Proc.P_starttime
	id := Identity{PID: pid, Start: uint64(start.Sec)*1_000_000 + uint64(start.Usec), Boot: BootID()}
	if args, err := unix.SysctlRaw("kern.procargs2", pid); err == nil && len(args) > 4 {
		path, _, _ := bytes.Cut(args[4:], []byte{0})
		id.Exe = string(path)
	}
	return id, nil
}

// Parent is the pid of pid's parent.
func Parent(pid int) (int, error) {
	k, err := lookUp(pid)
	if err != nil {
		return 0, err
	}
	return int(k.Eproc.Ppid), nil
}

// Name is the short name of pid's program.
func Name(pid int) (string, error) {
	k, err := lookUp(pid)
	if err != nil {
		return "", err
	}
	return unix.ByteSliceToString(k.Proc.P_comm[:]), nil
}

func suspended(pid int) bool {
	k, err := lookUp(pid)
	return err == nil && k.Proc.P_stat == stopped
}

// macOS hides other processes' environments: there pid, start time and executable are the proof.
func nonceOf(int) (nonce string, visible bool) { return "", false }

// Marked finds nothing here: environments are hidden.
func Marked(string) []Identity { return nil }

// Signal sends sig to the process that id names and to no other.
func Signal(id Identity, sig unix.Signal) error { return signalByPID(id, sig) }

// AwaitExit blocks, without wake-ups, until the process that id names has ended.
func AwaitExit(id Identity) error {
	kq, err := unix.Kqueue()
	if err != nil {
		return fmt.Errorf("watching process %d: %w", id.PID, err)
	}
	defer unix.Close(kq)
	change := unix.Kevent_t{Ident: uint64(id.PID), Filter: unix.EVFILT_PROC, Flags: unix.EV_ADD, Fflags: unix.NOTE_EXIT}
	if _, err := unix.Kevent(kq, []unix.Kevent_t{change}, nil, nil); err != nil {
		if errors.Is(err, unix.ESRCH) {
			return nil
		}
		return fmt.Errorf("watching process %d: %w", id.PID, err)
	}
	if !id.Alive() {
		return nil
	}
	for {
		_, err := unix.Kevent(kq, nil, make([]unix.Kevent_t, 1), nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
