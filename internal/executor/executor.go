// Package executor has somebody else's coding agent do a task: headless, on a private copy of the working folder, with
// a configuration that grants what the task grants and nothing more. Only declared outputs are taken over from the
// copy, by the delegation's own change. It never writes in the working folder itself.
package executor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"localllm/delegate"
	"localllm/internal/containment"
	"localllm/internal/hint"
	"localllm/internal/paths"
	"localllm/internal/proc"
	"localllm/internal/scratch"
)

// Names are the clients that can be asked for.
var Names = []string{"opencode", "codex", "claude"}

// Endpoint is the model that the client is to use.
type Endpoint struct {
	URL       string // with or without /v1
	Model     string
	Key       string // empty: none is wanted
	Anthropic bool   // speaks Messages and nothing else
	Loopback  bool
	Context   int
	MaxTokens int
	Warning   string // what every use of it costs, where that has to be told
}

// Worker runs clients for tasks that name an executor, and leaves all others to Next. It implements delegate.Worker.
type Worker struct {
	Dir        string // the working folder, absolute
	Layout     paths.Layout
	Endpoint   Endpoint
	AllowShell bool     // the configuration allows commands
	Self       string   // our own program, for containment
	Hide       []string // from the client, where it is contained
	Next       delegate.Worker
}

const (
	keptOutput = 4 << 20 // of the client's events
	maxText    = 32 << 10
	grace      = 2 * time.Second
)

// run is one client at work.
type run struct {
	*Worker
	task   delegate.Task
	client client
	home   string // the client's own: configuration, state, temporary files
	nonce  string // of its processes
	copy   copied
	box    containment.Box // around the client
}

// client is what differs from one agent to the next.
type client interface {
	// prepare writes the configuration, and returns the arguments and what the environment needs besides.
	prepare(r *run, prompt string) (args, env []string, err error)
	// read finds the final answer in what the client printed.
	read(r *run, output []byte) report
}

// report is what a client says of its own work.
type report struct {
	text      string
	failure   string // its own error, where it says one
	tokens    delegate.Tokens
	turns     int
	toolCalls int
	denied    []string // what it tried and was not allowed to
}

func clientOf(name string) client {
	switch name {
	case "opencode":
		return opencode{}
	case "codex":
		return codex{}
	case "claude":
		return claude{}
	}
	return nil
}

// Check says whether a task's executor can be used; allowShell is the configuration's.
func Check(t delegate.Task, allowShell bool) error {
	switch {
	case t.Executor == "":
		return nil
	case clientOf(t.Executor) == nil:
		return &delegate.FieldError{Field: "executor", Want: fmt.Sprintf("takes one of %s, not %q", strings.Join(Names, ", "), t.Executor), Do: "leave executor out for the model alone"}
	case t.Mode != "" && t.Mode != delegate.ModeAgent:
		return &delegate.FieldError{Field: "executor", Want: "is for mode agent, and this is mode " + t.Mode, Do: "leave mode out"}
	case t.Executor == "codex" && !t.AllowShell && !allowShell:
		return &delegate.FieldError{Field: "executor", Want: "is codex, which writes files through commands only, and those are not allowed", Do: "set allow_shell, or use another executor"}
	}
	if _, err := exec.LookPath(t.Executor); err != nil {
		return hint.New(fmt.Sprintf("the executor %s is not installed: no program of this name is in PATH", t.Executor), "install it, or leave executor out")
	}
	return nil
}

// Work is delegate.Worker's.
func (w *Worker) Work(ctx context.Context, order delegate.WorkOrder) (delegate.WorkDone, error) {
	c := clientOf(order.Task.Executor)
	if c == nil {
		if w.Next == nil {
			return delegate.WorkDone{}, errors.New("there is no tool loop here")
		}
		return w.Next.Work(ctx, order)
	}
	private, err := scratch.Make(w.Layout, filepath.Join(w.Layout.State, "executors"), "")
	if err != nil {
		return delegate.WorkDone{}, fmt.Errorf("preparing %s: %w", order.Task.Executor, err)
	}
	defer func() { _ = private.Remove() }()
	r := &run{Worker: w, task: order.Task, client: c, home: filepath.Join(private.Path, "home"), nonce: private.Nonce}
	r.task.AllowShell = r.task.AllowShell || w.AllowShell
	if r.copy, err = copyTree(ctx, w.Dir, filepath.Join(private.Path, "work")); err != nil {
		return delegate.WorkDone{}, err
	}
	if order.Progress != nil {
		order.Progress(delegate.Update{Phase: order.Task.Executor + " is working"})
	}
	r.box = containment.Find(ctx, w.Self)
	said, exit, err := r.start(ctx, prompt(order))
	if err != nil {
		return delegate.WorkDone{}, err
	}
	done := delegate.WorkDone{
		Text: clip(said.text), Tokens: said.tokens, Turns: said.turns, ToolCalls: said.toolCalls, AgentSource: r.task.Executor,
		Containment: r.held(), StopReason: delegate.FinishStop,
	}
	if r.Endpoint.Warning != "" {
		done.Warnings = append(done.Warnings, r.Endpoint.Warning)
	}
	if exit != 0 {
		done.Unusable = fmt.Sprintf("%s ended with exit %d", r.task.Executor, exit)
		if said.failure != "" {
			done.Unusable += ": " + said.failure
		}
		return done, nil
	}
	return r.takeOver(order, done, said)
}

