package containment

import (
	"context"
	"os"
	"os/exec"
	"runtime"
)

// bubblewrap is used where it is installed and may make its name spaces, which some systems forbid.
func bubblewrap(ctx context.Context, _ string) (Box, bool) {
	if runtime.GOOS != "linux" {
		return Box{}, false
	}
	program, err := exec.LookPath("bwrap")
	if err != nil {
		return Box{}, false
	}
	b := Box{Name: "bubblewrap", program: program}
	return b, b.works(ctx)
}

func bwrapArgs(p Policy) []string {
	args := []string{"--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"}
	if !p.Network {
		args = append(args, "--unshare-net")
	}
	for _, path := range p.Hide {
		info, err := os.Stat(path)
		switch {
		case err != nil:
		case info.IsDir():
			args = append(args, "--tmpfs", path)
		default:
			args = append(args, "--ro-bind", "/dev/null", path)
		}
	}
	for _, path := range p.Write { // last: they may lie within what is hidden
		args = append(args, "--bind", path, path)
	}
	return append(args, "--")
}
