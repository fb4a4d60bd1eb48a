package keeper

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"localllm/internal/hint"
	"localllm/internal/proc"
)

const (
	firstBreath = 10 * time.Second // from the spawn to the keeper's lock; milliseconds where the disk is warm
	births      = 3                // a keeper that was killed before it held its lock is started again
)

// spawn starts a keeper outside of our process tree and waits until it holds its lock. The caller holds the folder's
// lock, so nobody else spawns meanwhile.
func (c *Client) spawn() error {
	for range births {
		born, err := c.bear()
		if err != nil {
			return fmt.Errorf("starting the keeper: %w", err)
		}
		if c.breathes(born) {
			return nil
		}
		if born.Alive() {
			break // too slow, and another beside it would be no faster
		}
	}
	return hint.New("starting the keeper: it did not come up", "try it in the foreground: localllm keeper --foreground")
}

// bear starts a keeper through a process in between, which names it. The keeper may have ended already.
func (c *Client) bear() (proc.Identity, error) {
	exe := c.executable
	if exe == "" {
		var err error
		if exe, err = ownProgram(); err != nil {
			return proc.Identity{}, err
		}
	}
	env := c.environ
	if env == nil {
		env = RelevantEnv(os.Environ())
	}
	var said, named bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), firstBreath)
	defer cancel()
	exit, err := proc.Run(ctx, proc.Command{Path: exe, Args: []string{"keeper", "--spawn"}, Env: env, Dir: "/", Stdout: &named, Stderr: &said, Session: true})
	if err == nil && exit != 0 {
		err = fmt.Errorf("exit status %d", exit)
	}
	if err != nil {
		return proc.Identity{}, hint.Add(fmt.Errorf("%w %s", err, strings.TrimSpace(said.String())), "try it in the foreground: localllm keeper --foreground")
	}
	var born proc.Identity
	if err := json.Unmarshal(named.Bytes(), &born); err != nil {
		return proc.Identity{}, fmt.Errorf("reading its process id: %w", err)
	}
	return born, nil
}

// breathes waits for a keeper's lock, for as long as the one that was born lives. It may be another one's: then that
// one serves, and ours goes.
func (c *Client) breathes(born proc.Identity) bool {
	f := c.folder()
	for end := time.Now().Add(firstBreath); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		lives := born.Alive() // looked at first: one that takes its lock and ends at once has lived
		if f.keeperAlive() {
			return true
		}
		if !lives {
			return false
		}
	}
	return false
}

// Spawn is what `localllm keeper --spawn` does: it starts the keeper in a session of its own, names it on out and
// returns at once, so that the keeper's parent is gone and the system adopts it. It is neither a descendant of the
// client's server nor in its group.
func Spawn(out io.Writer) error {
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
	born, err := proc.Identify(cmd.Process.Pid)
	if err != nil {
		born = proc.Identity{PID: cmd.Process.Pid} // it has ended already
	}
	if err := json.NewEncoder(out).Encode(born); err != nil {
		return fmt.Errorf("naming the keeper: %w", err)
	}
	return cmd.Process.Release()
}

// ownProgram is this program's file, or what an update has put in its place.
func ownProgram() (string, error) {
	exe, err := os.Executable()
	return strings.TrimSuffix(exe, " (deleted)"), err // as Linux shows a replaced file
}
