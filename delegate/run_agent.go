package delegate

import (
	"context"
	"errors"
)

// work lets the tool loop write. It holds the tree from the baseline on, since it writes as it goes; its files stay in
// place between rounds and are put back at the end unless they are proven.
func work(ctx context.Context, d *delegation) step {
	if d.change == nil {
		var err error
		if d.change, err = d.Tree.Begin(d.ID, d.outputs, d.Task.AllowPaths); err != nil {
			return d.stop(ctx, err)
		}
	}
	d.begun = d.now()
	d.say("working")
	done, err := d.Worker.Work(ctx, WorkOrder{Task: d.Task, Change: d.change, Feedback: d.feedback, Slot: d.Slot, Progress: d.Progress})
	d.tally(done)
	var refusal *Refusal
	switch {
	case errors.As(err, &refusal):
		return d.stop(ctx, err)
	case err != nil:
		return d.engineFailed(ctx, err)
	}
	if done.Unusable != "" {
		d.attempt("rejected", done.Unusable)
		return d.giveUp("")
	}
	if d.command == nil {
		return d.keep(Unverified, "", "give a verify command, and the result is proven or put back")
	}
	return prove
}

func (d *delegation) tally(w WorkDone) {
	d.res.Tokens = d.res.Tokens.Add(w.Tokens)
	d.decode += w.Decode
	d.res.Turns += w.Turns
	d.res.ToolCalls += w.ToolCalls
	d.res.MalformedCalls += w.MalformedCalls
	d.res.StopReason, d.res.HitTurnLimit = w.StopReason, w.HitTurnLimit
	d.res.AgentSource, d.res.Containment = w.AgentSource, w.Containment
	if w.CostUSD != nil {
		sum := *w.CostUSD
		if d.res.CostUSD != nil {
			sum += *d.res.CostUSD
		}
		d.res.CostUSD = &sum
	}
	d.warn(w.Warnings...)
	d.res.Text = bounded(d.clean(w.Text), maxText, "\n[…]")
}
