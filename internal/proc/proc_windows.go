package proc

import (
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

func attributes(Command) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

// BootID is empty here: process ids are proven by their creation time alone.
func BootID() string { return "" }

// Identify reads who pid is now.
func Identify(pid int) (Identity, error) {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return Identity{}, ErrNotThere
	}
	defer windows.CloseHandle(h)
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(h, &created, &exited, &kernel, &user); err != nil {
		return Identity{}, ErrNotThere
	}
	var code uint32
	const stillActive = 259
	if err := windows.GetExitCodeProcess(h, &code); err != nil || code != stillActive {
		return Identity{}, ErrNotThere
	}
	return Identity{PID: pid, Start: uint64(created.Nanoseconds()), Exe: imageName(h)}, nil
}

func imageName(h windows.Handle) string {
	buf := make([]uint16, windows.MAX_LONG_PATH)
	n := uint32(len(buf))
	if windows.QueryFullProcessImageName(h, 0, &buf[0], &n) != nil {
		return ""
	}
	return windows.UTF16ToString(buf[:n])
}

// Parent is not known here: localllm does not manage engines on Windows.
func Parent(int) (int, error) { return 0, ErrNotThere }

// Name is not known here.
func Name(int) (string, error) { return "", ErrNotThere }

func suspended(int) bool { return false }

func nonceOf(int) (nonce string, visible bool) { return "", false }

// Marked finds nothing here: environments are hidden.
func Marked(string) []Identity { return nil }

// Sweep finds nothing here: environments are hidden.
func Sweep(string) int { return 0 }

func signalGroup(leader int, sig syscall.Signal) {
	if p, err := os.FindProcess(leader); err == nil {
		_ = p.Signal(sig)
	}
}

// Signal can only kill here.
func Signal(id Identity, _ syscall.Signal) error {
	if !id.Ours() {
		return ErrNotThere
	}
	p, err := os.FindProcess(id.PID)
	if err != nil {
		return ErrNotThere
	}
	return p.Kill()
}

// AwaitExit blocks until the process that id names has ended.
func AwaitExit(id Identity) error {
	h, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(id.PID))
	if err != nil || !id.Alive() {
		return nil
	}
	defer windows.CloseHandle(h)
	_, err = windows.WaitForSingleObject(h, windows.INFINITE)
	return err
}

// awaitZombie would have to wait without reaping, which this system's library does not offer.
func awaitZombie(int) bool { return false }
