package delegate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// claim takes the tree: from here to the verdict no other delegation changes or verifies it.
func claim(ctx context.Context, d *delegation) step {
	d.say("waiting for the tree")
	unlock, err := d.Locker.Lock(ctx, func() { d.say("waiting for another delegation in this tree") })
	if err != nil {
		return d.stop(ctx, err)
	}
	d.unlock = unlock
	if d.command == nil {
		return write
	}
	// What verify showed before an earlier attempt holds for as long as nothing has moved since.
	if d.baseline != nil && d.state != "" && d.state == d.Verifier.Fingerprint(ctx) {
		return write
	}
	return baseline
}

// baseline verifies the tree as it is: a verify that is green already proves nothing.
func baseline(ctx context.Context, d *delegation) step {
	d.say("checking the baseline")
	o, err := d.Verifier.Run(ctx, *d.command)
	if err != nil {
		return d.stop(ctx, err)
	}
	d.last, d.baseline = &o, &o
	cantStart := o.Missing != "" || o.Exit == 126 || o.Exit == 127
	switch {
	case cantStart && !d.awaits():
		why := o.Missing
		if why == "" {
			why = fmt.Sprintf("exit %d: %s", o.Exit, strings.TrimSpace(lastBytes(o.Output, 300)))
		}
		return d.refuse("verify can't be started: "+why, "give a command that exists in the working folder's environment")
	case o.TimedOut:
		return d.refuse(fmt.Sprintf("verify did not end within %d s on the tree as it is", d.Task.VerifyTimeoutS), "give a faster command, or a larger verify_timeout_s")
	}
	return write
}

// write judges the answer and puts its files in place.
func write(ctx context.Context, d *delegation) step {
	if d.Task.Mode == ModeAgent {
		return work
	}
	d.say("writing")
	gate := Gate{Outputs: d.prompt.Outputs, AllowShrink: d.Task.AllowShrink, Parses: d.Parses}
	answer, err := gate.Files(d.answer)
	if err != nil {
		return d.rejected(ctx, err)
	}
	d.warn(answer.Warnings...)
	d.files = answer.Files
	if d.change, err = d.Tree.Begin(d.ID, d.outputs, d.Task.AllowPaths); err != nil {
		return d.stop(ctx, err)
	}
	err = d.change.Write(answer.Files)
	var conflict *Conflict
	switch {
	case errors.As(err, &conflict):
		return d.overtaken(ctx, conflict)
	case err != nil:
		return d.stop(ctx, err)
	case d.command == nil:
		return d.keep(Unverified, "", "give a verify command, and the result is proven or put back")
	}
	return prove
}

// overtaken begins anew after somebody changed an output while the answer was written.
func (d *delegation) overtaken(ctx context.Context, c *Conflict) step {
	d.attempt("conflict", c.Error())
	d.putBack()
	d.letGo(ctx)
	if len(d.res.Attempts) >= d.Task.Attempts {
		d.res.Conflicts = c.Paths
		return d.end(Failed, c.Error(), "nothing was written; delegate again when nobody else works on these files")
	}
	return admit
}

// prove runs verify on the changed tree.
func prove(ctx context.Context, d *delegation) step {
	d.say("verifying")
	protected := d.protected()
	before, err := d.Tree.Stamp(protected)
	if err != nil {
		return d.stop(ctx, err)
	}
	o, err := d.Verifier.Run(ctx, *d.command)
	if err != nil {
		return d.stop(ctx, err)
	}
	d.last = &o
	after, err := d.Tree.Stamp(protected)
	if err != nil {
		return d.stop(ctx, err)
	}
	d.others(o.Changed)
	if tampered := d.tampered(before, after, o.Changed); len(tampered) > 0 {
		why := "verify ran while a protected file changed, so it proves nothing: " + list(tampered)
		d.attempt("tampered", why)
		d.red = true
		return d.end(Failed, why, "look at that file: it was changed by verify, or by somebody meanwhile, and was not put back")
	}
	if o.Green() {
		return d.green(&o)
	}
	return d.stillRed(ctx, &o)
}

// green decides how much a green verify says.
func (d *delegation) green(o *Outcome) step {
	if d.baseline.Green() {
		return d.keep(Unproven, "", "verify was green before the change too, so it says nothing about it; one that fails without the change, such as a new test, would prove it")
	}
	if why := idle(*d.command, o.Output); why != "" {
		d.warn(why)
		return d.keep(Unproven, why, "give a verify that runs tests of what was changed")
	}
	if why := d.leaves(); why != "" {
		d.warn(why)
		return d.keep(Unproven, why, "look at that line before you trust the verify")
	}
	return d.keep(Proven, "", "")
}

