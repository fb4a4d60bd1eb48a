package delegate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Temperatures of a first answer and its repairs, and of a fresh sample once repairs have led nowhere.
const (
	coolTemperature = 0.2
	warmTemperature = 0.8
	repairsInARow   = 2 // most of the gain of repairing comes in the first two rounds
)

// errTimeUp is the cause of a context that ended by the task's own timeout_s.
var errTimeUp = errors.New("the task's time is up")

// delegation is the state of one run. A step does one thing and names the next; nil is the end.
type delegation struct {
	*Runner
	Job
	command *Command
	started time.Time
	res     Result
	err     error // for the caller, beside the result

	outputs []Output
	input   Input
	first   Prompt // of a fresh sample
	prompt  Prompt
	answer  Completion
	files   []File   // of the answer, once the gate has let it pass
	context []string // files shown as context
	decode  time.Duration

	begun       time.Time // of this attempt
	feedback    string    // for the tool loop
	repairs     int       // in a row
	temperature float64
	red         bool // some attempt got as far as a red verify
	cuts        int  // answers that ran into the token limit

	unlock   func()
	baseline *Outcome
	state    string // of the tree when the lock was last let go
	last     *Outcome
	change   Change
}

type step func(context.Context, *delegation) step

func newDelegation(r *Runner, job Job, checked Checked) *delegation {
	d := &delegation{Runner: r, Job: job, command: checked.Command, started: r.now(), temperature: coolTemperature}
	d.Task = checked.Task
	d.res.Files, d.res.Attempts = []FileChange{}, []Attempt{}
	if d.Task.Mode == ModeAgent {
		d.res.AgentRun = &AgentRun{}
	}
	return d
}

// drive goes from step to step. Whatever the last one was, the tree is whole and unlocked afterwards.
func (d *delegation) drive(ctx context.Context) {
	d.begun = d.started
	defer d.letGo(context.WithoutCancel(ctx))
	defer d.putBack() // and that first, even where a step panics and somebody above goes on
	for next := step(admit); next != nil; {
		if ctx.Err() != nil {
			d.stop(ctx, ctx.Err())
			break
		}
		next = next(ctx, d)
	}
}

// admit checks what can be checked without the model: the outputs and the verify.
func admit(ctx context.Context, d *delegation) step {
	d.say("preparing")
	if d.Task.Mode == ModeText {
		return compose
	}
	outputs, err := d.Tree.Admit(d.Task.OutputFiles, d.Task.AllowPaths)
	if err != nil {
		return d.stop(ctx, err)
	}
	d.outputs = outputs
	if d.command != nil {
		if _, err := d.Tree.Stamp(d.Task.Protect); err != nil {
			return d.stop(ctx, err)
		}
		if err := d.Verifier.Check(*d.command); err != nil && !d.awaits() {
			return d.refuse("verify can't be started: "+err.Error(), "give a command that exists in the working folder's environment")
		}
	}
	if d.Task.Mode == ModeAgent && !d.Task.DryRun { // a tool loop's plan is its first prompt's
		return claim
	}
	return compose
}

// compose lays the prompt out.
func compose(ctx context.Context, d *delegation) step {
	var gathered Gathered
	if d.Source != nil {
		var err error
		if gathered, err = d.Source.Gather(ctx, d.Task); err != nil {
			return d.stop(ctx, err)
		}
	}
	d.warn(gathered.Warnings...)
	d.context = d.context[:0]
	for _, f := range gathered.Files {
		d.context = append(d.context, f.Path)
	}
	limits := d.Completer.Limits()
	model := d.Task.Model
	if model == "" {
		model = limits.Model
	}
	d.input = Input{Task: d.Task, Mode: d.Task.Mode, Model: model, Project: gathered.Project, Context: gathered.Files, Outputs: d.outputs}
	if d.Sessions != nil {
		d.input.Session = d.Sessions.Load(d.Slot)
	}
	prompt, err := Build(ctx, d.completer(), d.input)
	var unfit *Unfit
	if errors.As(err, &unfit) {
		return d.refuse(unfit.Error(), "leave context files out, split the task, or enable with a larger context")
	}
	if err != nil {
		return d.engineFailed(ctx, err)
	}
	d.first, d.prompt, d.repairs = prompt, prompt, 0
	if d.Task.DryRun {
		return d.plan(limits)
	}
	return generate
}

