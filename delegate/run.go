package delegate

import (
	"context"
	"fmt"
	"time"
)

// Tree is the project's files, as far as a delegation may touch them. Paths are relative to the working folder, with
// slashes.
type Tree interface {
	// Admit checks that each path may be an output and returns what is there now, in the same order. A path outside
	// the root, a folder, a link, a secret, a file that runs by itself and is not in allow, or one that can't be
	// written, is a *Refusal.
	Admit(outputs []OutputFile, allow []string) ([]Output, error)

	// Begin opens a change to the admitted outputs; what else is written, by the tool loop, is checked like an output
	// when it first is. Nothing of the tree has moved when Begin returns, and from here on a crash is repaired by the
	// next localllm.
	Begin(id string, outputs []Output, allow []string) (Change, error)

	// Stamp tells the content of files, folders and globs, by path; a missing file is not in it.
	Stamp(patterns []string) (map[string]string, error)
}

// Change is one try at the outputs. It ends with Undo or with Keep, and one of them must be called.
type Change interface {
	// Write puts the files in place, each in one step. A file that is not as Admit saw it, nor as this change wrote
	// it, is a *Conflict, and then none has been written. After any other error Undo is due.
	Write(files []File) error

	// Undo puts everything back to the byte, modes and times included, and removes new folders. Files that are not
	// what this change wrote are left alone and returned, their earlier form saved where Saved says.
	Undo() (conflicts []string, err error)

	// Saved is the folder where Undo puts the earlier forms of the files that it leaves alone.
	Saved() string

	// Keep makes the files final, all at once, and says what became of them.
	Keep() ([]FileChange, error)

	// Diff is the change so far as a unified diff.
	Diff() string
}

// Verifier runs the caller's own command.
type Verifier interface {
	// Check says why c can't be started, where that shows without running it.
	Check(c Command) error

	// Run runs c in the working folder and returns when nothing of it is left. The error is of ctx or of the
	// machinery; a command that fails, can't start or takes too long is an Outcome.
	Run(ctx context.Context, c Command) (Outcome, error)

	// Fingerprint tells two states of the tree apart; empty where the tree is too large to look at.
	Fingerprint(ctx context.Context) string
}

// Outcome is what one run of a Command showed.
type Outcome struct {
	Exit     int
	Missing  string // why it could not be started; empty when it ran
	TimedOut bool
	Took     time.Duration
	Output   string   // its end, with relative paths, enough to pack an error from
	Changed  []string // files that changed while it ran, sorted; outputs among them
	Unseen   bool     // the tree is too large to tell
}

// Green reports whether the command ran and succeeded.
func (o Outcome) Green() bool { return o.Exit == 0 && o.Missing == "" && !o.TimedOut }

// Locker lets one delegation at a time prove something in a tree, across processes.
type Locker interface {
	// Lock waits for the tree; waiting is called once if it is not free at once. The error is of ctx or of the disk.
	Lock(ctx context.Context, waiting func()) (unlock func(), err error)
}

// Clock tells the time.
type Clock interface{ Now() time.Time }

// Log keeps one line of every delegation.
type Log interface{ Delegation(Entry) error }

// Entry is what is known of a delegation when it has ended.
type Entry struct {
	ID           string
	Started      time.Time
	Task         Task
	Result       Result
	BaselineExit *int // nil where verify never ran
	VerifyExit   *int
	Tries        int
}

// Source reads what a prompt shows. It may be called from many goroutines.
type Source interface {
	// Gather expands the task's context files in the order of the caller's list. A file that can't be read or must
	// not be shown is a *Refusal.
	Gather(ctx context.Context, t Task) (Gathered, error)
}

// Gathered is the context of one task.
type Gathered struct {
	Project  string // see Input.Project
	Files    []File
	Warnings []string
}

// Sessions keeps what each slot has been sent. It may be called from many goroutines.
type Sessions interface {
	Load(slot int) Session
	Store(slot int, s Session)
}

// Worker is the tool loop of agent mode.
type Worker interface {
	// Work lets the model use its tools until it ends. All that it writes goes through order.Change.
	Work(ctx context.Context, order WorkOrder) (WorkDone, error)
}

