package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/server"
)

const (
	// workers is how many calls run at once; more wait in a queue, and can be cancelled there.
	workers, queue = 100, 10000
	// patience is how long the end of the input waits for answers to what came just before it.
	patience = 200 * time.Millisecond
	// farewell is how long the calls in flight have to end after their context has: clients kill within 500 ms.
	farewell = 250 * time.Millisecond
)

// Stdio serves the process's own input and output until the client goes, which is no error. From here on nothing else
// can write to the protocol's output: file descriptor 1 is the standard error, for this process and for its children.
func Stdio(ctx context.Context, cfg Config) error {
	out, err := takeStdout()
	if err != nil {
		return fmt.Errorf("taking over the standard output: %w", err)
	}
	defer out.Close()
	logTo(os.Stderr)
	// A write into a pipe that the client has closed is an error to return and not a signal to die of.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	return Serve(ctx, cfg, os.Stdin, out)
}

// Serve is Stdio over any two pipes. Only one Serve can run in a process: the library has one session for all.
// A read that blocks in in may stay behind in its goroutine; the process is about to end then.
func Serve(ctx context.Context, cfg Config, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var once sync.Once
	leaving := func() {
		if cfg.Leaving != nil {
			once.Do(cfg.Leaving)
		}
	}
	defer leaving()

	g := newGuard(out, cancel)
	s := newService(cfg, g)
	fromPump, toLibrary := io.Pipe()
	ended := make(chan error, 1)
	// Ends with the input, or with the process.
	go func() {
		err := g.pump(in, toLibrary)
		if err == nil {
			g.drain(patience)
		}
		ended <- err
	}()
	stdio := server.NewStdioServer(s.mcp)
	server.WithErrorLogger(log.Default())(stdio)
	server.WithWorkerPoolSize(workers)(stdio)
	server.WithQueueSize(queue)(stdio)
	listening := make(chan error, 1)
	go func() { listening <- stdio.Listen(ctx, fromPump, g) }()

	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
	case err = <-listening:
		listening <- err
	}
	leaving()
	cancel()
	_ = toLibrary.Close()
	// A handler that doesn't notice its context's end must not keep the process.
	select {
	case <-listening:
	case <-time.After(farewell):
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}
