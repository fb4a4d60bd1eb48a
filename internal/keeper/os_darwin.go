package keeper

import "golang.org/x/sys/unix"

func networkSystem(dir string) string {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil || s.Flags&unix.MNT_LOCAL != 0 {
		return ""
	}
	return unix.ByteSliceToString(s.Fstypename[:])
}
