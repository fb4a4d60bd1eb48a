package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"localllm/delegate"
	"localllm/internal/journal"
	"localllm/internal/proc"
	"localllm/internal/redact"
	"localllm/internal/slots"
	"localllm/internal/syntax"
	"localllm/internal/toolloop"
	"localllm/internal/treelock"
	"localllm/internal/verify"
	"localllm/internal/workspace"
)

// Delegate has a task, or a batch of them, done and proven. The result is a *delegate.Result, a
// *delegate.BatchResult, or a *TaskStatus for what goes on in the background.
func (a *App) Delegate(ctx context.Context, t *delegate.Task, report func(Progress)) (any, error) {
	t, err := spreadBatch(t)
	if err != nil {
		return nil, err
	}
	root, _, err := folders(callOf(ctx), t.Workdir)
	if err != nil {
		return nil, err
	}
	t, external, err := a.withExecutor(t)
	if err != nil {
		return nil, err
	}
	if len(t.Tasks) == 0 {
		if _, err := delegate.Validate(*t); err != nil { // a malformed task needs no engine to be found out
			return nil, err
		}
	}
	if err := readRoots(callOf(ctx), t); err != nil {
		return nil, err
	}
	if _, err := a.repairTree(root); err != nil {
		a.warn(err.Error())
	}
	if a.wantsBackground(ctx, t.Background || external) {
		return a.inBackground(ctx, "delegate", t, cmp.Or(t.Task, "a batch"), taskLimit(t), report)
	}
	report(Progress{Phase: "preparing"})
	if len(t.Tasks) > 0 {
		return a.batch(ctx, t, report)
	}
	w, err := a.openWork(ctx, t, report)
	if err != nil {
		return nil, err
	}
	defer w.close()
	return w.single(ctx, t)
}

// openWork finds the endpoint and the folders for a task, or for tasks that share both.
func (a *App) openWork(ctx context.Context, t *delegate.Task, report func(Progress)) (*work, error) {
	root, dir, err := folders(callOf(ctx), t.Workdir)
	if err != nil {
		return nil, err
	}
	to, err := a.target(ctx, t, report)
	if err != nil {
		return nil, err
	}
	w, err := a.newWork(ctx, root, dir, t, to, report)
	if err != nil {
		to.close()
		return nil, err
	}
	return w, nil
}

// folders are the project, where the log and the lock belong, and the working folder, to which paths are relative. A
// working folder outside of the project is a project of its own.
func folders(call Call, workdir string) (root, dir string, err error) {
	if root, err = call.project(); err != nil || workdir == "" {
		return root, root, err
	}
	if !filepath.IsAbs(workdir) {
		workdir = filepath.Join(root, workdir)
	}
	info, err := os.Stat(workdir)
	if err != nil || !info.IsDir() {
		return "", "", &delegate.FieldError{Field: "workdir", Want: fmt.Sprintf("takes an existing folder, and %s is none", workdir), Do: "name a folder, or leave workdir out"}
	}
	if rel, err := filepath.Rel(root, workdir); err == nil && filepath.IsLocal(rel) {
		return root, workdir, nil
	}
	return workdir, workdir, nil
}

// readRoots checks that the folders that a task may read besides are there: others would be passed over without a word.
// A batch's own are those of its tasks by now, each relative to that task's folder.
func readRoots(call Call, t *delegate.Task) error {
	if len(t.Tasks) > 0 {
		for i := range t.Tasks {
			if err := readRoots(call, &t.Tasks[i]); err != nil {
				return ofItem(i, err)
			}
		}
		return nil
	}
	_, dir, err := folders(call, t.Workdir)
	if err != nil {
		return err
	}
	for i, root := range t.ReadRoots {
		if !filepath.IsAbs(root) {
			root = filepath.Join(dir, root)
		}
		if info, err := os.Stat(root); err != nil || !info.IsDir() {
			return &delegate.FieldError{Field: fmt.Sprintf("read_roots[%d]", i), Want: fmt.Sprintf("takes an existing folder, and %s is none", root), Do: "name a folder, or leave it out"}
		}
	}
	return nil
}

// repairTree puts back what a delegation that died in the middle had written.
func (a *App) repairTree(project string) (journal.Repaired, error) {
	r, err := journal.Repair(a.layout, project)
	if err == nil {
		a.tellRepaired(r)
	}
	return r, err
}

func (a *App) tellRepaired(r journal.Repaired) {
	if r.Changes == 0 {
		return
	}
	if len(r.Files) > 0 {
		a.warn("a delegation had been killed in the middle: put back " + strings.Join(r.Files, ", "))
	}
	if len(r.Conflicts) > 0 {
		a.warn(fmt.Sprintf("changed by somebody since, so left alone: %s (earlier form in %s)", strings.Join(r.Conflicts, ", "), strings.Join(r.Saved, ", ")))
	}
}

