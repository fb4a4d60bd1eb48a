// Package toolloop lets a model work with tools until it ends: it reads, searches, writes through the caller's change
// and, where that is allowed, runs commands in a copy of the project. The conversation only ever grows at its end, and
// nothing that the model says about its success is believed.
package toolloop

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"localllm/delegate"
	"localllm/internal/agents"
	"localllm/internal/containment"
	"localllm/internal/paths"
)

// Options of a Loop. Completer, Root and Dir are needed, for commands Layout too.
type Options struct {
	Completer delegate.Completer // with secrets hidden from it, if they are to be
	Source    delegate.Source    // of context files

	Root   string // the project
	Dir    string // the working folder in it, which paths are relative to
	Layout paths.Layout

	Agent   func(name string) (agents.Definition, error)
	Shell   bool     // commands are allowed whatever the task says
	Network bool     // and may use the network
	Self    string   // our own executable, which contains by Landlock
	Hide    []string // from commands
	Parses  func(path string, body []byte) error
	Think   bool
}

// Loop implements delegate.Worker. Work may be called from many goroutines.
type Loop struct {
	Options
	box func() containment.Box

	mu   sync.Mutex
	open map[delegate.Change]*conversation
}

var _ delegate.Worker = (*Loop)(nil)

// New makes a loop. Close it when its delegations have ended.
func New(o Options) (*Loop, error) {
	for _, dir := range []*string{&o.Root, &o.Dir} {
		real, err := filepath.EvalSymlinks(*dir)
		if err != nil {
			return nil, fmt.Errorf("opening the working folder: %w", err)
		}
		*dir = real
	}
	l := &Loop{Options: o, open: map[delegate.Change]*conversation{}}
	l.box = sync.OnceValue(func() containment.Box { return containment.Find(context.Background(), o.Self) })
	return l, nil
}

// Close removes the copies that commands worked on.
func (l *Loop) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var problems []error
	for change, c := range l.open {
		if c.mirror != nil {
			problems = append(problems, c.mirror.close())
		}
		delete(l.open, change)
	}
	return errors.Join(problems...)
}

// conversation is one delegation's, over all its rounds. messages is append-only: what was sent once is sent again to
// the byte, so that the engine has it in its cache.
type conversation struct {
	*Loop
	order    delegate.WorkOrder
	agent    agents.Definition
	allowed  []string // folders that may be written in beside the outputs; with neither, all may
	messages []delegate.Message
	tools    []delegate.Tool
	warnings []string
	done     delegate.WorkDone

	turns    int // over all rounds
	tokens   int // that the engine had seen or said after its last answer
	appended int // bytes since then
	failures map[string]int
	nudged   bool
	cuts     int
	garbled  int
	wrote    map[string]bool
	ran      []string
	mirror   *mirror
}

// Work is delegate.Worker's. A task that can't be begun is a *delegate.Refusal.
func (l *Loop) Work(ctx context.Context, order delegate.WorkOrder) (delegate.WorkDone, error) {
	c, err := l.conversation(ctx, order)
	if err != nil {
		return delegate.WorkDone{}, err
	}
	c.order = order
	c.done = delegate.WorkDone{AgentSource: c.agent.Source, Containment: c.containment(), Warnings: c.warnings}
	c.warnings = nil
	if order.Feedback != "" {
		c.append(delegate.Message{Role: delegate.User, Content: order.Feedback + "\n\nMend it with the tools, then say in one sentence what you changed.\n" + c.budget(ctx)})
		c.nudged, c.failures = false, map[string]int{}
	}
	err = c.run(ctx)
	return c.done, err
}

// conversation finds the one that this order goes on with, or begins it.
func (l *Loop) conversation(ctx context.Context, order delegate.WorkOrder) (*conversation, error) {
	l.mu.Lock()
	c := l.open[order.Change]
	l.mu.Unlock()
	if c != nil && order.Feedback != "" {
		return c, nil
	}
	c = &conversation{Loop: l, order: order, failures: map[string]int{}, wrote: map[string]bool{}}
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.open[order.Change] = c
	l.mu.Unlock()
	return c, nil
}

// begin lays the first prompt out and has the engine count it.
func (c *conversation) begin(ctx context.Context) error {
	task := c.order.Task
	if task.Agent != "" {
		if c.Agent == nil {
			return &delegate.Refusal{Reason: "no agent is known here"}
		}
		var err error
		if c.agent, err = c.Agent(task.Agent); err != nil {
			return &delegate.Refusal{Reason: "agent: " + err.Error(), Hint: "localllm agents lists those that there are"}
		}
	}
	var err error
	if c.allowed, err = c.writeRoots(task.WriteRoots); err != nil {
		return err
	}
	var files []delegate.File
	if c.Source != nil && len(task.ContextFiles) > 0 {
		gathered, err := c.Source.Gather(ctx, task)
		if err != nil {
			return err
		}
		files, c.warnings = gathered.Files, gathered.Warnings
	}
	c.tools = c.offered()
	c.messages = []delegate.Message{
		{Role: delegate.System, Content: systemText(c.agent)},
		{Role: delegate.User, Content: taskText(task, files, c.allowed)},
	}
	n, _, err := c.Completer.Count(ctx, c.messages, c.tools)
	if err != nil {
		return fmt.Errorf("counting the prompt's tokens: %w", err)
	}
	if window := c.Completer.Limits().Context; window > 0 && n+reserve(window) > window {
		return &delegate.Refusal{Reason: fmt.Sprintf("the prompt does not fit: %d tokens, and a tool loop needs room to work, in a window of %d", n, window),
			Hint: "leave context files out (the model can read them itself), or enable with a larger context"}
	}
	c.tokens = n
	return nil
}

