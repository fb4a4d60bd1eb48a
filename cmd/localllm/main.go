// Command localllm lets a coding agent hand bounded work to a model on this machine's own GPU: it finds what fits,
// starts and shares the engine, proves results, and lets go of the memory. It decides nothing itself: internal/app does.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"localllm/delegate"
	"localllm/internal/app"
	"localllm/internal/containment"
	"localllm/internal/hint"
	"localllm/internal/keeper"
	"localllm/internal/request"
	"localllm/internal/tasks"
	"localllm/lifecycle"
)

// Set by the linker.
var (
	version = "dev"
	commit  = "unknown"
)

// Exit codes, public.
const (
	exitOK         = 0
	exitUnexpected = 1
	exitUsage      = 2
	exitNotDone    = 3 // tried and not accomplished
	exitCannot     = 10
	exitEngine     = 11
	exitNotEnabled = 12
	exitBusy       = 13
	exitInterrupt  = 130
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	// The keeper and its warden live long and must stay small: nothing else is set up for them.
	if len(args) > 0 && args[0] == "keeper" {
		return runKeeper(args[1:])
	}
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup has it ignored
		ends = append(ends, syscall.SIGHUP) // a terminal that is closed: put back what was under way
	}
	if exit, did := containment.Dispatch(args); did {
		return exit
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	code := exitCode(err)
	if ctx.Err() != nil {
		code = exitInterrupt
	}
	var done *notDone
	if !errors.As(err, &done) {
		printError(os.Stderr, err)
	}
	return code
}

// notDone ends a command with exit code 3: its result is printed already.
type notDone struct{ status string }

func (e *notDone) Error() string { return "not accomplished: " + e.status }

// usageError is a call that can't be understood.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func exitCode(err error) int {
	var (
		done    *notDone
		usage   *usageError
		bad     *request.Error
		start   *lifecycle.StartError
		busy    *lifecycle.BusyError
		invalid *app.InvalidError
		conf    *app.ConfigError
		field   *delegate.FieldError
		engine  *delegate.EngineError
		task    *app.TaskError
	)
	switch {
	case errors.As(err, &task) && task.Exit != exitOK:
		return task.Exit
	case errors.As(err, &done):
		return exitNotDone
	case errors.As(err, &usage), errors.As(err, &bad), errors.As(err, &invalid), errors.As(err, &conf), errors.As(err, &field),
		errors.Is(err, tasks.ErrUnknown):
		return exitUsage
	case errors.Is(err, app.ErrCannotEnable):
		return exitCannot
	case errors.Is(err, app.ErrNotEnabled):
		return exitNotEnabled
	case errors.As(err, &busy):
		return exitBusy
	case errors.As(err, &start) && start.Cause == lifecycle.NoSuchModel: // no engine has failed
		return exitCannot
	case errors.As(err, &start), errors.As(err, &engine):
		return exitEngine
	case errors.Is(err, context.Canceled):
		return exitInterrupt
	}
	return exitUnexpected
}

func printError(w io.Writer, err error) {
	for line := range strings.SplitSeq(err.Error(), "\n") { // several errors at once have a line each
		fmt.Fprintf(w, "localllm: error: %s\n", line)
	}
	for _, h := range hint.Of(err) {
		fmt.Fprintf(w, "localllm: hint: %s\n", h)
	}
}

func runKeeper(args []string) int {
	if err := keeper.Main(args, app.KeeperOptions); err != nil {
		printError(os.Stderr, err)
		return exitCode(err)
	}
	return exitOK
}
