package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"

	"github.com/spf13/cobra"

	"localllm/delegate"
	"localllm/internal/app"
	"localllm/internal/benchtasks"
	"localllm/internal/hint"
	"localllm/internal/paths"
	"localllm/internal/request"
	"localllm/internal/scratch"
	"localllm/internal/session"
)

// modelTrial is bench --model.
type modelTrial struct {
	model    string
	only     string
	context  int
	attempts int
	pull     bool
}

// run enables the model for as long as this process lives, has it do the tasks, and lets go of it.
func (m *modelTrial) run(cmd *cobra.Command) (report *benchtasks.Report, err error) {
	tasks, err := m.tasks()
	if err != nil {
		return nil, err
	}
	theApp, err := open(cmd)
	if err != nil {
		return nil, err
	}
	defer theApp.Close()
	bound, err := session.WhilePID(os.Getpid())
	if err != nil {
		return nil, fmt.Errorf("binding the model to this process: %w", err)
	}
	show, done := progress()
	defer done()
	ctx := cmd.Context()
	call := app.Call{Binding: &bound, Held: true, Patient: true, Trial: true}
	out, err := theApp.Do(app.WithCall(ctx, &call), "enable", &request.Enable{Model: m.model, Context: m.context, Pull: m.pull}, show)
	if err != nil {
		return nil, err
	}
	defer func() {
		if _, failed := theApp.Do(app.WithCall(context.WithoutCancel(ctx), &call), "disable", &request.Disable{}, nil); err == nil {
			err = failed
		}
	}()
	enabled, ok := out.(*app.Enabled)
	if !ok {
		return nil, fmt.Errorf("a running engine was expected, not %T", out)
	}
	report = &benchtasks.Report{Model: enabled.Model, Engine: enabled.Engine, Context: enabled.Context}
	for i, task := range tasks {
		if missing := task.Missing(); len(missing) > 0 {
			report.Add(task.Skipped(missing))
			continue
		}
		step := func(p app.Progress) {
			p.Phase = fmt.Sprintf("%d of %d, %s: %s", i+1, len(tasks), task.Name, p.Phase)
			show(p)
		}
		outcome, err := m.one(ctx, theApp, call, task, step)
		if err != nil {
			return nil, fmt.Errorf("the task %s: %w", task.Name, err)
		}
		report.Add(outcome)
	}
	return report, nil
}

func (m *modelTrial) tasks() ([]benchtasks.Task, error) {
	all, err := benchtasks.All()
	if err != nil {
		return nil, err
	}
	if m.context < 256 || m.attempts < 1 || m.attempts > 20 {
		return nil, &usageError{errors.New("bench: --context takes at least 256 tokens, --attempts 1 to 20")}
	}
	var chosen []benchtasks.Task
	for _, t := range all {
		match, err := path.Match(m.only, t.Name)
		if err != nil {
			return nil, &usageError{fmt.Errorf("--tasks: %w", err)}
		}
		if match {
			chosen = append(chosen, t)
		}
	}
	if len(chosen) == 0 {
		return nil, &usageError{hint.Add(fmt.Errorf("bench: no task is called %q", m.only), "the names begin with go-, python-, js-, shell-, sql- and config-")}
	}
	return chosen, nil
}

// one does a task in a folder that nothing else is in.
func (m *modelTrial) one(ctx context.Context, theApp *app.App, call app.Call, task benchtasks.Task, show func(app.Progress)) (benchtasks.Outcome, error) {
	layout, err := paths.Find()
	if err != nil {
		return benchtasks.Outcome{}, err
	}
	folder, err := scratch.Make(layout, "", "localllm-bench-")
	if err != nil {
		return benchtasks.Outcome{}, err
	}
	defer func() { _ = folder.Remove() }()
	if err := task.Write(folder.Path); err != nil {
		return benchtasks.Outcome{}, err
	}
	d, err := task.Delegation()
	if err != nil {
		return benchtasks.Outcome{}, err
	}
	d.Attempts, call.Project = m.attempts, folder.Path
	out, err := theApp.Do(app.WithCall(ctx, &call), "delegate", d, show)
	if err != nil {
		return benchtasks.Outcome{}, err
	}
	result, ok := out.(*delegate.Result)
	if !ok {
		return benchtasks.Outcome{}, fmt.Errorf("a result was expected, not %T", out)
	}
	if ctx.Err() != nil {
		return benchtasks.Outcome{}, ctx.Err()
	}
	return task.Outcome(result), nil
}
