// Package proc starts child processes in groups of their own and ends them with all that they started. It never
// uses a shell, and never signals a process that it can't prove to be the one that was meant.
package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// NonceVariable marks every process of one start: descendants inherit it, so that a sweep finds those which left
// the group.
const NonceVariable = "LOCALLLM_NONCE"

// Command describes a child. The zero Grace means 2 s.
type Command struct {
	Path   string
	Args   []string // without the program's name
	Env    []string // exactly this; nil means the parent's own
	Dir    string
	Stdin  io.Reader // nil: an empty input
	Stdout io.Writer
	Stderr io.Writer
	Nonce  string         // added to Env as NonceVariable when set
	Death  syscall.Signal // sent to the child when its parent dies (Linux); 0 for none
	Grace  time.Duration  // between TERM and KILL of the group

	// Session puts the child into a session of its own: it has no terminal and outlives its parent.
	Session bool
}

// Process is a started child. One goroutine waits for it; Wait may be called by many.
type Process struct {
	cmd      *exec.Cmd
	identity Identity
	nonce    string
	grace    time.Duration
	done     chan struct{}
	err      error

	mu     sync.Mutex
	reaped bool // from here on the pid may be somebody else's
}

// Start starts the child. The caller must Wait or Stop.
func Start(c Command) (*Process, error) {
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Env, cmd.Dir = c.Env, c.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	if c.Nonce != "" {
		if cmd.Env == nil {
			cmd.Env = os.Environ()
		}
		cmd.Env = append(cmd.Env[:len(cmd.Env):len(cmd.Env)], NonceVariable+"="+c.Nonce)
	}
	cmd.SysProcAttr = attributes(c)
	// A grandchild that keeps our pipe open must not keep Wait from returning.
	cmd.WaitDelay = 2 * time.Second
	p := &Process{cmd: cmd, nonce: c.Nonce, grace: c.Grace, done: make(chan struct{})}
	if p.grace == 0 {
		p.grace = 2 * time.Second
	}
	started := make(chan error)
	go p.own(started, c.Death != 0)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Path, err)
	}
	return p, nil
}

// own starts the child and waits for it; it ends when the child has. A parent-death signal is sent when the
// *thread* that started the child ends, so that thread is kept for as long as the child lives.
func (p *Process) own(started chan<- error, keepThread bool) {
	if keepThread {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	if err := p.cmd.Start(); err != nil {
		started <- err
		return
	}
	// Read before anyone can wait for the child: until then its pid can't be used again.
	p.identity, _ = Identify(p.cmd.Process.Pid)
	p.identity.Nonce = p.nonce
	started <- nil
	if awaitZombie(p.cmd.Process.Pid) {
		p.endGroup()
	}
	p.err = p.cmd.Wait()
	p.endGroup()
	close(p.done)
}

// endGroup ends what the leader left behind, once. An unreaped leader's pid still names our group and no other;
// where we can't look before reaping (not Linux), the group's own members keep it from being used again.
func (p *Process) endGroup() {
	p.signal(syscall.SIGKILL)
	if p.nonce != "" {
		Sweep(p.nonce)
	}
	p.mu.Lock()
	p.reaped = true
	p.mu.Unlock()
}

func (p *Process) signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		signalGroup(p.cmd.Process.Pid, sig)
	}
}

// Identity is what proves later that a pid is still this process.
func (p *Process) Identity() Identity { return p.identity }

// PID is the child's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended and its output has been read.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait blocks until the child has ended and returns what exec.Cmd.Wait returned.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// ExitCode is the child's exit status after Done, 128 plus the number for one that died of a signal.
func (p *Process) ExitCode() int {
	state := p.cmd.ProcessState
	if state == nil {
		return -1
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return state.ExitCode()
}

// Terminate sends TERM to the group.
func (p *Process) Terminate() { p.signal(syscall.SIGTERM) }

// Kill ends the group and all that carries the nonce.
func (p *Process) Kill() { p.signal(syscall.SIGKILL) }

// Stop ends the child: TERM to the group, KILL after the grace or when ctx ends. When it returns, the child has
// been waited for, and what was left of its group or carried its nonce is gone too.
func (p *Process) Stop(ctx context.Context) {
	p.Terminate()
	timer := time.NewTimer(p.grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return
	case <-timer.C:
	case <-ctx.Done():
	}
	p.Kill()
	<-p.done
}

// Run starts the child and waits. When ctx ends first, the child is stopped and the error wraps ctx.Err(). In any
// case nothing of the child's group, or with its nonce, is left.
func Run(ctx context.Context, c Command) (exit int, err error) {
	p, err := Start(c)
	if err != nil {
		return -1, err
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.Stop(context.WithoutCancel(ctx))
		return p.ExitCode(), fmt.Errorf("running %s: %w", c.Path, context.Cause(ctx))
	}
	var exitErr *exec.ExitError
	if p.err != nil && !errors.As(p.err, &exitErr) && !errors.Is(p.err, exec.ErrWaitDelay) {
		return p.ExitCode(), fmt.Errorf("running %s: %w", c.Path, p.err)
	}
	return p.ExitCode(), nil
}
