//go:build unix

package contextfiles

import (
	"io/fs"
	"syscall"
)

// nonblock keeps the opening of a FIFO, swapped in after the look, from waiting for its writer.
const nonblock = syscall.O_NONBLOCK

func links(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}
