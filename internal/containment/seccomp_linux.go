package containment

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Of include/uapi/linux/audit.h: which machine's system calls the numbers are.
var auditArch = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64, "riscv64": unix.AUDIT_ARCH_RISCV64}

// Offsets in struct seccomp_data.
const (
	dataNumber = 0
	dataArch   = 4
)

// denySockets lets no thread of this process, nor what it becomes, open a socket: Landlock knows TCP only, and nothing
// of UDP or of another program's socket file. Pairs of sockets that lead nowhere else still work.
func denySockets() error {
	arch, known := auditArch[runtime.GOARCH]
	if !known {
		return errors.New("no system call filter is known for " + runtime.GOARCH)
	}
	deny := func(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }
	program := []unix.SockFilter{
		load(dataArch), jumpIf(arch, 1, 0), answer(unix.SECCOMP_RET_KILL_PROCESS), // another machine's numbers
		load(dataNumber),
		jumpIf(unix.SYS_SOCKET, 0, 1), answer(deny(unix.EACCES)),
		jumpIf(unix.SYS_IO_URING_SETUP, 0, 1), answer(deny(unix.ENOSYS)), // it opens sockets by itself
	}
	if runtime.GOARCH == "amd64" {
		// The x32 calls have numbers of their own under the same name of machine.
		program = append(program, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, Jt: 0, Jf: 1, K: 0x40000000}, answer(deny(unix.ENOSYS)))
	}
	program = append(program, answer(unix.SECCOMP_RET_ALLOW))
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	left, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	if e != 0 {
		return fmt.Errorf("filtering system calls: %w", e)
	}
	if left != 0 { // no thread is filtered then, and it is no error to the kernel
		return fmt.Errorf("filtering system calls: thread %d can't be", left)
	}
	runtime.KeepAlive(program)
	return nil
}

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

func jumpIf(equal uint32, then, otherwise uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: then, Jf: otherwise, K: equal}
}

func answer(value uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: value}
}
