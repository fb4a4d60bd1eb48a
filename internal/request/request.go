// Package request defines what each action takes, once for both doors: the tool's JSON and the command line's flags.
// It never carries an action out.
package request

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"localllm/delegate"
	"localllm/internal/hint"
)

// Capability asks what this machine can run.
type Capability struct {
	Profile string `json:"profile,omitempty" help:"judge this profile's endpoint instead of this machine"`
	Model   string `json:"model,omitempty" help:"judge just this model: a tag, a GGUF file, a Hugging Face reference"`
	Context int    `json:"context,omitempty" min:"256" max:"16777216" help:"tokens of window to plan for"`
	KVType  string `json:"kv_type,omitempty" enum:"f32,f16,bf16,q8_0,q5_1,q5_0,q4_1,q4_0" help:"type of the KV cache"`
}

// Enable starts, loads and warms a model for the session.
type Enable struct {
	LLM        LLM      `json:"llm,omitempty" help:"true, true:persist, MODEL or MODEL:persist"`
	Model      string   `json:"model,omitempty" help:"model to load; default: the recommended one"`
	Engine     string   `json:"engine,omitempty" enum:"ollama,llama-server" help:"engine to run it with"`
	Context    int      `json:"context,omitempty" min:"256" max:"16777216" help:"tokens of window per slot"`
	KVType     string   `json:"kv_type,omitempty" enum:"f32,f16,bf16,q8_0,q5_1,q5_0,q4_1,q4_0" help:"type of the KV cache"`
	Persist    bool     `json:"persist,omitempty" help:"keep it loaded after the session"`
	Pull       bool     `json:"pull,omitempty" help:"download the model if it is not installed"`
	Force      bool     `json:"force,omitempty" help:"against a «no» of the estimate, or to push out another model"`
	Profile    string   `json:"profile,omitempty" help:"use this profile's endpoint"`
	Slots      int      `json:"slots,omitempty" min:"1" max:"64" default:"1" help:"requests at once"`
	Background bool     `json:"background,omitempty" help:"return a task_id at once"`
	WarmFiles  []string `json:"warm_files,omitempty" help:"files to cache beforehand"`
}

// Disable lets go of the model.
type Disable struct {
	StopEngine *bool `json:"stop_engine,omitempty" help:"end the engine too; default: if it is ours and nobody else uses it"`
	Force      bool  `json:"force,omitempty" help:"also when other sessions use it; covers only what is ours"`
}

// Status asks what runs, or for one background task.
type Status struct {
	TaskID  string `json:"task_id,omitempty" help:"a background task to look at"`
	WaitS   int    `json:"wait_s,omitempty" min:"0" max:"3600" help:"seconds to wait for that task"`
	Profile string `json:"profile,omitempty" help:"health of this profile's endpoint"`
}

// Analyze asks whether a task is one for the local model.
type Analyze struct {
	Task         string                `json:"task" required:"true" help:"what is to be done"`
	TaskType     string                `json:"task_type,omitempty" enum:"generate,test,refactor,fix,document,ask,summarize,review" default:"generate" help:"kind of work"`
	Files        []string              `json:"files,omitempty" help:"files the task is about"`
	ContextFiles []string              `json:"context_files,omitempty" help:"files, folders, globs to read"`
	OutputFiles  []delegate.OutputFile `json:"output_files,omitempty" help:"files to be written"`
	Verify       json.RawMessage       `json:"verify,omitempty" help:"command that proves the result"`
}

// Stats asks what came of past delegations.
type Stats struct {
	Since   string `json:"since,omitempty" help:"7d, 12h, or a date"`
	By      string `json:"by,omitempty" enum:"task_type,model,day,status" help:"group by"`
	Project string `json:"project,omitempty" help:"folder whose log is read"`
}

// LLM is the short form of enable: true, true:persist, MODEL or MODEL:persist. In JSON it may be the boolean true.
type LLM string

// Split takes the short form apart; model is empty for «true». A model's own name may contain colons, so only a last
// segment «persist» is the flag.
func (l LLM) Split() (model string, persist bool) {
	s := string(l)
	s, persist = strings.CutSuffix(s, ":persist")
	if strings.EqualFold(s, "true") {
		s = ""
	}
	return s, persist
}

