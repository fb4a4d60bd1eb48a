package harness

import "syscall"

// A test binary that dies takes its engines with it; TERM lets Ollama end its own child.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
