package keeper

import "golang.org/x/sys/unix"

// suspended is not looked at here: a stopped engine shows by its silence.
func suspended(int) bool { return false }

func networkSystem(dir string) string {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil || s.Flags&unix.MNT_LOCAL != 0 {
		return ""
	}
	return unix.ByteSliceToString(s.Fstypename[:])
}
