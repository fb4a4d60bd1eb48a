package toolloop

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"localllm/internal/containment"
	"localllm/internal/proc"
	"localllm/internal/verify"
)

const (
	commandTime = 60 * time.Second
	commandMost = 10 * time.Minute
	commandEnd  = 500 * time.Millisecond // between TERM and KILL
	mostRan     = 30                     // commands that a report lists
)

// containment says what holds for the commands of this task; nothing where there are none.
func (c *conversation) containment() string {
	if !c.shell() {
		return ""
	}
	return c.box().Says(c.Network)
}

// runBash runs a command line in the copy, and takes over what it changed as if the model had written it.
func (c *conversation) runBash(ctx context.Context, a arguments) result {
	line := text(a.Command)
	if strings.TrimSpace(line) == "" || strings.ContainsRune(line, 0) {
		return failure("the command is empty or holds a NUL byte")
	}
	limit := commandTime
	if a.TimeoutS > 0 {
		limit = min(time.Duration(a.TimeoutS)*time.Second, commandMost)
	}
	if c.mirror == nil {
		m, err := newMirror(c.Layout, c.Root)
		if err != nil {
			return failure("no command can be run: %v", err)
		}
		c.mirror = m
	}
	if err := c.mirror.refresh(ctx); err != nil {
		return failure("no command can be run: %v", err)
	}
	out := proc.Tail{Limit: 256 << 10}
	exit, err := c.execute(ctx, line, limit, &out)
	output := c.mirror.relative(out.String(), c.subfolder())
	if lost := out.Lost(); lost > 0 {
		output = fmt.Sprintf("[%d bytes before]\n%s", lost, output)
	}
	how := fmt.Sprintf("exit %d", exit)
	switch {
	case ctx.Err() != nil:
		return failure("%v", ctx.Err())
	case errors.Is(err, context.DeadlineExceeded):
		how = fmt.Sprintf("it did not end within %d s and was killed", int(limit.Seconds()))
		exit = -1
	case err != nil && exit == -1:
		return failure("it could not be started: %v", err)
	}
	if len(c.ran) < mostRan {
		c.ran = append(c.ran, fmt.Sprintf("%s → %s", clip(strings.Join(strings.Fields(line), " "), 120), how))
	}
	taken := c.takeOver(ctx)
	return result{text: strings.TrimRight(how+"\n"+c.ends(output), "\n") + taken, failed: exit != 0}
}

// ends keeps the beginning and the end of an output: the first error and the summary.
func (c *conversation) ends(s string) string {
	page := c.page()
	if len(s) <= page {
		return s
	}
	head, tail := s[:page/2], s[len(s)-page/2:]
	return strings.ToValidUTF8(head, "") + fmt.Sprintf("\n[… %d bytes left out …]\n", len(s)-page) + strings.ToValidUTF8(tail, "")
}

func (c *conversation) execute(ctx context.Context, line string, limit time.Duration, out *proc.Tail) (int, error) {
	shell, err := exec.LookPath("bash")
	if err != nil {
		if shell, err = exec.LookPath("sh"); err != nil {
			return -1, err
		}
	}
	policy := containment.Policy{Write: []string{c.mirror.tree, c.mirror.temp}, Hide: append(slices.Clone(c.Hide), c.mirror.secrets...), Network: c.Network}
	path, args, err := c.box().Command(policy, []string{shell, "-c", line})
	if err != nil {
		return -1, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	dir := filepath.Join(c.mirror.tree, filepath.FromSlash(c.subfolder()))
	return proc.Run(ctx, proc.Command{Path: path, Args: args, Env: c.environment(dir), Dir: dir, Stdout: out, Stderr: out,
		Nonce: c.mirror.place.Nonce, Grace: commandEnd, Death: syscall.SIGKILL,
		Session: true}) // it could type into a terminal that it shares with us
}

// environment is verify's, with the caches where a contained command may write: its own would be poisoned for others
// if it could.
func (c *conversation) environment(dir string) []string {
	env := slices.DeleteFunc(verify.Environment(dir, c.mirror.temp), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains([]string{"XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "GOCACHE", "UV_CACHE_DIR", "SHELL"}, name)
	})
	cache := filepath.Join(c.mirror.temp, "cache")
	for _, name := range []string{"XDG_CACHE_HOME", "GOCACHE", "UV_CACHE_DIR", "PIP_CACHE_DIR", "npm_config_cache"} {
		env = append(env, name+"="+filepath.Join(cache, strings.ToLower(name)))
	}
	return append(env, "PYTHONDONTWRITEBYTECODE=1", "GIT_OPTIONAL_LOCKS=0")
}

// subfolder is where the working folder is in the project, with slashes.
func (c *conversation) subfolder() string {
	rel, err := filepath.Rel(c.Root, c.Dir)
	if err != nil {
		return "."
	}
	return filepath.ToSlash(rel)
}

func (c *conversation) copied() string {
	if c.mirror == nil {
		return ""
	}
	return filepath.Join(c.mirror.tree, filepath.FromSlash(c.subfolder()))
}

// takeOver writes what a command changed in the copy through the change, with all its checks, and tells the model what
// was not taken over: there the copy becomes as the project is.
func (c *conversation) takeOver(ctx context.Context) string {
	var taken, left []string
	changed, err := c.mirror.changed(ctx)
	if err != nil {
		return "\n[what it changed was not taken over: " + err.Error() + "]"
	}
	for _, f := range changed {
		rel, why := f.path, ""
		if sub := c.subfolder(); sub != "." {
			var inside bool
			if rel, inside = strings.CutPrefix(f.path, sub+"/"); !inside {
				rel, why = f.path, "outside of the working folder"
			}
		}
		switch {
		case why != "":
		case f.problem != "":
			why = f.problem
		default:
			var old *string
			if old, why = c.now(rel); why == "" {
				_, why = c.put(rel, f.body, old, true)
			}
		}
		if why == "" {
			taken = append(taken, rel)
			c.mirror.keep(f.path)
			continue
		}
		left = append(left, rel+" ("+why+")")
		if !f.stays {
			c.mirror.forget(f.path)
		}
	}
	s := ""
	if len(taken) > 0 {
		s += "\n[changed in the project: " + names(taken) + "]"
	}
	if len(left) > 0 {
		s += "\n[not taken over into the project: " + names(left) + "]"
	}
	return s
}

func names(all []string) string {
	const most = 20
	if len(all) > most {
		return strings.Join(all[:most], ", ") + fmt.Sprintf(" and %d more", len(all)-most)
	}
	return strings.Join(all, ", ")
}
