package containment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/landlock-lsm/go-landlock/landlock"
	kernel "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

func landlocked(ctx context.Context, self string) (Box, bool) {
	abi, err := kernel.LandlockGetABIVersion()
	// Before ABI 3 a file could be emptied by truncating it, which is a write.
	if err != nil || abi < 3 || self == "" || !dispatches {
		return Box{}, false
	}
	b := Box{Name: "landlock", program: self, abi: abi}
	return b, b.works(ctx)
}

// become is the hidden command: POLICY -- PROGRAM ARGUMENTS. It returns only if it could not become the program, which
// then has not run.
func become(args []string) error {
	if len(args) < 3 || args[1] != "--" {
		return errors.New("containing a command: wrong arguments")
	}
	var p Policy
	if err := json.Unmarshal([]byte(args[0]), &p); err != nil {
		return fmt.Errorf("containing a command: %w", err)
	}
	program, err := exec.LookPath(args[2])
	if err != nil {
		return fmt.Errorf("containing a command: %w", err)
	}
	if err := restrict(p); err != nil {
		return fmt.Errorf("containing a command: %w", err)
	}
	return fmt.Errorf("starting %s: %w", program, unix.Exec(program, args[2:], os.Environ()))
}

func restrict(p Policy) error {
	abi, err := kernel.LandlockGetABIVersion()
	if err != nil || abi < 3 {
		return errors.New("this kernel has no Landlock that would do")
	}
	var dirs, files []string
	readable("/", p.Hide, &dirs, &files)
	rules := []landlock.Rule{
		landlock.RODirs(dirs...).IgnoreIfMissing(), landlock.ROFiles(files...).IgnoreIfMissing(),
		landlock.RWFiles("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty").IgnoreIfMissing(),
	}
	for _, w := range p.Write {
		rules = append(rules, landlock.RWDirs(w).WithRefer())
	}
	// The version that was asked for has no network part: sockets are the filter's below, for TCP is not all.
	if err := landlock.V7.BestEffort().RestrictPaths(rules...); err != nil {
		return err
	}
	if abi >= 6 {
		if err := landlock.V7.BestEffort().RestrictScoped(); err != nil {
			return err
		}
	}
	if p.Network {
		return nil
	}
	return denySockets()
}

// readable lists what may be read: all but hide. A folder above something hidden is named entry by entry, since a
// rule for a folder counts for all below it.
func readable(dir string, hide []string, dirs, files *[]string) {
	above := false
	for _, h := range hide {
		if h == dir {
			return
		}
		above = above || strings.HasPrefix(h, strings.TrimSuffix(dir, "/")+"/")
	}
	if !above {
		*dirs = append(*dirs, dir)
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path) // a link is what it leads to
		switch {
		case err != nil:
		case e.Type()&os.ModeSymlink != 0:
			// What it leads to has its own rule, or is hidden.
		case info.IsDir():
			readable(path, hide, dirs, files)
		case !isOneOf(path, hide):
			*files = append(*files, path)
		}
	}
}

func isOneOf(path string, list []string) bool {
	for _, l := range list {
		if l == path {
			return true
		}
	}
	return false
}