// generate asks the model.
func generate(ctx context.Context, d *delegation) step {
	d.begun = d.now()
	d.say("generating")
	request := Request{Messages: d.prompt.Messages, MaxTokens: d.Task.MaxTokens, Temperature: d.temperature, Think: d.Think, Slot: d.Slot, Model: d.Task.Model}
	if d.Progress != nil {
		attempt := len(d.res.Attempts) + 1
		request.Progress = func(g Generating) {
			d.Progress(Update{Phase: "generating", Attempt: attempt, Attempts: d.Task.Attempts, Generating: g})
		}
	}
	answer, err := d.completer().Complete(ctx, request)
	if err != nil {
		return d.engineFailed(ctx, err)
	}
	d.answer = answer
	d.res.Tokens = d.res.Tokens.Add(answer.Tokens)
	d.decode += answer.Decode
	if answer.Model != "" {
		d.res.Model = answer.Model
	}
	if d.Sessions != nil {
		d.Sessions.Store(d.Slot, d.prompt.Session)
	}
	if seen := answer.Tokens.Prompt; d.prompt.Exact && seen > 0 && seen < d.prompt.Tokens-d.prompt.Tokens/50-16 {
		d.attempt("rejected", fmt.Sprintf("the engine saw only %d of the prompt's %d tokens", seen, d.prompt.Tokens))
		return d.end(Rejected, d.lastReason(), "enable again with a larger context")
	}
	if d.Task.Mode == ModeText {
		return answerText
	}
	return claim
}

// answerText judges and returns a text.
func answerText(ctx context.Context, d *delegation) step {
	text, err := Gate{}.Text(d.answer)
	if err != nil {
		return d.rejected(ctx, err)
	}
	d.attempt(Answered, "")
	d.res.Text = d.clean(text)
	if len(d.res.Text) > maxText {
		whole := d.res.Text
		note := fmt.Sprintf("\n[… %d bytes in all]", len(whole))
		if d.SaveText != nil {
			path, err := d.SaveText(d.ID, whole)
			if err != nil {
				d.warn("the whole text could not be kept: " + err.Error())
			}
			d.res.TextFile = path
		}
		d.res.Text = bounded(whole, maxText, note)
	}
	return d.end(Answered, "", "")
}

// Limits of what is returned.
const (
	maxText = 16 << 10
	maxTail = 4 << 10
)

// rejected notes an answer that can't be used, and asks for another one.
func (d *delegation) rejected(ctx context.Context, err error) step {
	var r *Rejection
	if !errors.As(err, &r) {
		return d.stop(ctx, err)
	}
	d.attempt("rejected", "the answer can't be used: "+r.Reason)
	d.letGo(ctx)
	if r.Kind == RejectCutOff || r.Kind == RejectThinking {
		// A repair would only make it longer. Once it may have been a loop; twice it does not fit.
		d.cuts++
		d.repairs = repairsInARow
		if d.cuts > 1 || d.Task.MaxTokens > 0 {
			return d.giveUp("let max_tokens be larger, split the task, or enable with a larger context")
		}
	}
	return d.again(ctx, RejectedTurn(r))
}

// again goes for another attempt: a repair as an appended turn, or, where that led nowhere or has no room, a fresh
// sample of the same prompt at a higher temperature.
func (d *delegation) again(ctx context.Context, feedback string) step {
	if len(d.res.Attempts) >= d.Task.Attempts {
		return d.giveUp("")
	}
	if d.repairs < repairsInARow {
		next, err := d.prompt.Repair(ctx, d.completer(), d.input, d.answer.Text, feedback)
		var unfit *Unfit
		switch {
		case err == nil:
			d.prompt = next
			d.repairs++
			return generate
		case !errors.As(err, &unfit):
			return d.engineFailed(ctx, err)
		}
	}
	d.prompt, d.repairs, d.temperature = d.first, 0, warmTemperature
	return generate
}

// giveUp ends a delegation that used its attempts up.
func (d *delegation) giveUp(hint string) step {
	status := Rejected
	if d.red {
		status = Failed
	}
	if hint == "" && len(d.res.Attempts) > 0 {
		hint = "look at the attempts' reasons; make the task smaller or do it yourself"
	}
	return d.end(status, d.lastReason(), hint)
}

// awaits reports whether verify names an output that is not there yet: then that it can't be started is its red.
func (d *delegation) awaits() bool {
	command := d.command.String()
	for _, o := range d.outputs {
		if strings.Contains(command, o.Path) {
			return true
		}
	}
	return false
}
