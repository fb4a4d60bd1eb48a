package delegate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// stop ends the delegation for an error, with the status that the error stands for.
func (d *delegation) stop(ctx context.Context, err error) step {
	var refusal *Refusal
	switch {
	case ctx.Err() != nil:
		// The tree's and the engine's errors are only the echo of the context's end.
		if errors.Is(context.Cause(ctx), errTimeUp) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return d.end(TimedOut, fmt.Sprintf("it took longer than %d s", d.Task.TimeoutS), "give it more with timeout_s, or split the task")
		}
		return d.end(Cancelled, "it was cancelled", "")
	case errors.As(err, &refusal):
		return d.refuse(refusal.Reason, refusal.Hint)
	}
	return d.end(Failed, err.Error(), "")
}

// engineFailed ends the delegation for an error of the endpoint.
func (d *delegation) engineFailed(ctx context.Context, err error) step {
	if ctx.Err() == nil {
		err = &EngineError{err}
		d.err = err
		d.attempt("engine failed", err.Error())
	}
	return d.stop(ctx, err)
}

func (d *delegation) refuse(reason, hint string) step { return d.end(Refused, reason, hint) }

func (d *delegation) end(status, reason, hint string) step {
	d.res.Status, d.res.OK = status, OK(status)
	d.res.Reason, d.res.Hint = bounded(d.clean(reason), maxReason, " […]"), hint
	return nil
}

// plan is the end of a dry run.
func (d *delegation) plan(limits Limits) step {
	p := &Plan{Mode: d.Task.Mode, ContextFiles: append([]string{}, d.context...), OutputFiles: []string{}, PromptTokens: d.prompt.Tokens,
		Exact: d.prompt.Exact, OutputTokens: answerNeed(d.input, d.prompt.Outputs), Context: limits.Context, Fits: true}
	for _, o := range d.outputs {
		p.OutputFiles = append(p.OutputFiles, o.Path)
	}
	if d.command != nil {
		p.VerifyCommand = d.command.String()
	}
	d.res.Plan = p
	d.end(Planned, "nothing was sent or written: a dry run", "")
	d.res.OK = true
	return nil
}

// Planned is the status of a dry run.
const Planned = "planned"

// putBack undoes an open change. It takes no context: being cancelled is what it is mostly for.
func (d *delegation) putBack() {
	if d.change == nil {
		return
	}
	d.say("putting back")
	conflicts, err := d.change.Undo()
	if len(conflicts) > 0 {
		d.warn("the earlier form of " + list(conflicts) + " is in " + d.change.Saved())
	}
	d.change = nil
	d.res.Conflicts = append(d.res.Conflicts, conflicts...)
	if err != nil {
		d.warn("not everything could be put back, the next localllm in this project tries again: " + err.Error())
	}
}

// letGo lets other delegations have the tree, and remembers what it was like.
func (d *delegation) letGo(ctx context.Context) {
	if d.unlock == nil {
		return
	}
	d.state = ""
	if d.baseline != nil && d.res.Status == "" {
		d.state = d.Verifier.Fingerprint(ctx)
	}
	d.unlock()
	d.unlock = nil
}

// finish fills in the figures and writes the log's line.
func (d *delegation) finish() (Result, error) {
	limits := d.Completer.Limits()
	d.res.TaskID, d.res.Engine = d.ID, limits.Engine
	if d.res.Model == "" {
		d.res.Model = limits.Model
	}
	d.res.Seconds = seconds(d.now().Sub(d.started))
	if d.decode > 0 {
		d.res.TokensPerSecond = math.Round(float64(d.res.Tokens.Generated)/d.decode.Seconds()*10) / 10
	}
	if d.Score != nil {
		d.res.Score = d.Score(d.Task, d.first.Tokens)
	}
	entry := Entry{ID: d.ID, Started: d.started, Task: d.Task, Tries: len(d.res.Attempts)}
	if d.last != nil {
		v := &Verdict{Command: bounded(d.clean(d.command.String()), maxReason, " […]"), Exit: d.last.Exit, Seconds: seconds(d.last.Took), Tail: d.clean(lastBytes(d.last.Output, maxTail))}
		if d.baseline != nil {
			v.BaselineExit = d.baseline.Exit
			entry.BaselineExit = &v.BaselineExit
		}
		if d.last != d.baseline {
			entry.VerifyExit = &v.Exit
		}
		v.Tail = lastBytes(v.Tail, maxTail)
		d.res.Verify = v
	}
	entry.Result = d.res
	if d.Log != nil && !d.Task.DryRun {
		if err := d.Log.Delegation(entry); err != nil {
			d.warn("the log could not be written: " + err.Error())
		}
	}
	return d.res, d.err
}

// maxReason bounds what should be a sentence, and is not where some program words it.
const maxReason = 1500

// attempt notes what became of one answer.
func (d *delegation) attempt(outcome, reason string) {
	d.res.Attempts = append(d.res.Attempts, Attempt{Outcome: outcome, Reason: bounded(d.clean(reason), maxReason, " […]"), Seconds: seconds(d.now().Sub(d.begun))})
	d.begun = d.now()
}

func (d *delegation) lastReason() string {
	if n := len(d.res.Attempts); n > 0 {
		return d.res.Attempts[n-1].Reason
	}
	return ""
}

func (d *delegation) warn(warnings ...string) {
	for _, w := range warnings {
		d.res.Warnings = append(d.res.Warnings, d.clean(w))
	}
}

func (d *delegation) say(phase string) {
	if d.Progress != nil {
		d.Progress(Update{Phase: phase, Attempt: min(len(d.res.Attempts)+1, d.Task.Attempts), Attempts: d.Task.Attempts})
	}
}

func (d *delegation) clean(s string) string {
	if d.Redact == nil || s == "" {
		return s
	}
	return d.Redact(s)
}

func seconds(t time.Duration) float64 { return math.Round(t.Seconds()*1000) / 1000 }
