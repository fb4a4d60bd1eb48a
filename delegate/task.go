// Package delegate turns a task into proven files: the prompt, the reply, the gate and the order of the proof. It
// reads and writes no file and starts no process itself; internal/workspace, internal/verify and internal/engine do,
// by the interfaces here.
package delegate

import "encoding/json"

// Task is a delegation as the caller words it; the JSON names are public (the tool's and the command line's fields).
type Task struct {
	Task           string          `json:"task"`
	TaskType       string          `json:"task_type,omitempty"`
	ContextFiles   []string        `json:"context_files,omitempty"`
	OutputFiles    []OutputFile    `json:"output_files,omitempty"`
	Verify         json.RawMessage `json:"verify,omitempty"` // a string for sh -c, or an argv array
	VerifyTimeoutS int             `json:"verify_timeout_s,omitempty"`
	Attempts       int             `json:"attempts,omitempty"`
	TimeoutS       int             `json:"timeout_s,omitempty"`
	Mode           string          `json:"mode,omitempty"` // files, text, agent
	Agent          string          `json:"agent,omitempty"`
	MaxTurns       int             `json:"max_turns,omitempty"`
	MaxTokens      int             `json:"max_tokens,omitempty"`
	OnFailure      string          `json:"on_failure,omitempty"` // rollback, keep
	Workdir        string          `json:"workdir,omitempty"`
	Profile        string          `json:"profile,omitempty"`
	Tier           string          `json:"tier,omitempty"`
	Model          string          `json:"model,omitempty"`
	AllowShell     bool            `json:"allow_shell,omitempty"`
	ReadRoots      []string        `json:"read_roots,omitempty"`
	WriteRoots     []string        `json:"write_roots,omitempty"`
	AllowPaths     []string        `json:"allow_paths,omitempty"`
	AllowShrink    bool            `json:"allow_shrink,omitempty"`
	Protect        []string        `json:"protect,omitempty"`
	Executor       string          `json:"executor,omitempty"`
	DryRun         bool            `json:"dry_run,omitempty"`
	Background     bool            `json:"background,omitempty"`
	Tasks          []Task          `json:"tasks,omitempty"`
}

// OutputFile is one declared output.
type OutputFile struct {
	Path        string `json:"path"`
	Description string `json:"description,omitempty"`
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

	// Agent mode.
	Turns          int      `json:"turns,omitempty"`
	ToolCalls      int      `json:"tool_calls,omitempty"`
	MalformedCalls int      `json:"malformed_calls,omitempty"`
	StopReason     string   `json:"stop_reason,omitempty"`
	HitTurnLimit   bool     `json:"hit_turn_limit,omitempty"`
	AgentSource    string   `json:"agent_source,omitempty"`
	Containment    string   `json:"containment,omitempty"`
	CostUSD        *float64 `json:"cost_usd,omitempty"`
}

// BatchResult is what a delegation with tasks[] returns.
type BatchResult struct {
	OK        bool     `json:"ok"`
	Results   []Result `json:"results"`
	Succeeded int      `json:"succeeded"`
	Failed    int      `json:"failed"`
	Seconds   float64  `json:"seconds"`
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
	Exit         int     `json:"exit"`
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