// WorkOrder is one round of the tool loop.
type WorkOrder struct {
	Task     Task
	Change   Change
	Feedback string // empty in the first round, then why verify is still red
	Slot     int
	Progress func(Update)
}

// WorkDone is what a round of the tool loop came to. Unusable, when set, is why it counts for nothing.
type WorkDone struct {
	Text           string
	Tokens         Tokens
	Decode         time.Duration
	Turns          int
	ToolCalls      int
	MalformedCalls int
	StopReason     string
	HitTurnLimit   bool
	AgentSource    string
	Containment    string
	CostUSD        *float64
	Warnings       []string
	Unusable       string
}

// Update is how far a delegation is.
type Update struct {
	Phase    string // in words: "preparing", "generating", "waiting for the tree", "checking the baseline", …
	Attempt  int
	Attempts int
	Generating
}

// Runner takes tasks the whole way, from the prompt to the proof. Its fields are set once; Run and Batch may be called
// from many goroutines. Completer is always needed, Source where tasks have context files, Tree and Locker where they
// write, Verifier where they have a verify, Worker for agent mode; the rest may be nil.
type Runner struct {
	Completer Completer
	Source    Source
	Sessions  Sessions
	Tree      Tree
	Verifier  Verifier
	Locker    Locker
	Worker    Worker
	Clock     Clock
	Log       Log

	// Parses is the gate's: the syntax error in a file, or nil.
	Parses func(path string, body []byte) error
	// Hide takes the secrets out of what goes to an endpoint that is not loopback; reveal puts them back into what
	// comes from there.
	Hide func(text string) (hidden string, reveal func(string) string)
	// Redact takes secrets out of what is returned and logged.
	Redact func(string) string
	// MoreSlots lends a batch up to n of the endpoint's slots that nobody uses now, beside its own; nil lends all.
	MoreSlots func(n int) (slots []int, release func())
	// Score is the advice for a task whose first prompt had so many tokens (0: none was made), recorded and never obeyed.
	Score func(task Task, prompt int) float64
	// SaveText keeps a text that is too long to return and says where.
	SaveText func(id, text string) (path string, err error)
}

// Job is one task to run.
type Job struct {
	ID       string
	Task     Task
	Slot     int  // the session's slot where the endpoint pins them; -1: any
	Think    bool // the tier says so
	Diff     bool // fill Result.Diff
	Progress func(Update)
}

// Run takes one task to its end and returns what came of it. The error is a *FieldError where the task is malformed,
// and an *EngineError, with the result beside it, where the endpoint failed. When Run returns, the tree is as it was,
// or holds what the status says, and the log has its line.
func (r *Runner) Run(ctx context.Context, job Job) (Result, error) {
	checked, err := Validate(job.Task)
	if err != nil {
		return Result{}, err
	}
	d := newDelegation(r, job, checked)
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(d.Task.TimeoutS)*time.Second, errTimeUp)
	defer cancel()
	d.drive(ctx)
	return d.finish()
}

func (r *Runner) now() time.Time {
	if r.Clock == nil {
		return time.Now()
	}
	return r.Clock.Now()
}

// Refusal is a reason not to try, in one sentence, and what to do.
type Refusal struct {
	Reason string
	Hint   string
}

func (e *Refusal) Error() string { return e.Reason }

// Hints lists what the user can do.
func (e *Refusal) Hints() []string { return hints(e.Hint) }

func hints(hint string) []string {
	if hint == "" {
		return nil
	}
	return []string{hint}
}

// Conflict names outputs that somebody changed meanwhile.
type Conflict struct{ Paths []string }

func (e *Conflict) Error() string {
	return fmt.Sprintf("%s was changed by somebody else meanwhile", list(e.Paths))
}

// EngineError is a failure of the endpoint while a task was under way.
type EngineError struct{ Err error }

func (e *EngineError) Error() string { return "asking the model: " + e.Err.Error() }
func (e *EngineError) Unwrap() error { return e.Err }
