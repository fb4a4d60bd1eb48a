package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"localllm/delegate"
	"localllm/internal/hint"
	"localllm/internal/proc"
	"localllm/internal/request"
	"localllm/internal/session"
	"localllm/internal/tasks"
	"localllm/internal/terminal"
)

const (
	defaultEnableTime = time.Hour // a download can take long
	// handover is how long a call waits for its runner to hold the engine: until then the engine's life hangs on the
	// client that called.
	handover = 5 * time.Second
)

// wantsBackground reports whether this call is to be carried out by a task runner: because it asks for it, or because
// its client would see nothing for so long that it might give up.
func (a *App) wantsBackground(ctx context.Context, asked bool) bool {
	call := callOf(ctx)
	return !call.InRunner && (asked || call.Held && !call.Patient)
}

// passed is what a task's runner must know of the call that began it.
type passed struct {
	Project string           `json:"project"`
	Binding *session.Binding `json:"binding,omitempty"`
}

// inBackground has a runner of its own carry out an action. Where the caller did not ask for that, it waits: for the
// end where somebody sees progress, else for as long as clients are patient.
func (a *App) inBackground(ctx context.Context, action string, in any, title string, limit time.Duration, report func(Progress)) (any, error) {
	id, err := a.beginTask(ctx, action, in, title, limit)
	if err != nil {
		return nil, err
	}
	st, err := a.follow(ctx, id, handover, func(st tasks.State) bool {
		return st.Phase != "" && st.Phase != tasks.Starting && st.State != tasks.Queued
	}, report)
	if err == nil && !askedForBackground(in) {
		wait := limit
		if call := callOf(ctx); call.Held && !call.Patient {
			// Clients end a call that shows nothing after 60 s.
			wait = time.Duration(a.config.AnswerWithin)
		}
		st, err = a.follow(ctx, id, wait, func(tasks.State) bool { return false }, report)
	}
	if err != nil {
		return nil, err
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		_, _ = a.tasks.Cancel(id)
		return nil, ctx.Err()
	}
	out, err := a.collected(st)
	var broken *TaskError
	if errors.As(err, &broken) && !askedForBackground(in) {
		broken.ID = "" // whoever has asked for no task is told what went wrong, and of no task
	}
	return out, err
}

// follow looks at a task until it has ended, enough holds, ctx ends or the time is up.
func (a *App) follow(ctx context.Context, id string, limit time.Duration, enough func(tasks.State) bool, report func(Progress)) (tasks.State, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	phase := ""
	return a.tasks.Follow(ctx, id, func(st tasks.State) bool {
		if st.Phase != phase && !st.Ended() {
			phase = st.Phase
			report(Progress{Phase: phase})
		}
		return enough(st)
	})
}

func (a *App) beginTask(ctx context.Context, action string, in any, title string, limit time.Duration) (string, error) {
	call := callOf(ctx)
	project, err := call.project()
	if err != nil {
		return "", err
	}
	bound, err := a.binding(ctx)
	if err != nil {
		return "", err
	}
	input, err := json.Marshal(in)
	if err != nil {
		return "", fmt.Errorf("passing the task on: %w", err)
	}
	pass, err := json.Marshal(passed{Project: project, Binding: &bound})
	if err != nil {
		return "", fmt.Errorf("passing the task on: %w", err)
	}
	order, err := a.tasks.Add(tasks.Order{
		Action: action, Input: input, Call: pass, Title: clip(title, 120), Project: project, Deadline: time.Now().Add(limit),
	})
	if err != nil {
		return "", err
	}
	return order.ID, startRunner(order)
}

// startRunner starts the task's runner through a process in between, so that the client, which ends its server with
// all descendants, does not end the task too.
func startRunner(o tasks.Order) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("starting the task's runner: %w", err)
	}
	env := append(os.Environ(), proc.NonceVariable+"="+o.Nonce)
	between, err := proc.Start(proc.Command{Path: exe, Args: []string{"task-runner", "--spawn", o.ID}, Env: env, Session: true})
	if err != nil {
		return fmt.Errorf("starting the task's runner: %w", err)
	}
	if err := between.Wait(); err != nil {
		return fmt.Errorf("starting the task's runner: %w", err)
	}
	return nil
}

// SpawnRunner is the process in between.
func SpawnRunner(id string) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("starting the task's runner: %w", err)
	}
	return proc.Orphan(exe, []string{"task-runner", id}, os.Environ())
}

func askedForBackground(in any) bool {
	switch in := in.(type) {
	case *request.Enable:
		return in.Background
	case *delegate.Task:
		return in.Background
	}
	return false
}

