// Package tasks keeps background tasks on disk: what was asked, how far it is, and what came of it, so that any
// process can collect them. A task is alive while its runner holds its lock; a runner that died without a result has
// failed, never finished. This package carries out no task itself.
package tasks

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"localllm/internal/atomicfile"
	"localllm/internal/filelock"
	"localllm/internal/hint"
	"localllm/internal/paths"
	"localllm/internal/proc"
)

// States of a task.
const (
	Queued    = "queued"
	Running   = "running"
	Done      = "done"
	Failed    = "failed"
	Cancelled = "cancelled"
	TimedOut  = "timed_out"
)

const (
	formatVersion = 1
	keep          = 7 * 24 * time.Hour // finished tasks
	startLimit    = 5 * time.Second    // a runner that has not taken its lock by then never came up
)

// Order is what a task has to do.
type Order struct {
	Version  int             `json:"version"`
	ID       string          `json:"task_id"`
	Nonce    string          `json:"nonce"` // in the runner's environment: proof that it is this task's
	Action   string          `json:"action"`
	Input    json.RawMessage `json:"input"`
	Call     json.RawMessage `json:"call,omitempty"` // what the door knew about the caller
	Title    string          `json:"title"`
	Project  string          `json:"project"`
	Created  time.Time       `json:"created"`
	Deadline time.Time       `json:"deadline"`
}

// State is how far a task is.
type State struct {
	ID      string          `json:"task_id"`
	Title   string          `json:"title,omitempty"`
	Action  string          `json:"action"`
	Project string          `json:"project,omitempty"`
	State   string          `json:"state"`
	Phase   string          `json:"phase,omitempty"`
	Started time.Time       `json:"started"`
	Seconds float64         `json:"seconds"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   string          `json:"error,omitempty"`
	Hints   []string        `json:"hints,omitempty"`
	Exit    int             `json:"exit"`
}

// Ended reports whether nothing more will happen.
func (s State) Ended() bool { return s.State != Queued && s.State != Running }

// progress is what the runner writes as it goes on; only the runner writes it.
type progress struct {
	Version int           `json:"version"`
	Runner  proc.Identity `json:"runner"`
	Phase   string        `json:"phase"`
	At      time.Time     `json:"at"`
}

// outcome is written once, at the end.
type outcome struct {
	Version int             `json:"version"`
	State   string          `json:"state"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   string          `json:"error,omitempty"`
	Hints   []string        `json:"hints,omitempty"`
	Exit    int             `json:"exit"`
	Ended   time.Time       `json:"ended"`
}

// Store is the folder of tasks.
type Store struct{ dir string }

// Open uses the state folder's tasks.
func Open(layout paths.Layout) Store { return Store{filepath.Join(layout.State, "tasks")} }

// Add writes a new order and returns it with its id.
func (s Store) Add(o Order) (Order, error) {
	o.Version, o.Nonce, o.Created = formatVersion, proc.NewNonce(), time.Now()
	o.ID = "t-" + o.Nonce[:10]
	if err := paths.Private(s.path(o.ID, "")); err != nil {
		return Order{}, err
	}
	return o, atomicfile.WriteJSON(s.path(o.ID, "order.json"), o)
}

// Order reads what task id has to do.
func (s Store) Order(id string) (Order, error) {
	var o Order
	if !idForm.MatchString(id) {
		return o, unknown(id)
	}
	if err := atomicfile.ReadJSON(s.path(id, "order.json"), &o); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return o, unknown(id)
		}
		return o, err
	}
	if o.Version > formatVersion {
		return o, fmt.Errorf("task %s was written by a newer localllm", id)
	}
	return o, nil
}

// Ids become folder names: nothing else may.
var idForm = regexp.MustCompile(`^t-[0-9a-f]{10}$`)

// ErrUnknown is the beginning of «there is no task "x"».
var ErrUnknown = errors.New("there is no task")

func unknown(id string) error {
	return hint.Add(fmt.Errorf("%w %q", ErrUnknown, id), "localllm tasks list")
}

// Get is how far task id is.
func (s Store) Get(id string) (State, error) {
	o, err := s.Order(id)
	if err != nil {
		return State{}, err
	}
	return s.state(o), nil
}

func (s Store) state(o Order) State {
	st := State{ID: o.ID, Title: o.Title, Action: o.Action, Project: o.Project, Started: o.Created}
	// The lock is looked at before the outcome: a runner writes its outcome first and lets go of the lock then.
	held, _ := filelock.Held(s.path(o.ID, "lock"))
	var out outcome
	var now progress
	_ = atomicfile.ReadJSON(s.path(o.ID, "progress.json"), &now)
	switch err := atomicfile.ReadJSON(s.path(o.ID, "outcome.json"), &out); {
	case err == nil:
		st.State, st.Result, st.Error, st.Hints, st.Exit = out.State, out.Result, out.Error, out.Hints, out.Exit
		st.Seconds = seconds(out.Ended.Sub(o.Created))
		return st
	case held:
		st.State, st.Phase = Running, now.Phase
	case now.Runner.PID == 0 && time.Since(o.Created) < startLimit:
		st.State, st.Phase = Queued, "waiting for its runner"
	default:
		st.State, st.Exit, st.Error = Failed, 1, "its runner died without a result"
		if now.Phase != "" {
			st.Error += " while " + now.Phase
		}
		st.Hints = []string{"start it again: whatever it had written was put back"}
		st.Seconds = seconds(now.At.Sub(o.Created))
		return st
	}
	st.Seconds = seconds(time.Since(o.Created))
	return st
}

// seconds is never below zero: a runner that died before it said anything has no time of its own.
func seconds(d time.Duration) float64 { return max(0, math.Round(d.Seconds()*1000)/1000) }

// List is every task, the newest first. Finished ones older than a week are removed on the way.
func (s Store) List() ([]State, error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing tasks: %w", err)
	}
	var all []State
	for _, e := range entries {
		o, err := s.Order(e.Name())
		if err != nil {
			continue
		}
		st := s.state(o)
		if st.Ended() && time.Since(o.Created) > keep {
			_ = os.RemoveAll(s.path(o.ID, ""))
			continue
		}
		all = append(all, st)
	}
	slices.SortFunc(all, func(a, b State) int { return b.Started.Compare(a.Started) })
	return all, nil
}

func (s Store) path(id, name string) string { return filepath.Join(s.dir, id, name) }
