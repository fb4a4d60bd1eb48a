package delegate

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// What a task may ask for at most; beyond it nobody has measured that a local model does any good.
const (
	maxTaskBytes   = 256 << 10
	maxOutputs     = 64
	maxBatch       = 12
	maxCommandSize = 64 << 10
)

// FieldError is a malformed field of a task: which, what is wrong with it, and what to do.
type FieldError struct {
	Field string // as in the JSON: output_files[1].path
	Want  string
	Do    string
}

func (e *FieldError) Error() string { return e.Field + " " + e.Want }

// Hints lists what the user can do.
func (e *FieldError) Hints() []string { return hints(e.Do) }

// Checked is a well-formed task with its defaults filled in.
type Checked struct {
	Task    Task
	Command *Command // nil without a verify
}

// Command is the caller's verify: a line for sh -c, or an argument vector.
type Command struct {
	Shell   string
	Argv    []string
	Timeout time.Duration
}

// String is the command as its caller wrote it.
func (c Command) String() string {
	if c.Shell != "" {
		return c.Shell
	}
	return strings.Join(c.Argv, " ")
}

// Validate checks one task and fills its defaults in. The error is a *FieldError. It looks at no file.
func Validate(t Task) (Checked, error) {
	for _, check := range []func(*Task) *FieldError{checkTask, checkMode, checkPaths, checkNumbers} {
		if e := check(&t); e != nil {
			return Checked{}, e
		}
	}
	command, e := parseVerify(t.Verify)
	if e == nil && command != nil {
		if t.Mode == ModeText {
			e = &FieldError{"verify", "has nothing to prove: in text mode no file is written", "name the files to write in output_files, or leave verify out"}
		}
		command.Timeout = time.Duration(t.VerifyTimeoutS) * time.Second
	}
	if e != nil {
		return Checked{}, e
	}
	return Checked{t, command}, nil
}

func checkTask(t *Task) *FieldError {
	switch {
	case len(t.Tasks) > 0:
		return &FieldError{"tasks", "is a batch where one task is expected", "a batch can't be inside a batch"}
	case strings.TrimSpace(t.Task) == "":
		return &FieldError{"task", "is missing: it takes what is to be done, in words", "say what is to be done"}
	case len(t.Task) > maxTaskBytes:
		return &FieldError{"task", fmt.Sprintf("is %d KB long; it takes at most %d KB", len(t.Task)>>10, maxTaskBytes>>10), "put the text into a file and name it in context_files"}
	case strings.ContainsRune(t.Task, 0):
		return &FieldError{"task", "holds a NUL byte; it takes text", "send it without the NUL byte"}
	}
	if t.TaskType == "" {
		t.TaskType = TaskTypes()[0]
	}
	if e := oneOf("task_type", t.TaskType, TaskTypes()...); e != nil {
		return e
	}
	if t.OnFailure == "" {
		t.OnFailure = "rollback"
	}
	if t.Tier != "" {
		if e := oneOf("tier", t.Tier, "default", "fast", "deep"); e != nil {
			return e
		}
	}
	return oneOf("on_failure", t.OnFailure, "rollback", "keep")
}

func oneOf(field, got string, allowed ...string) *FieldError {
	if slices.Contains(allowed, got) {
		return nil
	}
	return &FieldError{field, fmt.Sprintf("takes one of %s, not %q", strings.Join(allowed, ", "), got), "use one of these, or leave it out"}
}

func checkMode(t *Task) *FieldError {
	t.Mode = DefaultMode(*t)
	if e := oneOf("mode", t.Mode, ModeFiles, ModeText, ModeAgent); e != nil {
		return e
	}
	switch {
	case t.Mode == ModeFiles && len(t.OutputFiles) == 0:
		return &FieldError{"output_files", "is missing: mode files writes the files that it names", "name the files, or use mode text"}
	case t.Mode == ModeText && len(t.OutputFiles) > 0:
		return &FieldError{"output_files", "can't be used in mode text, where no file is written", "leave mode out, or leave output_files out"}
	case t.Mode != ModeAgent:
		return onlyAgents(t)
	}
	return nil
}

func onlyAgents(t *Task) *FieldError {
	for _, f := range []struct {
		name  string
		given bool
	}{{"agent", t.Agent != ""}, {"max_turns", t.MaxTurns != 0}, {"allow_shell", t.AllowShell}, {"write_roots", len(t.WriteRoots) > 0}} {
		if f.given {
			return &FieldError{f.name, "is for mode agent only, and this is mode " + t.Mode, `set mode to "agent", or leave ` + f.name + ` out`}
		}
	}
	return nil
}