// RunTask is the life of a task's runner: a process of ours that outlives the client's server. It holds a lease of
// its own until the task's deadline, so the engine stays for it.
func (a *App) RunTask(ctx context.Context, id string, exitCode func(result any, err error) int) error {
	return a.tasks.Run(ctx, id, func(ctx context.Context, o tasks.Order, report func(string)) (any, int, error) {
		var pass passed
		if err := json.Unmarshal(o.Call, &pass); err != nil {
			return nil, 1, fmt.Errorf("reading the order: %w", err)
		}
		in, err := request.Decode(o.Action, o.Input)
		if err != nil {
			return nil, exitCode(nil, err), err
		}
		if o.Action == "delegate" {
			hold, err := a.client.HoldTask(ctx, "background task "+o.ID, pass.Binding.Session, o.Project, o.Deadline)
			if err == nil {
				defer hold.Release()
			}
		}
		report("preparing")
		// The engine's life follows the client, and not this runner, which ends with its task.
		pass.Binding.Held = false
		ctx = WithCall(ctx, &Call{Project: pass.Project, Binding: pass.Binding, Patient: true, InRunner: true})
		out, err := a.Do(ctx, o.Action, in, func(p Progress) { report(terminal.Describe(Step(p), 0)) })
		if err != nil {
			return nil, exitCode(nil, err), err
		}
		return out, exitCode(out, nil), nil
	})
}

// TaskStatus is a background task that has no result to show: one that is under way, or that broke.
type TaskStatus struct {
	tasks.State
	Status string `json:"status"`
}

// TaskError is a background task that ended without a result. Exit is what the command line would have ended with.
type TaskError struct {
	ID, State, Reason string // ID is empty where the caller does not know that there was a task
	Exit              int
}

func (e *TaskError) Error() string {
	if e.ID == "" {
		return e.Reason
	}
	return fmt.Sprintf("task %s (%s): %s", e.ID, e.State, e.Reason)
}

// collected is a task's own result once it has one, with the task's id; before that, how far it is.
func (a *App) collected(st tasks.State) (any, error) {
	a.repairAfter(st)
	return ResultOf(st)
}

// ResultOf is what a task came to: what the action itself returns, with the task's id. Before that it is a *TaskStatus.
func ResultOf(st tasks.State) (any, error) {
	if st.Result == nil {
		if st.Ended() && st.Error != "" {
			return nil, hint.Add(&TaskError{ID: st.ID, State: st.State, Reason: st.Error, Exit: st.Exit}, st.Hints...)
		}
		return &TaskStatus{State: st, Status: st.State}, nil
	}
	switch st.Action {
	case "enable":
		return decodeResult(st, &Enabled{}, func(e *Enabled) { e.TaskID = st.ID })
	default:
		var head struct {
			Results json.RawMessage `json:"results"`
		}
		if json.Unmarshal(st.Result, &head) == nil && head.Results != nil {
			return decodeResult(st, &delegate.BatchResult{}, func(b *delegate.BatchResult) { b.TaskID = st.ID })
		}
		return decodeResult(st, &delegate.Result{}, func(r *delegate.Result) { r.TaskID = st.ID })
	}
}

// repairAfter puts back what the runner of a task had written when it died.
func (a *App) repairAfter(st tasks.State) {
	if st.State == tasks.Failed && st.Result == nil && st.Project != "" {
		if _, err := a.repairTree(st.Project); err != nil {
			a.warn(err.Error())
		}
	}
}

func decodeResult[T any](st tasks.State, into *T, mark func(*T)) (any, error) {
	if err := json.Unmarshal(st.Result, into); err != nil {
		return nil, fmt.Errorf("reading the result of task %s: %w", st.ID, err)
	}
	mark(into)
	return into, nil
}

// Tasks lists background tasks, the newest first.
func (a *App) Tasks() ([]tasks.State, error) { return a.tasks.List() }

// CancelTask ends a background task; what it had written is put back.
func (a *App) CancelTask(ctx context.Context, id string, wait time.Duration) (tasks.State, error) {
	if _, err := a.tasks.Cancel(id); err != nil {
		return tasks.State{}, err
	}
	return a.TaskOf(ctx, id, wait)
}

// TaskOf is how far one background task is, after waiting for its end for at most wait.
func (a *App) TaskOf(ctx context.Context, id string, wait time.Duration) (tasks.State, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	st, err := a.tasks.Wait(ctx, id)
	a.repairAfter(st)
	return st, err
}

func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
