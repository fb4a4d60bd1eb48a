package session

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

func arguments(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimRight(string(b), "\x00"), "\x00")
}

func leadsSession(pid int) bool {
	sid, err := unix.Getsid(pid)
	return err == nil && sid == pid
}
