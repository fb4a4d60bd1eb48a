// Package verify runs the caller's own command and says what it showed. What it runs may be code that a model wrote:
// it gets no secrets, no input and no more time than allowed, and nothing of it is left when it has ended. It is not
// a sandbox: the command can read and write what its user can.
package verify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"localllm/delegate"
	"localllm/internal/paths"
	"localllm/internal/proc"
	"localllm/internal/scratch"
)

// Folder runs commands in one working folder. It implements delegate.Verifier.
type Folder struct {
	Dir    string // absolute
	Layout paths.Layout
}

// How long a command that has to end may take to end by itself.
const grace = 500 * time.Millisecond

var _ delegate.Verifier = Folder{}

// Check is delegate.Verifier's. Only an argument vector shows its program; of a line, the shell knows.
func (f Folder) Check(c delegate.Command) error {
	if info, err := os.Stat(f.Dir); err != nil || !info.IsDir() {
		return fmt.Errorf("the working folder %s is not there", f.Dir)
	}
	_, _, err := f.program(c)
	return err
}

// program finds what to start.
func (f Folder) program(c delegate.Command) (path string, args []string, err error) {
	argv := c.Argv
	if c.Shell != "" {
		argv = []string{"sh", "-c", c.Shell}
		if runtime.GOOS == "windows" {
			if _, err := exec.LookPath("sh"); err != nil {
				argv = []string{"cmd", "/C", c.Shell}
			}
		}
	}
	if len(argv) == 0 {
		return "", nil, errors.New("it is empty")
	}
	if strings.ContainsAny(argv[0], `/\`) && !filepath.IsAbs(argv[0]) {
		path = filepath.Join(f.Dir, argv[0])
		_, err = exec.LookPath(path)
	} else {
		path, err = exec.LookPath(argv[0]) // PATH is passed on as it is
	}
	if err != nil {
		return "", nil, fmt.Errorf("%s is no program that can be found: %w", argv[0], errors.Unwrap(err))
	}
	return path, argv[1:], nil
}

// Run is delegate.Verifier's.
func (f Folder) Run(ctx context.Context, c delegate.Command) (delegate.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return delegate.Outcome{}, err
	}
	temp, err := scratch.Make(f.Layout, "", "localllm-verify-")
	if err != nil {
		return delegate.Outcome{}, fmt.Errorf("preparing verify: %w", err)
	}
	defer func() { _ = temp.Remove() }()
	before, seen := f.look(ctx)
	path, args, err := f.program(c)
	if err != nil {
		return delegate.Outcome{Exit: -1, Missing: err.Error()}, nil
	}
	limited, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	out := &capture{}
	started := time.Now()
	exit, err := proc.Run(limited, proc.Command{
		Path: path, Args: args, Env: Environment(f.Dir, temp.Path), Dir: f.Dir, Stdout: out, Stderr: out, Nonce: temp.Nonce, Grace: grace,
		Session: true,            // what asks at the terminal fails at once, where it would wait for an answer that never comes
		Death:   syscall.SIGKILL, // nobody is left to read its verdict
	})
	o := delegate.Outcome{Exit: exit, Took: time.Since(started), Output: f.relative(out.String(), temp.Path)}
	switch {
	case ctx.Err() != nil:
		return delegate.Outcome{}, fmt.Errorf("running verify: %w", ctx.Err())
	case errors.Is(err, context.DeadlineExceeded):
		o.TimedOut = true
	case err != nil && exit == -1:
		o.Missing = err.Error()
	case err != nil:
		return delegate.Outcome{}, fmt.Errorf("running verify: %w", err)
	}
	if after, ok := f.look(ctx); seen && ok {
		o.Changed = before.changed(after)
	} else {
		o.Unseen = true
	}
	return o, nil
}

// relative takes the folder's absolute path out of what a tool printed: it says nothing to a model, and differs from
// machine to machine.
func (f Folder) relative(s, temp string) string {
	s = strings.ToValidUTF8(s, "?")
	dirs := []string{f.Dir}
	if real, err := filepath.EvalSymlinks(f.Dir); err == nil && real != f.Dir {
		dirs = append(dirs, real)
	}
	for _, d := range dirs {
		if d == string(filepath.Separator) {
			continue
		}
		s = strings.ReplaceAll(s, "file://"+d+string(filepath.Separator), "")
		s = strings.ReplaceAll(s, d+string(filepath.Separator), "")
		s = replaceWhole(s, d, ".")
	}
	return strings.ReplaceAll(s, temp, "$TMPDIR")
}

// replaceWhole replaces a path that does not go on: /a/b in /a/bc is not meant.
func replaceWhole(s, path, with string) string {
	var out strings.Builder
	for {
		i := strings.Index(s, path)
		if i < 0 {
			out.WriteString(s)
			return out.String()
		}
		rest := s[i+len(path):]
		out.WriteString(s[:i])
		if rest == "" || !strings.ContainsAny(rest[:1], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") {
			out.WriteString(with)
		} else {
			out.WriteString(path)
		}
		s = rest
	}
}
