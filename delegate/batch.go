package delegate

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// Batch runs tasks of one call: as many at once as the endpoint has slots, results in input order, one failure spares
// the others. The error is a *FieldError, and then nothing was run, or the first *EngineError with all results beside
// it. jobs[i].Slot is set by Batch where the endpoint pins slots.
//
// Cold requests at once can't share a prefix that none of them has finished. So the shared part is prefilled once and
// its state copied to the other slots; where the engine's own counters then say that this was of no use, or the
// endpoint can't do it, the tasks go one after the other on the warm slot. An endpoint that does not pin slots but
// serves many at once gets the first task alone until it has read its prompt.
func (r *Runner) Batch(ctx context.Context, jobs []Job) (BatchResult, error) {
	if len(jobs) == 0 || len(jobs) > maxBatch {
		return BatchResult{}, &FieldError{"tasks", fmt.Sprintf("takes 1 to %d tasks, not %d", maxBatch, len(jobs)), "split the batch"}
	}
	for i, j := range jobs {
		if _, err := Validate(j.Task); err != nil {
			if e, ok := err.(*FieldError); ok {
				err = &FieldError{fmt.Sprintf("tasks[%d].%s", i, e.Field), e.Want, e.Do}
			}
			return BatchResult{}, err
		}
	}
	b := &batch{Runner: r, jobs: jobs, results: make([]Result, len(jobs)), errs: make([]error, len(jobs))}
	started := r.now()
	b.run(ctx)
	out := BatchResult{Results: b.results, Seconds: seconds(r.now().Sub(started))}
	var err error
	for i, res := range b.results {
		if res.OK {
			out.Succeeded++
		} else {
			out.Failed++
		}
		if err == nil {
			err = b.errs[i]
		}
	}
	out.OK = out.Failed == 0
	return out, err
}

// batch is one batch under way. Each result has one writer.
type batch struct {
	*Runner
	jobs    []Job
	results []Result
	errs    []error
	next    atomic.Int32
	warmed  int         // tokens of the prefix that was copied; 0: none was
	useless atomic.Bool // the counters say that copying did not help
}

func (b *batch) run(ctx context.Context) {
	limits := b.Completer.Limits()
	workers := max(1, min(limits.Slots, len(b.jobs)))
	warm := b.jobs[0].Slot
	switch {
	case workers == 1:
		b.work(ctx, warm, nil)
		return
	case limits.PinnedSlots:
		warm = max(warm, 0)
	}
	slots, release := b.slots(warm, workers, limits.Slots)
	defer release()
	switch {
	case len(slots) == 1:
		b.work(ctx, warm, nil)
		return
	case limits.PinnedSlots:
		if !b.share(ctx, slots) {
			b.work(ctx, warm, nil)
			return
		}
		b.fan(ctx, slots)
		return
	}
	for i := range slots {
		slots[i] = -1
	}
	read := make(chan struct{})
	var lead sync.WaitGroup
	lead.Go(func() { b.work(ctx, -1, sync.OnceFunc(func() { close(read) })) })
	<-read
	b.fan(ctx, slots[1:])
	lead.Wait()
}

// slots are the warm one and as many others as there are workers.
func (b *batch) slots(warm, workers, total int) (slots []int, release func()) {
	out := []int{warm}
	if b.MoreSlots != nil {
		more, release := b.MoreSlots(workers - 1)
		return append(out, more...), release
	}
	for s := 0; s < total && len(out) < workers; s++ {
		if s != warm {
			out = append(out, s)
		}
	}
	return out, func() {}
}

// share prefills what the tasks have in common on the first slot and copies it to the others.
func (b *batch) share(ctx context.Context, slots []int) bool {
	sharer, ok := b.Completer.(SlotSharer)
	if !ok || len(slots) < 2 {
		return false
	}
	prompt, ok := b.common(ctx, slots[0])
	if !ok {
		return false
	}
	b.report(b.jobs[0], "warming the shared context")
	c, err := b.completer().Complete(ctx, Request{Messages: prompt.Warm, MaxTokens: 1, Slot: slots[0], Model: b.jobs[0].Task.Model})
	if err != nil {
		return false
	}
	if sharer.Share(ctx, slots[0], slots[1:]) != nil {
		return false
	}
	b.warmed = c.Tokens.Prompt
	if b.Sessions != nil {
		for _, s := range slots {
			b.Sessions.Store(s, prompt.Session)
		}
	}
	return true
}

// common lays out the first task as it will be sent, for the part of it that the others share. Tasks that name
// different context have too little in common to be worth a copy.
func (b *batch) common(ctx context.Context, slot int) (Prompt, bool) {
	first := b.jobs[0].Task
	if b.Source == nil || first.Mode == ModeAgent { // a tool loop's prompt begins with its own words
		return Prompt{}, false
	}
	for _, j := range b.jobs[1:] {
		if list(j.Task.ContextFiles) != list(first.ContextFiles) || j.Task.Model != first.Model {
			return Prompt{}, false
		}
	}
	gathered, err := b.Source.Gather(ctx, first)
	if err != nil || len(gathered.Files) == 0 {
		return Prompt{}, false
	}
	limits := b.Completer.Limits()
	in := Input{Task: first, Mode: ModeText, Model: limits.Model, Project: gathered.Project, Context: gathered.Files}
	if first.Model != "" {
		in.Model = first.Model
	}
	if b.Sessions != nil {
		in.Session = b.Sessions.Load(slot)
	}
	prompt, err := Build(ctx, b.completer(), in)
	return prompt, err == nil
}

func (b *batch) fan(ctx context.Context, slots []int) {
	var all sync.WaitGroup
	for i, slot := range slots {
		all.Go(func() {
			if i > 0 || slot < 0 {
				b.workWhile(ctx, slot, func() bool { return !b.useless.Load() })
				return
			}
			b.work(ctx, slot, nil)
		})
	}
	all.Wait()
}

// work takes task after task. read is called once the first of them has been read by the model, or has ended.
func (b *batch) work(ctx context.Context, slot int, read func()) {
	for {
		i := int(b.next.Add(1)) - 1
		if i >= len(b.jobs) {
			if read != nil {
				read()
			}
			return
		}
		b.one(ctx, i, slot, read)
	}
}

// workWhile is work for a slot that may turn out to be cold.
func (b *batch) workWhile(ctx context.Context, slot int, on func() bool) {
	for on() {
		i := int(b.next.Add(1)) - 1
		if i >= len(b.jobs) {
			return
		}
		b.one(ctx, i, slot, nil)
		if res := b.results[i]; b.warmed > 0 && res.Tokens.Prompt > 0 && res.Tokens.Cached < b.warmed/2 {
			b.useless.Store(true)
		}
	}
}

func (b *batch) one(ctx context.Context, i, slot int, read func()) {
	job := b.jobs[i]
	job.Slot = slot
	if read != nil {
		tell := job.Progress
		job.Progress = func(u Update) {
			if u.Generating.Phase == "generating" {
				read()
			}
			if tell != nil {
				tell(u)
			}
		}
		defer read()
	}
	b.results[i], b.errs[i] = b.Run(ctx, job)
}

func (b *batch) report(j Job, phase string) {
	if j.Progress != nil {
		j.Progress(Update{Phase: phase, Attempts: j.Task.Attempts})
	}
}
