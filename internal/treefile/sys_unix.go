//go:build unix

package treefile

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const nonblock = unix.O_NONBLOCK

// own gives the new file the old one's owner where that differs and we may; where we may not, the file is ours now,
// as with every editor that saves by renaming.
func own(f *os.File, like fs.FileInfo) {
	if like == nil {
		return
	}
	old, ok := like.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	if info, err := f.Stat(); err == nil {
		if now, ok := info.Sys().(*syscall.Stat_t); ok && (now.Uid != old.Uid || now.Gid != old.Gid) {
			_ = f.Chown(int(old.Uid), int(old.Gid))
		}
	}
}

// Links is how many names a file has.
func Links(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}

// Writable reports why files can't be made in the folder that rel is, or would be, in.
func (r *Root) Writable(rel string) error {
	folder, err := r.nearest(rel)
	if err != nil {
		return err
	}
	defer folder.Close()
	f, err := folder.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Faccessat(int(f.Fd()), ".", unix.W_OK|unix.X_OK, 0)
}