// UnmarshalJSON takes true or a string.
func (l *LLM) UnmarshalJSON(raw []byte) error {
	if string(raw) == "true" {
		*l = "true"
		return nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil || s == "" || strings.EqualFold(s, "false") || s == ":persist" {
		return fmt.Errorf(`takes true, "true:persist", "MODEL" or "MODEL:persist", not %s`, short(raw))
	}
	*l = LLM(s)
	return nil
}

// Error is a request that can't be understood: a usage error.
type Error struct {
	Action string
	Field  string // path of the field, like tasks[2].verify; empty where the whole is wrong
	Reason string // one sentence that names the field
}

func (e *Error) Error() string { return e.Reason }

type action struct {
	name, summary string
	empty         func() any
}

var actions = []action{
	{"capability", "can this machine run a local model, and which", func() any { return new(Capability) }},
	{"enable", "start, load and warm it for this session", func() any { return new(Enable) }},
	{"disable", "let go of it", func() any { return new(Disable) }},
	{"status", "what runs; with task_id a background task's result", func() any { return new(Status) }},
	{"analyze", "is this task one for the local model: score and recommendation", func() any { return new(Analyze) }},
	{"delegate", "have it done and proven", func() any { return new(delegate.Task) }},
	{"stats", "what came of past delegations", func() any { return new(Stats) }},
}

// Actions are the names of all actions, in the order in which they are used.
func Actions() []string {
	names := make([]string, len(actions))
	for i, a := range actions {
		names[i] = a.name
	}
	return names
}

// New is an empty input of the action, a pointer to its struct, for Flags; nil for an unknown action.
func New(name string) any {
	if a := find(name); a != nil {
		return a.empty()
	}
	return nil
}

// Parse reads the tool's whole argument object, action included.
func Parse(raw json.RawMessage) (name string, in any, err error) {
	var head struct {
		Action json.RawMessage `json:"action"`
	}
	if err := object(raw); err != nil {
		return "", nil, err
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return "", nil, &Error{Reason: "the arguments are not a JSON object"}
	}
	if len(head.Action) == 0 || string(head.Action) == "null" {
		return "", nil, &Error{Field: "action", Reason: "action is missing: it takes one of " + list(Actions())}
	}
	if err := json.Unmarshal(head.Action, &name); err != nil {
		return "", nil, &Error{Field: "action", Reason: "action takes one of " + list(Actions()) + ", not " + short(head.Action)}
	}
	in, err = Decode(name, raw)
	return name, in, err
}

// Decode reads the input of one action strictly: *Capability, *Enable, *Disable, *Status, *Analyze, *Stats or
// *delegate.Task. A field "action" in it has to be the same action. What is null counts as absent, and defaults are not
// filled in. Every error is an *Error, with hints.
func Decode(name string, raw json.RawMessage) (any, error) {
	a := find(name)
	if a == nil {
		err := &Error{Action: name, Field: "action", Reason: fmt.Sprintf("unknown action %q: action takes one of %s", name, list(Actions()))}
		if near := nearest(name, Actions()); near != "" {
			return nil, hint.Add(err, fmt.Sprintf("did you mean %q?", near))
		}
		return nil, err
	}
	in := a.empty()
	if len(strings.TrimSpace(string(raw))) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := object(raw); err != nil {
		return nil, err
	}
	if err := fill(a.name, in, raw); err != nil {
		return nil, err
	}
	return in, Check(in)
}

// Check finds what is missing in, or does not go together with the rest of, an input that flags have filled; Decode has done it already.
func Check(in any) error {
	name := nameOf(in)
	if t, ok := in.(*delegate.Task); ok {
		return checkTask(name, "", t, true)
	}
	return required(name, "", in)
}

func checkTask(name, path string, t *delegate.Task, batch bool) error {
	if len(t.Tasks) == 0 {
		return required(name, path, t)
	}
	if !batch {
		return &Error{name, path + "tasks", path + "tasks can't be given inside a batch: put all tasks into one list"}
	}
	if t.Task != "" {
		return &Error{name, "task", "task and tasks can't both be given: tasks is a batch, and each of its items has its own task"}
	}
	for i := range t.Tasks {
		if err := checkTask(name, fmt.Sprintf("%stasks[%d].", path, i), &t.Tasks[i], false); err != nil {
			return err
		}
	}
	return nil
}

func find(name string) *action {
	i := slices.IndexFunc(actions, func(a action) bool { return a.name == name })
	if i < 0 {
		return nil
	}
	return &actions[i]
}

func nameOf(in any) string {
	for _, a := range actions {
		if fmt.Sprintf("%T", a.empty()) == fmt.Sprintf("%T", in) {
			return a.name
		}
	}
	return ""
}

func list(names []string) string { return strings.Join(names, ", ") }