// taskLimit is how long a task may need the engine: its own limit, and as much again for waiting. A batch's tasks may
// have to go one after the other.
func taskLimit(t *delegate.Task) time.Duration {
	all := t.Tasks
	if len(all) == 0 {
		all = []delegate.Task{*t}
	}
	seconds := 0
	for _, one := range all {
		if one.TimeoutS == 0 {
			one.TimeoutS = 1800
		}
		seconds += one.TimeoutS
	}
	return 2 * time.Duration(seconds) * time.Second
}

func (t *target) close() {
	if c, ok := t.Completer.(interface{ Close() }); ok {
		c.Close()
	}
	t.release()
}

// work is one delegate call under way.
type work struct {
	app    *App
	root   string
	to     *target
	runner delegate.Runner
	loop   *toolloop.Loop // where a task is in mode agent
	place  *place
	call   Call
	report func(Progress)
}

func (a *App) newWork(ctx context.Context, root, dir string, t *delegate.Task, to *target, report func(Progress)) (*work, error) {
	bound, err := a.binding(ctx)
	if err != nil {
		return nil, err
	}
	tree, err := workspace.Open(a.layout, root, dir)
	if err != nil {
		return nil, err
	}
	src := &counted{Source: tree}
	state := a.promptState(bound, root, to.key)
	w := &work{app: a, root: root, to: to, call: callOf(ctx), report: report}
	w.runner = delegate.Runner{
		Completer: to.Completer,
		Source:    src,
		Sessions:  state,
		Tree:      tree,
		Verifier:  verify.Folder{Dir: dir, Layout: a.layout},
		Locker:    treelock.Tree{Layout: a.layout, Project: root, Repaired: a.tellRepaired},
		Log:       a.entryLog(ctx, root, dir, bound, to, src),
		Parses:    syntax.Check,
		Redact:    redact.Text,
		Score:     func(t delegate.Task, prompt int) float64 { return a.score(ctx, root, t, prompt, to).Score },
		SaveText:  a.saveText,
	}
	if !to.limits.Loopback {
		w.runner.Hide = redact.Hide
	}
	err = a.addToolLoop(w, dir, t, src)
	if err == nil {
		err = a.addExecutor(w, dir, t)
	}
	if err != nil {
		w.closeFiles()
		return nil, err
	}
	pool := slots.Open(a.layout, to.key, to.limits.Slots)
	w.runner.MoreSlots = func(n int) ([]int, func()) { return lend(pool.More(n)) }
	w.place = &place{pool: pool, index: state.preferred(), waiting: func() { report(Progress{Phase: "waiting for a free slot"}) }}
	if _, err := w.place.take(ctx); err != nil {
		w.closeFiles()
		return nil, err
	}
	return w, nil
}

// lend names the places, and gives them back all at once.
func lend(more []*slots.Slot) (indexes []int, release func()) {
	for _, s := range more {
		indexes = append(indexes, s.Index)
	}
	return indexes, func() {
		for _, s := range more {
			s.Release()
		}
	}
}

// close lets go of everything, the endpoint included.
func (w *work) close() {
	w.place.release()
	w.closeFiles()
	w.to.close()
}

func (w *work) closeFiles() {
	if w.loop != nil {
		_ = w.loop.Close()
	}
	if c, ok := w.runner.Tree.(interface{ Close() error }); ok {
		_ = c.Close()
	}
}

func (w *work) single(ctx context.Context, t *delegate.Task) (any, error) {
	if t.Mode != delegate.ModeAgent { // whose model works on while it holds the tree
		w.runner.Completer = placed{w.to.Completer, w.place}
		w.runner.Locker = leaving{w.runner.Locker, w.place}
	}
	res, err := w.runner.Run(ctx, w.job(*t))
	if err != nil {
		return nil, w.explain(ctx, err)
	}
	w.to.annotate(&res)
	return &res, nil
}

func (w *work) job(t delegate.Task) delegate.Job {
	slot := -1
	if w.to.limits.PinnedSlots {
		slot = w.place.index
	}
	return delegate.Job{
		ID: "d-" + proc.NewNonce()[:10], Task: t, Slot: slot, Think: w.to.think, Diff: w.call.WantDiff,
		Progress: func(u delegate.Update) { w.report(progressOf(u)) },
	}
}

func progressOf(u delegate.Update) Progress {
	p := Progress{Phase: u.Phase}
	switch u.Generating.Phase {
	case "prefill":
		p.Phase, p.Done, p.Total, p.Unit = "reading the prompt", int64(u.PromptTokens), int64(u.PromptTotal), "tokens"
	case "generating":
		p.Done, p.Unit = int64(u.OutputTokens), "tokens"
	}
	if u.Attempts > 1 && u.Attempt > 1 {
		p.Detail = fmt.Sprintf("attempt %d of %d", u.Attempt, u.Attempts)
	}
	return p
}

// explain says of a failed endpoint what the keeper knows about it.
func (w *work) explain(ctx context.Context, err error) error {
	var engine *delegate.EngineError
	if !errors.As(err, &engine) || w.to.endpoint == nil {
		return err
	}
	st, serr := w.app.client.Status(context.WithoutCancel(ctx))
	if serr == nil && st.LastError != "" {
		return fmt.Errorf("%w (the engine: %s)", err, st.LastError)
	}
	return err
}
