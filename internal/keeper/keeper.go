// Package keeper runs one engine a user for all sessions, outside of their process trees, and ends it when the last
// lease goes. Clients and keeper meet in locked files and nowhere else: it opens no socket, and it never signals a
// process that it can't prove to have started.
package keeper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"time"

	"localllm/internal/filelock"
	"localllm/internal/hint"
	"localllm/internal/paths"
	"localllm/lifecycle"
)

// Options are what a keeper is run with.
type Options struct {
	Layout     paths.Layout
	Engines    map[string]lifecycle.Engine // by engine name
	Foreground bool                        // says what happens on standard error

	// FreeMemory is free memory by device, for the proof that it came back. nil: there is no probe.
	FreeMemory func(ctx context.Context) (map[string]uint64, error)
	// Holders names who holds device memory now, for one line where it did not come back. May be nil.
	Holders func(ctx context.Context) []string
	// OnLoaded is told what a load really took. May be nil.
	OnLoaded func(spec lifecycle.Spec, memory lifecycle.Measured)
	// Warden is the command that runs Warden, its program first. nil: this program with "keeper", "--warden".
	Warden []string
}

// ErrRunning means that another keeper lives.
var ErrRunning = errors.New("another keeper runs already")

// Main is the hidden command: `localllm keeper` with one of --spawn, --warden, --foreground, or nothing. options is
// called only where an engine is to be run: the warden has to stay small.
func Main(args []string, options func() (Options, error)) error {
	switch {
	case slices.Contains(args, "--warden"):
		Warden(os.Stdin)
		return nil
	case slices.Contains(args, "--spawn"):
		return Spawn(os.Stdout)
	}
	o, err := options()
	if err != nil {
		return err
	}
	o.Foreground = o.Foreground || slices.Contains(args, "--foreground")
	err = Run(context.Background(), o)
	if errors.Is(err, ErrRunning) && !o.Foreground {
		return nil // two were started at once; the other one serves
	}
	return err
}

// A glance at the lock by somebody else looks, for microseconds, like a holder.
const lockBudget = 500 * time.Millisecond

// Run is the keeper. It returns when no session needs the engine any more, or when it was told to end; the engine is
// gone then. It is ErrRunning where another keeper lives.
func Run(ctx context.Context, o Options) error {
	f := folder{o.Layout}
	if err := f.make(); err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, lockBudget)
	lock, err := filelock.Take(wait, f.keeperPath())
	cancel()
	if errors.Is(err, context.DeadlineExceeded) {
		return ErrRunning
	}
	if err != nil {
		return fmt.Errorf("starting the keeper: %w", err)
	}
	defer lock.Release()
	ctx, stop := signal.NotifyContext(ctx, endSignals...)
	defer stop()
	debug.SetGCPercent(50) // it sleeps nearly always: memory is what it costs
	say, closeLog := f.openLog(o.Foreground)
	defer closeLog()
	k := newKeeper(o, f, lock, say)
	defer k.close()
	return k.run(ctx)
}

const maxKeeperLog = 256 << 10 // bytes; then it starts anew

func (f folder) openLog(foreground bool) (io.Writer, func()) {
	path := f.logPath() + ".keeper"
	if info, err := os.Stat(path); err == nil && info.Size() > maxKeeperLog {
		_ = os.Rename(path, path+".1")
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	switch {
	case err != nil && foreground:
		return os.Stderr, func() {}
	case err != nil:
		return io.Discard, func() {}
	case foreground:
		return io.MultiWriter(os.Stderr, file), func() { _ = file.Close() }
	}
	_ = debug.SetCrashOutput(file, debug.CrashOptions{}) // a keeper has no standard error to die on
	return file, func() {
		_ = debug.SetCrashOutput(nil, debug.CrashOptions{})
		_ = file.Close()
	}
}

// NetworkFolder is the warning for a run folder on a network file system, or empty.
func NetworkFolder(dir string) string {
	kind := networkSystem(dir)
	if kind == "" {
		return ""
	}
	return "the run folder " + dir + " is on " + kind + ": sessions on several machines would share it, and locks may not hold there"
}

func noEngine(name string) error {
	return hint.New(fmt.Sprintf("this localllm has no engine named %q", name), "engines: ollama, llama-server")
}
