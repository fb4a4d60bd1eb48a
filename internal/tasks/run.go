package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"localllm/internal/atomicfile"
	"localllm/internal/filelock"
	"localllm/internal/hint"
	"localllm/internal/proc"
)

// Starting is the phase of a runner that has not begun its work.
const Starting = "starting"

// Work carries out an order. exit is the command line's exit code for the result.
type Work func(ctx context.Context, o Order, report func(phase string)) (result any, exit int, err error)

// Run is the runner's whole life: it holds the task's lock, keeps its progress on disk, and writes one outcome. ctx
// ends when the task is cancelled; the order's deadline ends it too.
func (s Store) Run(ctx context.Context, id string, work Work) error {
	o, err := s.Order(id)
	if err != nil {
		return err
	}
	lock, err := filelock.Try(s.path(id, "lock"))
	if err != nil {
		return fmt.Errorf("running task %s: %w", id, err)
	}
	defer lock.Release()
	if s.state(o).Ended() { // cancelled before it began
		return nil
	}
	self := proc.Self()
	self.Nonce = o.Nonce
	var mu sync.Mutex
	last := progress{}
	report := func(phase string) {
		mu.Lock()
		defer mu.Unlock()
		if phase == last.Phase && time.Since(last.At) < time.Second {
			return
		}
		last = progress{Version: formatVersion, Runner: self, Phase: phase, At: time.Now()}
		_ = atomicfile.WriteJSON(s.path(id, "progress.json"), last) // the outcome is what counts
	}
	report(Starting)
	if s.asked(id) {
		return s.end(id, outcome{State: Cancelled, Exit: exitCancelled})
	}
	if !o.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, o.Deadline)
		defer cancel()
	}
	result, exit, err := protect(ctx, o, report, work)
	return s.finish(ctx, id, result, exit, err)
}

func protect(ctx context.Context, o Order, report func(string), work Work) (result any, exit int, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, exit, err = nil, 1, fmt.Errorf("the task broke: %v", p)
		}
	}()
	return work(ctx, o, report)
}

func (s Store) finish(ctx context.Context, id string, result any, exit int, err error) error {
	out := outcome{State: Done, Exit: exit}
	switch {
	case err != nil:
		out.State, out.Error, out.Hints = Failed, err.Error(), hint.Of(err)
	case exit != 0:
		out.State = Failed
	}
	switch over := ctx.Err(); {
	case out.State == Done: // it was quicker than whoever wanted to end it
	case errors.Is(over, context.Canceled):
		out.State = Cancelled
	case errors.Is(over, context.DeadlineExceeded):
		out.State = TimedOut
	}
	if result != nil {
		raw, merr := json.Marshal(result)
		if merr != nil {
			return fmt.Errorf("writing the result of task %s: %w", id, merr)
		}
		out.Result = raw
	}
	return s.end(id, out)
}

func (s Store) end(id string, out outcome) error {
	out.Version, out.Ended = formatVersion, time.Now()
	return atomicfile.WriteJSON(s.path(id, "outcome.json"), out)
}

// exitCancelled is the exit code of a command that was interrupted.
const exitCancelled = 130

// asked reports whether somebody wants the task to end.
func (s Store) asked(id string) bool {
	_, err := os.Stat(s.path(id, "cancel"))
	return err == nil
}

// Wait looks at task id until it has ended or ctx has; then it is as Get.
func (s Store) Wait(ctx context.Context, id string) (State, error) {
	return s.Follow(ctx, id, func(State) bool { return false })
}

// Follow is Wait that shows every look to enough, and ends when that holds.
func (s Store) Follow(ctx context.Context, id string, enough func(State) bool) (State, error) {
	for {
		st, err := s.Get(id)
		if err != nil || enough(st) || st.Ended() {
			return st, err
		}
		select {
		case <-ctx.Done():
			return st, nil
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Cancel asks a task to end, and reports how far it was. Its runner puts everything back before it ends.
func (s Store) Cancel(id string) (State, error) {
	o, err := s.Order(id)
	if err != nil {
		return State{}, err
	}
	st := s.state(o)
	if st.Ended() {
		return st, nil
	}
	// The runner looks for this file once it has said who it is, so one of us sees the other.
	if err := atomicfile.Write(s.path(id, "cancel"), nil, 0o600); err != nil {
		return st, fmt.Errorf("cancelling task %s: %w", id, err)
	}
	var now progress
	if err := atomicfile.ReadJSON(s.path(id, "progress.json"), &now); err != nil {
		// The lock keeps a runner that is just starting from ever beginning.
		lock, lerr := filelock.Try(s.path(id, "lock"))
		if errors.Is(lerr, filelock.ErrHeld) {
			return st, nil
		}
		if lerr != nil {
			return st, fmt.Errorf("cancelling task %s: %w", id, lerr)
		}
		defer lock.Release()
		err := s.end(id, outcome{State: Cancelled, Exit: exitCancelled})
		return s.state(o), err
	}
	if err := proc.Signal(now.Runner, syscall.SIGTERM); err != nil && !errors.Is(err, proc.ErrNotThere) {
		return st, fmt.Errorf("cancelling task %s: %w", id, err)
	}
	return st, nil
}