func (c *conversation) append(m delegate.Message) {
	c.messages = append(c.messages, m)
	c.appended += len(m.Content) + 16
	for _, call := range m.Calls {
		c.appended += len(call.Arguments) + len(call.Name)
	}
}

// Why a round ended.
const (
	stopEnd      = "end"
	stopTurns    = "turn_limit"
	stopWindow   = "window_full"
	stopRepeated = "repeated_call"
	stopCut      = "cut_off"
	stopGarbled  = "malformed_calls"
	stopIdle     = "no_action"
)

// run takes turns until the model ends or has to.
func (c *conversation) run(ctx context.Context) error {
	for {
		if c.turns >= c.maxTurns() {
			c.done.HitTurnLimit = true
			c.stop(stopTurns, fmt.Sprintf("it used all %d turns without coming to an end", c.maxTurns()))
			return nil
		}
		if left, known := c.left(); known && left < reserve(c.Completer.Limits().Context) {
			c.stop(stopWindow, "the model's window is full and it has not come to an end")
			return nil
		}
		answer, err := c.ask(ctx)
		if err != nil {
			if ctx.Err() != nil || !garbled(err) {
				return err
			}
			answer = delegate.Completion{Tokens: answer.Tokens, Finish: finishGarbled}
		}
		if ended := c.take(ctx, answer); ended {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

const defaultTurns, mostTurns = 15, 40

func (c *conversation) maxTurns() int {
	if c.order.Task.MaxTurns == 0 {
		return defaultTurns
	}
	return min(c.order.Task.MaxTurns, mostTurns)
}

// stop ends a round that the model did not end. What it wrote till then counts only if there is a verify to judge it.
func (c *conversation) stop(reason, why string) {
	c.done.StopReason = reason
	if len(c.order.Task.Verify) == 0 || len(c.wrote) == 0 || c.done.Turns == 0 {
		c.done.Unusable = why
	}
	c.done.Text = c.report("")
}

func (c *conversation) ask(ctx context.Context) (delegate.Completion, error) {
	c.say("", delegate.Generating{Phase: "waiting"})
	answer, err := c.Completer.Complete(ctx, delegate.Request{
		Messages: c.messages, Tools: c.tools, MaxTokens: c.order.Task.MaxTokens, Temperature: temperature, Think: c.Think,
		Slot: c.order.Slot, Model: c.order.Task.Model, Progress: func(g delegate.Generating) { c.say("", g) },
	})
	if err != nil && (ctx.Err() != nil || !garbled(err)) {
		return answer, err
	}
	c.turns++
	c.done.Turns++
	c.done.Tokens = c.done.Tokens.Add(answer.Tokens)
	c.done.Decode += answer.Decode
	if answer.Tokens.Prompt > 0 {
		c.tokens, c.appended = answer.Tokens.Prompt+answer.Tokens.Generated, 0
	}
	return answer, err
}

// temperature is a little over none: a model that repeats itself to the letter never leaves a dead end.
const temperature = 0.2

func (c *conversation) say(what string, g delegate.Generating) {
	if c.order.Progress == nil {
		return
	}
	phase := fmt.Sprintf("turn %d of %d", min(c.turns+1, c.maxTurns()), c.maxTurns())
	switch {
	case what != "":
		phase = fmt.Sprintf("turn %d of %d: %s", c.turns, c.maxTurns(), what)
	case g.OutputTokens > 0:
		phase += ": generating" // the tokens are shown behind it
	}
	c.order.Progress(delegate.Update{Phase: phase, Generating: g})
}

// garbled reports whether an engine's error says that it could not read the call in its own model's answer.
func garbled(err error) bool {
	s := strings.ToLower(err.Error())
	for _, sign := range []string{"does not match the expected", "grammar stack", "failed to parse tool call", "error parsing tool call", "failed to parse input at pos", "invalid character '", "parse error"} {
		if strings.Contains(s, sign) {
			return true
		}
	}
	return false
}

const finishGarbled = "garbled"

// left is how many tokens of the window are free.
func (c *conversation) left() (n int, known bool) {
	window := c.Completer.Limits().Context
	if window == 0 {
		return 0, false
	}
	return window - c.tokens - c.appended/3, true
}

// reserve is what an answer needs at least.
func reserve(window int) int { return min(1024, max(window/16, 64)) }

// budget is what the model is told of its limits, at the end of what it is told anyway.
func (c *conversation) budget(ctx context.Context) string {
	turns := c.maxTurns() - c.turns
	parts := []string{fmt.Sprintf("%d of %d turns left", turns, c.maxTurns())}
	left, known := c.left()
	if known {
		parts = append(parts, fmt.Sprintf("about %d tokens of room left", max(left, 0)))
	}
	if until, ok := ctx.Deadline(); ok {
		parts = append(parts, fmt.Sprintf("%d s left", int(max(time.Until(until), 0).Seconds())))
	}
	s := "[" + strings.Join(parts, "; ") + "]"
	if turns == 1 || known && left < c.Completer.Limits().Context/5 {
		s += " Finish now: make the last change that is needed, or say in one sentence what was done."
	}
	return s
}

// report is the answer with what the commands really returned, since nobody else has seen that.
func (c *conversation) report(text string) string {
	if len(c.ran) == 0 {
		return text
	}
	return strings.TrimLeft(text+"\n\nCommands that it ran:\n"+strings.Join(c.ran, "\n"), "\n")
}
