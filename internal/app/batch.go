package app

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"reflect"
	"strings"
	"time"

	"localllm/delegate"
	"localllm/internal/hint"
)

// spreadBatch gives every task of a batch what the batch says and the task leaves open, and checks what only the whole
// batch shows. A single task is returned as it is.
func spreadBatch(t *delegate.Task) (*delegate.Task, error) {
	if len(t.Tasks) == 0 {
		return t, nil
	}
	out := *t
	out.Tasks = make([]delegate.Task, len(t.Tasks))
	owners := map[string]int{}
	for i, sub := range t.Tasks {
		out.Tasks[i] = inherit(*t, sub)
		if _, err := delegate.Validate(out.Tasks[i]); err != nil && sub.Executor == "" && t.Executor == "" {
			return nil, ofItem(i, err)
		}
		for k, o := range sub.OutputFiles {
			name := path.Join(out.Tasks[i].Workdir, path.Clean(o.Path))
			if j, taken := owners[name]; taken {
				return nil, &delegate.FieldError{
					Field: fmt.Sprintf("tasks[%d].output_files[%d].path", i, k), Want: fmt.Sprintf("is an output of tasks[%d] too: %s", j, o.Path),
					Do: "let one task of a batch write a file; a later call can change it",
				}
			}
			owners[name] = i
		}
	}
	return &out, nil
}

// inherit fills each field that a task of a batch leaves open from the batch. What a task is and what it writes are
// its own, and a verify has nothing to prove where nothing is written.
func inherit(batch, t delegate.Task) delegate.Task {
	from, into := reflect.ValueOf(batch), reflect.ValueOf(&t).Elem()
	for i := range into.NumField() {
		switch into.Type().Field(i).Name {
		case "Task", "OutputFiles", "Tasks", "Background":
			continue
		case "Verify", "VerifyTimeoutS", "Protect", "AllowPaths", "AllowShrink":
			if len(t.OutputFiles) == 0 && t.Mode != delegate.ModeAgent && batch.Mode != delegate.ModeAgent {
				continue
			}
		}
		if into.Field(i).IsZero() {
			into.Field(i).Set(from.Field(i))
		}
	}
	return t
}

// ofItem says in which task of the batch a field is wrong.
func ofItem(i int, err error) error {
	var field *delegate.FieldError
	if errors.As(err, &field) {
		return &delegate.FieldError{Field: fmt.Sprintf("tasks[%d].%s", i, field.Field), Want: field.Want, Do: field.Do}
	}
	return err
}

// destination is where a task goes: tasks that share it can share a prompt's beginning and run side by side.
type destination struct{ workdir, profile, tier, model string }

// batch runs the tasks by where they go: all that go to the same endpoint and folder together, one such group after
// the other. The results come in the order of the tasks.
func (a *App) batch(ctx context.Context, t *delegate.Task, report func(Progress)) (any, error) {
	groups, order := map[destination][]int{}, []destination{}
	for i, sub := range t.Tasks {
		d := destination{sub.Workdir, sub.Profile, sub.Tier, sub.Model}
		if groups[d] == nil {
			order = append(order, d)
		}
		groups[d] = append(groups[d], i)
	}
	began := time.Now()
	out := &delegate.BatchResult{Results: make([]delegate.Result, len(t.Tasks))}
	for n, d := range order {
		err := a.group(ctx, *t, d, groups[d], out.Results, report)
		if err != nil && n == 0 {
			return nil, err
		}
		if err != nil { // what the groups before this one have written is told all the same
			for _, i := range groups[d] {
				out.Results[i] = notBegun(ctx, t.Tasks[i], err)
			}
		}
	}
	for _, res := range out.Results {
		if res.OK {
			out.Succeeded++
		} else {
			out.Failed++
		}
	}
	out.OK, out.Seconds = out.Failed == 0, math.Round(time.Since(began).Seconds()*1000)/1000
	return out, nil
}

// notBegun is the result of a task of a batch whose endpoint or folder could not be had.
func notBegun(ctx context.Context, t delegate.Task, err error) delegate.Result {
	res := delegate.Result{
		Status: delegate.Refused, Reason: err.Error(), Hint: strings.Join(hint.Of(err), "; "), Files: []delegate.FileChange{}, Attempts: []delegate.Attempt{},
	}
	if ctx.Err() != nil {
		res.Status = delegate.Cancelled
	}
	if t.Mode == delegate.ModeAgent {
		res.AgentRun = &delegate.AgentRun{}
	}
	return res
}

// group runs the tasks with these numbers, which go to the same place.
func (a *App) group(ctx context.Context, t delegate.Task, d destination, numbers []int, results []delegate.Result, report func(Progress)) error {
	t.Workdir, t.Profile, t.Tier, t.Model = d.workdir, d.profile, d.tier, d.model
	tasks := make([]delegate.Task, len(numbers))
	for i, n := range numbers {
		tasks[i] = t.Tasks[n]
	}
	t.Tasks = tasks
	w, err := a.openWork(ctx, &t, report)
	if err != nil {
		return err
	}
	defer w.close()
	jobs := make([]delegate.Job, len(tasks))
	for i, sub := range tasks {
		jobs[i] = w.job(sub)
	}
	res, err := w.runner.Batch(ctx, jobs)
	var engine *delegate.EngineError
	if err != nil && !errors.As(err, &engine) {
		return w.explain(ctx, err)
	}
	for i, n := range numbers {
		results[n] = res.Results[i]
		w.to.annotate(&results[n])
	}
	return nil
}
