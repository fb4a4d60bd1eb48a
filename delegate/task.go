// Package delegate turns a task into proven files: the prompt, the reply, the gate and the order of the proof. It
// reads and writes no file and starts no process itself; internal/workspace, internal/verify and internal/engine do,
// by the interfaces here.
package delegate

import "encoding/json"

// Task is a delegation as the caller words it; the JSON names are public (the tool's and the command line's fields),
// and the other tags say what each field takes.
type Task struct {
	Task           string          `json:"task" required:"true" help:"what is to be done, in full: the model sees only this and the context files"`
	TaskType       string          `json:"task_type,omitempty" enum:"generate,test,refactor,fix,document,ask,summarize,review" default:"generate" help:"kind of work"`
	ContextFiles   []string        `json:"context_files,omitempty" help:"files, folders, globs it may read"`
	OutputFiles    []OutputFile    `json:"output_files,omitempty" help:"the files it writes, and no others"`
	Verify         json.RawMessage `json:"verify,omitempty" help:"command that fails now and passes when it is right: a string for sh -c, or an argv array"`
	VerifyTimeoutS int             `json:"verify_timeout_s,omitempty" min:"1" max:"86400" default:"120" help:"seconds for one run of verify"`
	Attempts       int             `json:"attempts,omitempty" min:"1" max:"20" default:"3" help:"answers to try until verify is green"`
	TimeoutS       int             `json:"timeout_s,omitempty" min:"1" max:"604800" default:"1800" help:"seconds for the whole"`
	Mode           string          `json:"mode,omitempty" enum:"files,text,agent" help:"default files with output_files, else text; agent is a tool loop"`
	Agent          string          `json:"agent,omitempty" help:"agent or skill definition to follow"`
	MaxTurns       int             `json:"max_turns,omitempty" min:"1" max:"40" default:"15" help:"turns of the tool loop"`
	MaxTokens      int             `json:"max_tokens,omitempty" min:"1" max:"16777216" help:"tokens of one answer"`
	OnFailure      string          `json:"on_failure,omitempty" enum:"rollback,keep" default:"rollback" help:"the files, if it fails"`
	Workdir        string          `json:"workdir,omitempty" help:"folder to work in"`
	Profile        string          `json:"profile,omitempty" help:"use this profile's endpoint"`
	Tier           string          `json:"tier,omitempty" enum:"default,fast,deep" help:"how good a model"`
	Model          string          `json:"model,omitempty" help:"model to ask for"`
	AllowShell     bool            `json:"allow_shell,omitempty" help:"let the tool loop run commands"`
	ReadRoots      []string        `json:"read_roots,omitempty" help:"more folders it may read in"`
	WriteRoots     []string        `json:"write_roots,omitempty" help:"more folders it may write in"`
	AllowPaths     []string        `json:"allow_paths,omitempty" help:"deny-listed files that it may write"`
	AllowShrink    bool            `json:"allow_shrink,omitempty" help:"let a file become much shorter"`
	Protect        []string        `json:"protect,omitempty" help:"more files that must not change"`
	Executor       string          `json:"executor,omitempty" help:"another coding agent that does it: opencode, codex, claude"`
	DryRun         bool            `json:"dry_run,omitempty" help:"show the plan only"`
	Background     bool            `json:"background,omitempty" help:"return a task_id at once"`
	Tasks          []Task          `json:"tasks,omitempty" flag:"-" help:"a batch: each has delegate's fields"`
}

// OutputFile is one declared output.
type OutputFile struct {
	Path        string `json:"path" required:"true" help:"where it goes"`
	Description string `json:"description,omitempty" help:"what belongs into it"`
}

// Statuses of a delegation.
const (
	Proven     = "proven"
	Unproven   = "unproven"
	Unverified = "unverified"
	Answered   = "answered"
	Failed     = "failed"
	Rejected   = "rejected"
	Refused    = "refused"
	TimedOut   = "timed_out"
	Cancelled  = "cancelled"
)

// OK reports whether a status counts as accomplished.
func OK(status string) bool {
	switch status {
	case Proven, Unproven, Unverified, Answered:
		return true
	}
	return false
}

// Result is what a delegation returns; the JSON names are public. No file body is ever in it.
type Result struct {
	OK              bool         `json:"ok"`
	Status          string       `json:"status"`
	Reason          string       `json:"reason,omitempty"` // one sentence: why it was refused, rejected, failed
	Files           []FileChange `json:"files"`
	Verify          *Verdict     `json:"verify,omitempty"`
	Attempts        []Attempt    `json:"attempts"`
	Text            string       `json:"text,omitempty"`
	TextFile        string       `json:"text_file,omitempty"` // where longer text went
	Engine          string       `json:"engine,omitempty"`
	Model           string       `json:"model,omitempty"`
	Tokens          Tokens       `json:"tokens"`
	TokensPerSecond float64      `json:"tokens_per_second"`
	Seconds         float64      `json:"seconds"`
	Score           float64      `json:"score"`
	Conflicts       []string     `json:"conflicts,omitempty"`
	ChangedByVerify []string     `json:"changed_by_verify,omitempty"`
	TaskID          string       `json:"task_id,omitempty"`
	Hint            string       `json:"hint,omitempty"`
	Warnings        []string     `json:"warnings,omitempty"`
	Plan            *Plan        `json:"plan,omitempty"` // dry_run
	Diff            string       `json:"-"`              // for the command line's --diff only

	*AgentRun          // of mode agent, nil in the others
	CostUSD   *float64 `json:"cost_usd,omitempty"`
}

// AgentRun is what a result in mode agent has besides, all of it in each of them.
type AgentRun struct {
	Turns          int    `json:"turns"`
	ToolCalls      int    `json:"tool_calls"`
	MalformedCalls int    `json:"malformed_calls"`
	StopReason     string `json:"stop_reason"`
	HitTurnLimit   bool   `json:"hit_turn_limit"`
	AgentSource    string `json:"agent_source"`
	Containment    string `json:"containment"` // of commands; empty where none could run
}

// BatchResult is what a delegation with tasks[] returns.
type BatchResult struct {
	OK        bool     `json:"ok"`
	Results   []Result `json:"results"`
	Succeeded int      `json:"succeeded"`
	Failed    int      `json:"failed"`
	Seconds   float64  `json:"seconds"`
	TaskID    string   `json:"task_id,omitempty"`
}

// FileChange is what became of one declared output.
type FileChange struct {
	Path    string `json:"path"`
	Change  string `json:"change"` // created, modified, unchanged
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	SHA256  string `json:"sha256"`
}

// Verdict is what the caller's verify command showed.
type Verdict struct {
	Command      string  `json:"command"`
	BaselineExit int     `json:"baseline_exit"`
	Exit         int     `json:"exit"` // of the last run, the baseline's where no answer came to be verified
	Seconds      float64 `json:"seconds"`
	Tail         string  `json:"tail"` // at most 4 KB
}

// Attempt is one answer of the model and what became of it.
type Attempt struct {
	Outcome string  `json:"outcome"`
	Reason  string  `json:"reason,omitempty"`
	Seconds float64 `json:"seconds"`
}

// Plan is what a dry run shows.
type Plan struct {
	Mode          string   `json:"mode"`
	ContextFiles  []string `json:"context_files"`
	OutputFiles   []string `json:"output_files"`
	PromptTokens  int      `json:"prompt_tokens"`
	Exact         bool     `json:"exact"`
	OutputTokens  int      `json:"output_tokens"`
	Context       int      `json:"context"`
	Fits          bool     `json:"fits"`
	VerifyCommand string   `json:"verify_command,omitempty"`
}
