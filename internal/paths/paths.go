// Package paths says where localllm keeps its files. It creates no file and reads no configuration.
package paths

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
)

// HomeVariable names the one folder that holds everything but the delegation log, for tests and portable use.
const HomeVariable = "LOCALLLM_HOME"

// DelegationLog is the log's path inside a project.
const DelegationLog = ".claude/workflow/delegation-log.jsonl"

// Layout is the set of places for one user.
type Layout struct {
	Run    string // locks, leases, status, process records: must be the same for every client of this user
	State  string // measured memory, caches, engine logs, journals, background tasks
	Config string // the configuration file
}

// Find works out the layout. The run and state folders follow the user id and never an environment variable
// (but for LOCALLLM_HOME): clients pass different environments, and two lock folders would be two engines.
func Find() (Layout, error) {
	if home := os.Getenv(HomeVariable); home != "" {
		home, err := filepath.Abs(home)
		if err != nil {
			return Layout{}, fmt.Errorf("resolving %s: %w", HomeVariable, err)
		}
		return Layout{
			Run:    filepath.Join(home, "run"),
			State:  filepath.Join(home, "state"),
			Config: filepath.Join(home, "config.toml"),
		}, nil
	}
	home, err := UserHome()
	if err != nil {
		return Layout{}, err
	}
	state := filepath.Join(home, ".local", "state", "localllm")
	return Layout{Run: filepath.Join(state, "run"), State: state, Config: configFile(home)}, nil
}

// UserHome is the home folder of the user id that this process runs as, whatever HOME says.
func UserHome() (string, error) {
	if runtime.GOOS == "windows" {
		return os.UserHomeDir()
	}
	// user.Current trusts $HOME where cgo is off; a look-up by id reads the user database in both builds.
	u, err := user.LookupId(strconv.Itoa(os.Getuid()))
	if err == nil && u.HomeDir != "" {
		return u.HomeDir, nil
	}
	if home, herr := os.UserHomeDir(); herr == nil {
		return home, nil
	}
	return "", fmt.Errorf("finding the home folder of user %d: %w", os.Getuid(), err)
}

func configFile(home string) string {
	base := os.Getenv("XDG_CONFIG_HOME")
	if base == "" || !filepath.IsAbs(base) {
		base = filepath.Join(home, ".config")
	}
	return filepath.Join(base, "localllm", "config.toml")
}

// Private makes dir and its parents for this user alone.
func Private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making folder %s: %w", dir, err)
	}
	return nil
}
