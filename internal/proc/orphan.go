package proc

import (
	"fmt"
	"os/exec"
)

// Orphan starts a process in a session of its own and never waits for it. The caller is a short-lived process in
// between: when that ends, the system adopts the child, which is then neither a descendant nor in the group of whoever
// started the one in between.
func Orphan(path string, args, env []string) error {
	cmd := exec.Command(path, args...)
	cmd.Env, cmd.Dir = env, "/"
	cmd.SysProcAttr = attributes(Command{Session: true})
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", path, err)
	}
	return cmd.Process.Release()
}
