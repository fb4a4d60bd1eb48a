package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

var bootID = sync.OnceValue(func() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
})

// BootID names this boot of the system.
func BootID() string { return bootID() }

// Identify reads who pid is now. A zombie is ErrNotThere: some containers' first process never reaps.
func Identify(pid int) (Identity, error) {
	stat, err := readStat(pid)
	if err != nil {
		return Identity{}, err
	}
	if stat.state == 'Z' || stat.state == 'X' {
		return Identity{}, ErrNotThere
	}
	exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return Identity{PID: pid, Start: stat.start, Exe: exe, Boot: BootID()}, nil
}

// Parent is the pid of pid's parent.
func Parent(pid int) (int, error) {
	stat, err := readStat(pid)
	return stat.parent, err
}

// Name is the short name of pid's program.
func Name(pid int) (string, error) {
	stat, err := readStat(pid)
	return stat.name, err
}

func suspended(pid int) bool {
	stat, err := readStat(pid)
	return err == nil && (stat.state == 'T' || stat.state == 't')
}

type procStat struct {
	name   string
	state  byte
	parent int
	start  uint64
}

func readStat(pid int) (procStat, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return procStat{}, ErrNotThere
	}
	// The name is in brackets and may hold brackets and spaces itself.
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return procStat{}, fmt.Errorf("reading the state of process %d: odd line %q", pid, b)
	}
	fields := strings.Fields(string(b[end+1:]))
	if len(fields) < 20 {
		return procStat{}, fmt.Errorf("reading the state of process %d: %d fields", pid, len(fields))
	}
	parent, _ := strconv.Atoi(fields[1])
	start, err := strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return procStat{}, fmt.Errorf("reading the start time of process %d: %w", pid, err)
	}
	return procStat{name: string(b[open+1 : end]), state: fields[0][0], parent: parent, start: start}, nil
}

func nonceOf(pid int) (nonce string, visible bool) {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return "", false
	}
	prefix := []byte(NonceVariable + "=")
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if bytes.HasPrefix(entry, prefix) {
			// The last one wins in our children: Start appends it.
			nonce = string(entry[len(prefix):])
		}
	}
	return nonce, true
}

// Marked lists the living processes whose environment carries nonce, this process left out.
func Marked(nonce string) []Identity {
	entries, err := os.ReadDir("/proc")
	if err != nil || nonce == "" {
		return nil
	}
	var found []Identity
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if got, _ := nonceOf(pid); got != nonce {
			continue
		}
		if id, err := Identify(pid); err == nil {
			id.Nonce = nonce
			found = append(found, id)
		}
	}
	return found
}

// Signal sends sig to the process that id names and to no other: the pid is pinned by a pidfd before the check.
func Signal(id Identity, sig unix.Signal) error {
	fd, err := unix.PidfdOpen(id.PID, 0)
	switch {
	case errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM):
		return signalByPID(id, sig)
	case err != nil:
		return ErrNotThere
	}
	defer unix.Close(fd)
	if !id.Ours() {
		return ErrNotThere
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

// AwaitExit blocks, without wake-ups, until the process that id names has ended.
func AwaitExit(id Identity) error {
	fd, err := unix.PidfdOpen(id.PID, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("watching process %d: %w", id.PID, err)
	}
	defer unix.Close(fd)
	if !id.Alive() {
		return nil
	}
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