// contained reports whether there is a sandbox of ours around the client.
func (r *run) contained() bool { return r.box.Name != "" && r.box.Name != containment.None.Name }

// held says what keeps the client within its bounds.
func (r *run) held() string {
	own := ", " + r.task.Executor + "'s own permissions; "
	if _, ok := r.client.(codex); ok && r.contained() {
		own = "; " // it has none then
	}
	return "a private copy of the working folder" + own + r.box.Name + " around it"
}

// start runs the client to its end.
func (r *run) start(ctx context.Context, prompt string) (report, int, error) {
	for _, dir := range []string{r.home, filepath.Join(r.home, "tmp")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return report{}, 0, fmt.Errorf("making a folder for the executor: %w", err)
		}
	}
	args, env, err := r.client.prepare(r, prompt)
	if err != nil {
		return report{}, 0, fmt.Errorf("preparing %s: %w", r.task.Executor, err)
	}
	program, err := exec.LookPath(r.task.Executor)
	if err != nil {
		return report{}, 0, fmt.Errorf("starting %s: %w", r.task.Executor, err)
	}
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return report{}, 0, fmt.Errorf("starting %s: %w", r.task.Executor, err)
	}
	hide := slices.DeleteFunc(slices.Clone(r.Hide), func(p string) bool { return within(program, p) || within(real, p) }) // an agent may be installed there
	path, args, err := r.box.Command(containment.Policy{Write: []string{r.home, r.copy.dir}, Hide: hide, Network: true}, append([]string{program}, args...))
	if err != nil {
		return report{}, 0, err
	}
	out, errs := proc.Tail{Limit: keptOutput}, proc.Tail{Limit: 4 << 10}
	exit, err := proc.Run(ctx, proc.Command{
		Path: path, Args: args, Env: append(r.environment(), env...), Dir: r.copy.dir, Stdout: &out, Stderr: &errs,
		Nonce: r.nonce, Grace: grace, Death: syscall.SIGKILL,
		Session: true, // it could type into a terminal that it shares with us
	})
	if err != nil {
		return report{}, exit, err
	}
	said := r.client.read(r, []byte(out.String()))
	if said.failure == "" && exit != 0 {
		said.failure = strings.TrimSpace(errs.String())
	}
	return said, exit, nil
}

// takeOver writes what the client changed and was asked for.
func (r *run) takeOver(order delegate.WorkOrder, done delegate.WorkDone, said report) (delegate.WorkDone, error) {
	changed, err := r.copy.changes()
	if err != nil {
		return done, err
	}
	var files []delegate.File
	for _, f := range changed {
		if r.wanted(f.Path) {
			files = append(files, f)
			continue
		}
		done.Warnings = append(done.Warnings, r.task.Executor+" changed "+f.Path+" too, which was not asked for: left out")
	}
	for _, d := range said.denied {
		done.Warnings = append(done.Warnings, r.task.Executor+" was not allowed to "+d)
	}
	if len(files) == 0 && len(r.task.OutputFiles) > 0 {
		done.Unusable = r.task.Executor + " wrote none of the declared files"
		return done, nil
	}
	if len(files) > 0 {
		if err := order.Change.Write(files); err != nil {
			var refused *delegate.Refusal
			if errors.As(err, &refused) {
				done.Unusable = refused.Reason
				return done, nil
			}
			return done, err
		}
	}
	return done, nil
}

// wanted reports whether a file may be taken over: declared outputs and what is in a declared write root; where
// nothing is declared, every file that the change itself admits.
func (r *run) wanted(path string) bool {
	if len(r.task.OutputFiles) == 0 && len(r.task.WriteRoots) == 0 {
		return true
	}
	for _, o := range r.task.OutputFiles {
		if filepath.ToSlash(filepath.Clean(o.Path)) == path {
			return true
		}
	}
	return slices.ContainsFunc(r.roots(), func(root string) bool { return root == "." || path == root || strings.HasPrefix(path, root+"/") })
}

// roots are the write roots within the working folder, relative to it. Others can't be granted: nothing there could be
// put back.
func (r *run) roots() []string {
	var in []string
	for _, root := range r.task.WriteRoots {
		if filepath.IsAbs(root) {
			rel, err := filepath.Rel(r.Dir, root)
			if err != nil {
				continue
			}
			root = rel
		}
		if filepath.IsLocal(root) {
			in = append(in, filepath.ToSlash(filepath.Clean(root)))
		}
	}
	return in
}

func prompt(order delegate.WorkOrder) string {
	t := order.Task
	var b strings.Builder
	b.WriteString(strings.TrimSpace(t.Task) + "\n")
	if len(t.OutputFiles) > 0 {
		b.WriteString("\nWrite these files, relative to the current folder, and no others:\n")
		for _, o := range t.OutputFiles {
			b.WriteString("- " + o.Path)
			if o.Description != "" {
				b.WriteString(": " + o.Description)
			}
			b.WriteString("\n")
		}
	}
	if len(t.ContextFiles) > 0 {
		b.WriteString("\nRead first: " + strings.Join(t.ContextFiles, ", ") + "\n")
	}
	if order.Feedback != "" {
		b.WriteString("\n" + order.Feedback + "\n")
	}
	return b.String()
}

func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

func clip(s string) string {
	if s = strings.TrimSpace(s); len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "\n[…]"
	}
	return s
}
