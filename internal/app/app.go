// Package app carries out the actions: one method each. It is the only place that wires the packages together, and
// both doors, the tool and the command line, call it. It never prints.
package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"localllm/delegate"
	"localllm/internal/config"
	"localllm/internal/hint"
	"localllm/internal/keeper"
	"localllm/internal/paths"
	"localllm/internal/request"
	"localllm/internal/session"
	"localllm/internal/tasks"
	"localllm/internal/terminal"
	"localllm/lifecycle"
)

// Progress is one step of a long action.
type Progress = lifecycle.Progress

// Step is p as people and clients are shown it.
func Step(p Progress) terminal.Step {
	return terminal.Step{Phase: p.Phase, Done: p.Done, Total: p.Total, Unit: p.Unit, Detail: p.Detail}
}

// Errors that callers branch on.
var (
	ErrNotEnabled   = lifecycle.ErrNotEnabled
	ErrCannotEnable = errors.New("no local model can be enabled here")
)

// InvalidError is a well-formed request that asks for something that can't be, like a profile that doesn't exist.
type InvalidError struct{ Reason string }

func (e *InvalidError) Error() string { return e.Reason }

// ConfigError is a configuration that can't be understood.
type ConfigError struct{ Err error }

func (e *ConfigError) Error() string { return e.Err.Error() }
func (e *ConfigError) Unwrap() error { return e.Err }

// Options of one App.
type Options struct {
	Version string
	Warn    func(string) // things a user should know that are no error; may be nil
}

// App is one process's view: configuration, places, and the keeper's client. It is safe for many calls at once.
type App struct {
	version string
	layout  paths.Layout
	config  config.Config
	client  *keeper.Client
	tasks   tasks.Store
	warn    func(string)
}

// Open reads the configuration. Nothing is started or repaired.
func Open(o Options) (*App, error) {
	layout, err := paths.Find()
	if err != nil {
		return nil, err
	}
	conf, err := config.Load(layout.Config)
	if err != nil {
		return nil, &ConfigError{err}
	}
	a := &App{version: o.Version, layout: layout, config: conf, warn: o.Warn, tasks: tasks.Open(layout)}
	if a.warn == nil {
		a.warn = func(string) {}
	}
	a.client = keeper.NewClient(keeper.ClientOptions{Layout: layout})
	return a, nil
}

// Close lets go of what this process holds: a server's lease on the engine ends in an orderly way, without grace.
// Leases that are bound to a client's process stay. It takes microseconds and may be called twice.
func (a *App) Close() { a.client.Close() }

// Call is what the command line may add to a request.
type Call struct {
	Project  string           // the project's folder; empty: CLAUDE_PROJECT_DIR, else the working folder
	Binding  *session.Binding // whose session this is; nil: found by looking up the process tree
	Held     bool             // the calling process lives as long as its session: its lease is a held lock
	Patient  bool             // somebody sees progress: no need to turn long work into a background task
	WantDiff bool             // fill Result.Diff
	InRunner bool             // a background task's runner calls
	Trial    bool             // a made-up task that measures a model: the score learns nothing from it
}

type callKey struct{}

// WithCall returns a context that carries c.
func WithCall(ctx context.Context, c *Call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

func callOf(ctx context.Context) Call {
	if c, ok := ctx.Value(callKey{}).(*Call); ok && c != nil {
		return *c
	}
	return Call{}
}

// project is the folder that paths of this call are relative to.
func (c Call) project() (string, error) {
	dir := c.Project
	if dir == "" {
		dir = os.Getenv("CLAUDE_PROJECT_DIR")
	}
	if dir == "" {
		var err error
		if dir, err = os.Getwd(); err != nil {
			return "", fmt.Errorf("finding the project's folder: %w", err)
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("finding the project's folder: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return "", &InvalidError{fmt.Sprintf("the project folder %s is not a folder", dir)}
	}
	return dir, nil
}

// Folder is the folder that outputs are relative to: workdir, which is relative to the project itself, or the project.
func (c Call) Folder(workdir string) (string, error) {
	_, dir, err := folders(c, workdir)
	return dir, err
}

// Do carries out one action. in is what request.Decode returned for it; report may be called from any goroutine
// until Do returns.
func (a *App) Do(ctx context.Context, action string, in any, report func(Progress)) (any, error) {
	if report == nil {
		report = func(Progress) {}
	}
	// Whoever comes next in a project repairs what a crash left there.
	if project, err := callOf(ctx).project(); err == nil {
		if _, err := a.repairTree(project); err != nil {
			a.warn(err.Error())
		}
	}
	out, err := a.do(ctx, action, in, report)
	var start *lifecycle.StartError
	if errors.As(err, &start) {
		err = hint.Add(err, start.Hints...)
	}
	return out, err
}

func (a *App) do(ctx context.Context, action string, in any, report func(Progress)) (any, error) {
	switch in := in.(type) {
	case *request.Capability:
		return a.Capability(ctx, in)
	case *request.Enable:
		return a.Enable(ctx, in, report)
	case *request.Disable:
		return a.Disable(ctx, in, report)
	case *request.Status:
		return a.Status(ctx, in, report)
	case *request.Analyze:
		return a.Analyze(ctx, in)
	case *delegate.Task:
		return a.Delegate(ctx, in, report)
	case *request.Stats:
		return a.Stats(ctx, in)
	}
	return nil, hint.New(fmt.Sprintf("there is no action %q", action), "localllm --help")
}