// leaves says which file of the answer ends the program with success before the tests could fail.
func (d *delegation) leaves() string {
	for _, f := range d.files {
		for _, o := range d.outputs {
			if o.Path == f.Path && exitsGreen(f.Path, f.Body) && !exitsGreen(o.Path, o.Body) {
				return f.Path + " now ends the program with success by itself, so a green verify says nothing"
			}
		}
	}
	return ""
}

// keep makes the change final.
func (d *delegation) keep(status, reason, hint string) step {
	if d.Diff {
		d.res.Diff = d.change.Diff()
	}
	files, err := d.change.Keep()
	if err != nil {
		return d.end(Failed, "keeping the files: "+err.Error(), "")
	}
	d.change = nil
	d.res.Files = files
	if status == Proven && !slices.ContainsFunc(files, func(f FileChange) bool { return f.Change != "unchanged" }) {
		status, reason = Unproven, "verify went from red to green though no file changed: it does not depend on the files alone"
		d.warn(reason)
	}
	if status != Failed { // a failure that is kept has its attempt already
		d.attempt(status, reason)
	}
	return d.end(status, reason, hint)
}

// stillRed puts the tree back and goes for a repair.
func (d *delegation) stillRed(ctx context.Context, o *Outcome) step {
	d.red = true
	why := fmt.Sprintf("verify: exit %d", o.Exit)
	switch {
	case o.TimedOut:
		why = fmt.Sprintf("verify did not end within %d s", d.Task.VerifyTimeoutS)
	case o.Missing != "":
		why = "verify could not be started: " + o.Missing
	}
	d.attempt("red", why)
	packed := Pack(o.Output)
	if o.TimedOut {
		packed = strings.TrimLeft(packed+"\n("+why+")", "\n")
	}
	exhausted := len(d.res.Attempts) >= d.Task.Attempts
	if exhausted && d.Task.OnFailure == "keep" {
		return d.keep(Failed, why, "the files of the last attempt were kept, as asked")
	}
	if d.Task.Mode == ModeAgent && !exhausted {
		d.feedback = FailedTurn(d.command.String(), packed)
		return work
	}
	d.putBack()
	if len(d.res.Conflicts) > 0 {
		return d.end(Failed, why+"; "+list(d.res.Conflicts)+" changed meanwhile and was left as it is", "if verify itself rewrites the outputs (a formatter, for instance), leave that out of it")
	}
	d.letGo(ctx)
	return d.again(ctx, FailedTurn(d.command.String(), packed))
}

// protected are the patterns of files that must be the same after verify: those shown as context only, and those the
// caller named.
func (d *delegation) protected() []string {
	out := slices.Clone(d.Task.Protect)
	shown := d.context
	if d.Task.Mode == ModeAgent {
		shown = nil // its loop writes what it was given to read; the caller names what it must not
	}
	for _, p := range shown {
		if !d.isOutput(p) {
			out = append(out, p)
		}
	}
	return out
}

// tampered lists protected files that are not what they were; tests count as protected.
func (d *delegation) tampered(before, after map[string]string, changed []string) []string {
	var out []string
	for p, was := range before {
		if after[p] != was {
			out = append(out, p)
		}
	}
	for p := range after {
		if _, there := before[p]; !there {
			out = append(out, p)
		}
	}
	for _, p := range changed {
		if IsTest(p) && !d.isOutput(p) && d.Task.Mode != ModeAgent {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), d.isOutput)
}

// others lists what verify changed beside the outputs.
func (d *delegation) others(changed []string) {
	for _, p := range changed {
		if !d.isOutput(p) && !slices.Contains(d.res.ChangedByVerify, p) {
			d.res.ChangedByVerify = append(d.res.ChangedByVerify, p)
		}
	}
	slices.Sort(d.res.ChangedByVerify)
	if over := len(d.res.ChangedByVerify) - maxListed; over > 0 {
		d.res.ChangedByVerify = d.res.ChangedByVerify[:maxListed]
		d.warn(fmt.Sprintf("verify changed %d more files", over))
	}
}

// maxListed is how many names a result lists: it has to stay small.
const maxListed = 50

func (d *delegation) isOutput(p string) bool {
	return slices.ContainsFunc(d.outputs, func(o Output) bool { return o.Path == p })
}
