package keeper

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"localllm/internal/hint"
	"localllm/internal/proc"
)

const firstBreath = 10 * time.Second // from the spawn to the keeper's lock; milliseconds where the disk is warm

// spawn starts a keeper outside of our process tree and waits until it holds its lock. The caller holds the folder's
// lock, so nobody else spawns meanwhile.
func (c *Client) spawn() error {
	exe := c.executable
	if exe == "" {
		var err error
		if exe, err = ownProgram(); err != nil {
			return fmt.Errorf("starting the keeper: %w", err)
		}
	}
	env := c.environ
	if env == nil {
		env = RelevantEnv(os.Environ())
	}
	var said bytes.Buffer
	p, err := proc.Start(proc.Command{Path: exe, Args: []string{"keeper", "--spawn"}, Env: env, Dir: "/", Stderr: &said, Session: true})
	if err != nil {
		return fmt.Errorf("starting the keeper: %w", err)
	}
	if err := p.Wait(); err != nil {
		return hint.Add(fmt.Errorf("starting the keeper: %w %s", err, strings.TrimSpace(said.String())), "try it in the foreground: localllm keeper --foreground")
	}
	f := c.folder()
	for end := time.Now().Add(firstBreath); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if f.keeperAlive() {
			return nil
		}
	}
	return hint.New("starting the keeper: it did not come up", "try it in the foreground: localllm keeper --foreground")
}

// Spawn is what `localllm keeper --spawn` does: it starts the keeper in a session of its own and returns at once, so
// that the keeper's parent is gone and the system adopts it. It is neither a descendant of the client's server nor in
// its group.
func Spawn() error {
	exe, err := ownProgram()
	if err != nil {
		return fmt.Errorf("starting the keeper: %w", err)
	}
	// Not by proc.Start: that one waits for its child and ends it with its group.
	cmd := exec.Command(exe, "keeper")
	cmd.Env, cmd.Dir = os.Environ(), "/"
	cmd.SysProcAttr = ownSession()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the keeper: %w", err)
	}
	return cmd.Process.Release()
}

// ownProgram is this program's file, or what an update has put in its place.
func ownProgram() (string, error) {
	exe, err := os.Executable()
	return strings.TrimSuffix(exe, " (deleted)"), err // as Linux shows a replaced file
}