func checkPaths(t *Task) *FieldError {
	if len(t.OutputFiles) > maxOutputs {
		return &FieldError{"output_files", fmt.Sprintf("names %d files; it takes at most %d", len(t.OutputFiles), maxOutputs), "split the task"}
	}
	outputs := map[string]int{}
	for i, o := range t.OutputFiles {
		field := fmt.Sprintf("output_files[%d].path", i)
		if e := checkPath(field, o.Path); e != nil {
			return e
		}
		clean := plainPath(o.Path)
		if first, twice := outputs[clean]; twice {
			return &FieldError{field, fmt.Sprintf("names %q again, like output_files[%d]", o.Path, first), "name each file once"}
		}
		outputs[clean] = i
	}
	for _, l := range []struct {
		field string
		paths []string
	}{{"context_files", t.ContextFiles}, {"read_roots", t.ReadRoots}, {"write_roots", t.WriteRoots}, {"allow_paths", t.AllowPaths}, {"protect", t.Protect}} {
		for i, p := range l.paths {
			field := fmt.Sprintf("%s[%d]", l.field, i)
			if e := checkPath(field, p); e != nil {
				return e
			}
			at, both := outputs[plainPath(p)]
			switch {
			case both && l.field == "context_files":
				return &FieldError{field, fmt.Sprintf("names %q, which is also output_files[%d]", p, at), "leave it out here: an output that exists is shown to the model anyway"}
			case both && l.field == "protect":
				return &FieldError{field, fmt.Sprintf("names %q, which is also output_files[%d]", p, at), "a file is either written or protected"}
			}
		}
	}
	return nil
}

func plainPath(p string) string { return path.Clean(strings.ReplaceAll(p, "\\", "/")) }

func checkPath(field, p string) *FieldError {
	switch {
	case strings.TrimSpace(p) == "":
		return &FieldError{field, "is empty: it takes a path", "name a file, or leave the entry out"}
	case strings.ContainsRune(p, 0):
		return &FieldError{field, "holds a NUL byte; it takes a path", "send it without the NUL byte"}
	case len(p) > 4096:
		return &FieldError{field, "is longer than any path can be", "give a path relative to the working folder"}
	}
	return nil
}

func checkNumbers(t *Task) *FieldError {
	for _, n := range []struct {
		field               string
		value               *int
		fallback, low, high int
	}{
		{"verify_timeout_s", &t.VerifyTimeoutS, 120, 1, 86_400},
		{"attempts", &t.Attempts, 3, 1, 20},
		{"timeout_s", &t.TimeoutS, 1800, 1, 604_800},
		{"max_turns", &t.MaxTurns, 15, 1, 40},
		{"max_tokens", &t.MaxTokens, 0, 1, 16_777_216},
	} {
		if *n.value == 0 {
			*n.value = n.fallback
			continue
		}
		if *n.value < n.low || *n.value > n.high {
			return &FieldError{n.field, fmt.Sprintf("takes a whole number from %d to %d, not %d", n.low, n.high, *n.value), "use a number in that range, or leave it out"}
		}
	}
	return nil
}

func parseVerify(raw json.RawMessage) (*Command, *FieldError) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	wrong := func(want string) *FieldError {
		return &FieldError{"verify", want, `give a command such as "go test ./...", or an array such as ["go","test","./..."]`}
	}
	if len(raw) > maxCommandSize {
		return nil, wrong(fmt.Sprintf("is over %d KB long", maxCommandSize>>10))
	}
	var line string
	if json.Unmarshal(raw, &line) == nil {
		if strings.TrimSpace(line) == "" {
			return nil, wrong("is empty: it takes a string for sh -c, or an argv array")
		}
		if strings.ContainsRune(line, 0) {
			return nil, wrong("holds a NUL byte")
		}
		return &Command{Shell: line}, nil
	}
	var argv []string
	if json.Unmarshal(raw, &argv) != nil || len(argv) == 0 || argv[0] == "" || strings.ContainsRune(strings.Join(argv, ""), 0) {
		return nil, wrong("takes a string for sh -c, or an argv array of strings that begins with a program")
	}
	return &Command{Argv: argv}, nil
}
