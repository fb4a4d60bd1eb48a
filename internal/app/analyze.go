package app

import (
	"cmp"
	"context"
	"errors"
	"time"

	"localllm/delegate"
	"localllm/internal/contextfiles"
	"localllm/internal/outcomes"
	"localllm/internal/redact"
	"localllm/internal/request"
	"localllm/lifecycle"
	"localllm/scoring"
	"localllm/stats"
)

// Analyze says whether a task is one for the local model, and logs what it said.
func (a *App) Analyze(ctx context.Context, in *request.Analyze) (*scoring.Advice, error) {
	call := callOf(ctx)
	root, err := call.project()
	if err != nil {
		return nil, err
	}
	t := delegate.Task{
		Task: in.Task, TaskType: in.TaskType, OutputFiles: in.OutputFiles, Verify: in.Verify,
		ContextFiles: append(append([]string{}, in.ContextFiles...), in.Files...),
	}
	to := a.targetIfAny(ctx)
	if to != nil {
		defer to.close()
	}
	advice, err := a.advise(ctx, root, t, to)
	if err != nil {
		return nil, err
	}
	record := stats.Record{
		Timestamp: time.Now(), Task: in.Task, TaskType: cmp.Or(in.TaskType, "generate"), Score: advice.Score,
		Decision: string(advice.Recommendation), Version: a.version,
		Files: outputPaths(in.OutputFiles),
	}
	if to != nil {
		record.Model, record.Engine = to.limits.Model, to.limits.Engine
	}
	if log, err := a.log(ctx, root); err == nil {
		if err := log.Append(ctx, record); err != nil {
			a.warn("the delegation log: " + err.Error())
		}
	}
	return &advice, nil
}

func outputPaths(outputs []delegate.OutputFile) []string {
	names := make([]string, len(outputs))
	for i, o := range outputs {
		names[i] = o.Path
	}
	return names
}

// targetIfAny is the endpoint that a delegation would go to, nil where none serves now. It starts nothing.
func (a *App) targetIfAny(ctx context.Context) *target {
	if a.config.Profile != "" {
		to, err := a.profileTarget(a.config.Profile, "", "", false)
		if err != nil {
			return nil
		}
		return to
	}
	st, err := a.client.Status(ctx)
	if err != nil || st.State != lifecycle.Ready || st.Endpoint == nil {
		return nil
	}
	c, err := connect(*st.Endpoint)
	if err != nil {
		return nil
	}
	return &target{Completer: c, key: st.Endpoint.URL, limits: c.Limits(), endpoint: st.Endpoint, release: func() {}}
}

// advise measures the window and scores. A context that can't be read is an error: a delegation would be refused.
func (a *App) advise(ctx context.Context, root string, t delegate.Task, to *target) (scoring.Advice, error) {
	gathered, err := a.gather(ctx, root, t)
	var refusal *delegate.Refusal
	if errors.As(err, &refusal) {
		return scoring.Advice{}, &request.Error{Action: "analyze", Field: "context_files", Reason: refusal.Reason}
	}
	if err != nil {
		return scoring.Advice{}, err
	}
	outputs, size := a.outputsNow(root, t)
	for _, f := range gathered.Files {
		size.PromptBytes += int64(len(f.Body))
	}
	task := scoring.Task{Text: t.Task, Type: cmp.Or(t.TaskType, "generate"), Outputs: len(t.OutputFiles), Verify: len(t.Verify) > 0}
	if to != nil {
		task.Model, size.Context = to.limits.Model, to.limits.Context
		in := delegate.Input{Task: t, Model: to.limits.Model, Context: gathered.Files, Outputs: outputs}
		var unfit *delegate.Unfit
		switch p, err := delegate.Build(ctx, delegate.Hidden(to.Completer, redact.Hide), in); {
		case err == nil && p.Exact:
			size.PromptTokens = p.Tokens
		case errors.As(err, &unfit) && unfit.Exact:
			size.PromptTokens = unfit.Prompt
		}
	}
	w := scoring.Fit(task, size)
	task.Prompt = w.Prompt
	return scoring.Score(task, a.history(ctx, root, task), w), nil
}

func (a *App) outputsNow(root string, t delegate.Task) ([]delegate.Output, scoring.Size) {
	var size scoring.Size
	outputs := make([]delegate.Output, 0, len(t.OutputFiles))
	for _, o := range t.OutputFiles {
		body, exists, err := contextfiles.Read(root, o.Path)
		if err != nil {
			continue // a delegation would say why
		}
		outputs = append(outputs, delegate.Output{Path: o.Path, Description: o.Description, Exists: exists, Body: body})
		size.OutputBytes += int64(len(body))
		size.PromptBytes += int64(len(body))
	}
	return outputs, size
}

// history is what happened with such tasks on this machine, nothing where the index can't be read.
func (a *App) history(ctx context.Context, root string, t scoring.Task) scoring.History {
	if callOf(ctx).Trial {
		return scoring.History{}
	}
	index := outcomes.Open(a.layout.State)
	if err := index.Sync(ctx, root); err != nil {
		a.warn("the outcome index: " + err.Error())
	}
	h, err := index.Similar(t)
	if err != nil {
		a.warn("the outcome index: " + err.Error())
	}
	return h
}

// score is the advice that goes into a delegation's record; it is never obeyed.
func (a *App) score(ctx context.Context, root string, t delegate.Task, prompt int, to *target) scoring.Advice {
	task := scoring.Task{
		Text: t.Task, Type: cmp.Or(t.TaskType, "generate"), Model: to.limits.Model, Outputs: len(t.OutputFiles), Verify: len(t.Verify) > 0,
	}
	w := scoring.Fit(task, scoring.Size{PromptTokens: prompt, Context: to.limits.Context})
	task.Prompt = w.Prompt
	return scoring.Score(task, a.history(context.WithoutCancel(ctx), root, task), w)
}
