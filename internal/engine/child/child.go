// Package child runs an engine's server process: its log, its port, and whether anything moves while it loads. It
// knows no engine and speaks no HTTP.
package child

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"localllm/internal/proc"
	"localllm/lifecycle"
)

// Manages reports whether engines can be started here and ended for certain. On Windows they can't yet: there a
// running server is used.
const Manages = runtime.GOOS != "windows"

// Options describe one server process.
type Options struct {
	Path  string
	Args  []string
	Env   []string
	Grace time.Duration // between TERM and KILL
	Host  lifecycle.Host
	Line  func(string) // every line of output, in order, from one goroutine; may be nil
}

// Child is a running server process.
type Child struct {
	*proc.Process
	out *output
}

// Start records the child-to-be, starts it in a group of its own, and records its pid. Its parent's death ends it.
func Start(o Options) (*Child, error) {
	if o.Host.Record != nil {
		if err := o.Host.Record(0); err != nil {
			return nil, fmt.Errorf("recording the start: %w", err)
		}
	}
	out := newOutput(o.Host.LogPath, o.Line)
	env := o.Env
	if env == nil {
		env = []string{}
	}
	p, err := proc.Start(proc.Command{
		Path: o.Path, Args: o.Args, Env: env, Dir: o.Host.Dir, Stdout: out, Stderr: out,
		Nonce: o.Host.Nonce, Death: syscall.SIGTERM, Grace: o.Grace,
	})
	if err != nil {
		out.close()
		return nil, err
	}
	c := &Child{Process: p, out: out}
	go func() { // ends with the child
		<-p.Done()
		out.close()
	}()
	if o.Host.Record != nil {
		if err := o.Host.Record(p.PID()); err != nil {
			p.Kill()
			<-p.Done()
			return nil, fmt.Errorf("recording the start: %w", err)
		}
	}
	return c, nil
}

// Tail is the end of the child's output.
func (c *Child) Tail() string { return c.out.tail.String() }

// LogTrouble is why the log file is incomplete, nil if it isn't. The child never notices: its output is read on.
func (c *Child) LogTrouble() error { return c.out.trouble() }

// Why a watched context ended.
var (
	ErrStalled = errors.New("nothing moved any more")
	ErrExited  = errors.New("the process has ended")

	// ErrSuspended is an ErrStalled, noticed earlier: nothing can move.
	ErrSuspended = fmt.Errorf("%w: the process is suspended", ErrStalled)
)

// standstill is how long a child may be suspended: somebody may look at it in a debugger for a moment.
const standstill = 5 * time.Second

// Still words an ErrStalled.
func Still(err error) string {
	if errors.Is(err, ErrSuspended) {
		return "was suspended (SIGSTOP)"
	}
	return "stopped moving"
}

// Watch returns a context that ends with cause ErrExited when the child ends, and with ErrStalled when for a whole
// stall neither its output nor its memory nor its files have moved, or when it stood suspended. tick, which may be nil, gets the resident
// bytes of the child and its descendants a few times a second. The caller must call the function that is returned.
func (c *Child) Watch(ctx context.Context, stall time.Duration, tick func(resident int64)) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() { // ends with ctx, or with the child, or with a stall
		defer close(ended)
		pace := time.NewTicker(max(min(stall/8, 250*time.Millisecond), time.Millisecond))
		defer pace.Stop()
		last, since, ran := c.moved(), time.Now(), time.Now()
		for {
			select {
			case <-ctx.Done():
				return
			case <-c.Done():
				cancel(ErrExited)
				return
			case <-pace.C:
			}
			now := c.moved()
			if tick != nil {
				tick(now.resident)
			}
			if !c.Identity().Suspended() {
				ran = time.Now()
			}
			switch {
			case time.Since(ran) > min(standstill, stall):
				cancel(ErrSuspended)
				return
			case now.coarse() != last.coarse():
				last, since = now, time.Now()
			case time.Since(since) > stall:
				cancel(ErrStalled)
				return
			}
		}
	}()
	return ctx, func() {
		cancel(context.Canceled)
		<-ended
	}
}

// Cause is why work under a watched context went wrong, given the error that it got: a connection that breaks is
// most often the child's end, which is seen a moment later.
func (c *Child) Cause(watched context.Context, err error) error {
	if cause := context.Cause(watched); cause != nil {
		return cause
	}
	var network interface{ Timeout() bool }
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &network) {
		select {
		case <-c.Done():
			return ErrExited
		case <-watched.Done():
			return context.Cause(watched)
		case <-time.After(time.Second):
		}
	}
	return err
}

type movement struct {
	output   int64
	resident int64 // bytes
	moved    int64 // bytes from and to files
}

// coarse leaves out what a hung loader still does when it is asked for its health.
func (m movement) coarse() movement {
	return movement{output: m.output, resident: m.resident >> 20, moved: m.moved >> 20}
}

func (c *Child) moved() movement {
	m := activity(c.PID())
	m.output = c.out.written.Load()
	return m
}

// FreePort is a TCP port on the loopback that nobody listens on at this moment.
func FreePort() (int, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("looking for a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// lines cuts a stream into lines; an overlong line is given in pieces.
type lines struct {
	rest []byte
	each func(string)
}

const longestLine = 16 << 10

func (l *lines) write(p []byte) {
	for len(p) > 0 {
		i := bytes.IndexAny(p, "\n\r")
		if i < 0 {
			l.rest = append(l.rest, p...)
			if len(l.rest) > longestLine {
				l.flush()
			}
			return
		}
		l.rest = append(l.rest, p[:i]...)
		l.flush()
		p = p[i+1:]
	}
}

func (l *lines) flush() {
	if len(l.rest) > 0 && l.each != nil {
		l.each(string(l.rest))
	}
	l.rest = l.rest[:0]
}

type counter = atomic.Int64
