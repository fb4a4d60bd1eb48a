package session

import (
	"encoding/binary"
	"strings"

	"golang.org/x/sys/unix"
)

// arguments reads kern.procargs2: a count, the executable, padding, then the arguments, each ended by a zero.
func arguments(pid int) []string {
	raw, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil || len(raw) < 5 {
		return nil
	}
	count := int(binary.LittleEndian.Uint32(raw))
	_, rest, _ := strings.Cut(string(raw[4:]), "\x00")
	args := strings.Split(strings.TrimLeft(rest, "\x00"), "\x00")
	return args[:min(max(count, 0), len(args))]
}

func leadsSession(pid int) bool {
	sid, err := unix.Getsid(pid)
	return err == nil && sid == pid
}
