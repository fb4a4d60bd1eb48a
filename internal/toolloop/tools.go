package toolloop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"localllm/delegate"
)

// result is what a tool answers.
type result struct {
	text      string
	failed    bool // the same call again would fail the same way
	malformed bool // the call itself was wrong
}

func failure(format string, args ...any) result {
	return result{text: "error: " + fmt.Sprintf(format, args...), failed: true}
}

// arguments of all the tools; each looks at its own.
type arguments struct {
	Path       *string `json:"path"`
	Offset     whole   `json:"offset"`
	Limit      whole   `json:"limit"`
	Pattern    *string `json:"pattern"`
	IgnoreCase bool    `json:"ignore_case"`
	Content    *string `json:"content"`
	Old        *string `json:"old"`
	New        *string `json:"new"`
	All        bool    `json:"all"`
	Command    *string `json:"command"`
	TimeoutS   whole   `json:"timeout_s"`
}

// whole is a number that models write as 10, 10.0 and "10".
type whole int

func (w *whole) UnmarshalJSON(raw []byte) error {
	s := strings.Trim(string(raw), `"`)
	if s == "" || s == "null" {
		return nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f < 0 || f > 1e9 {
		return errors.New("want a whole number")
	}
	*w = whole(f)
	return nil
}

// tool is one that may be offered.
type tool struct {
	delegate.Tool
	needs []string // arguments
	names []string // other clients' names for it, as agents' definitions use them
	run   func(*conversation, context.Context, arguments) result
}

func define(name, description string, needs []string, names []string, properties string, run func(*conversation, context.Context, arguments) result) tool {
	required, _ := json.Marshal(needs)
	schema := `{"type":"object","properties":` + properties + `,"required":` + string(required) + `}`
	return tool{delegate.Tool{Name: name, Description: description, Schema: json.RawMessage(schema)}, needs, append(names, name), run}
}

const (
	pathProperty = `"path":{"type":"string","description":"relative to the working folder"}`
	shellTool    = "run_bash"
)

// tools in the order in which they are offered. The schemas are constant, so that they are cached. Engines hold a model to
// the order of the properties: the path comes first, for who knows it writes a better text.
func tools() []tool {
	return []tool{
		define("read_file", "Read a text file, a page of lines at a time.", []string{"path"}, []string{"read", "cat"},
			`{`+pathProperty+`,"offset":{"type":"integer","description":"first line, counted from 1"},"limit":{"type":"integer","description":"lines, 200 if not given"}}`, (*conversation).readFile),
		define("list_files", "List the files in a folder and below it.", []string{}, []string{"list", "ls", "glob", "read"},
			`{"path":{"type":"string","description":"a folder or a glob; the working folder if not given"}}`, (*conversation).listFiles),
		define("search", "Search files for a regular expression; answers path:line: text.", []string{"pattern"}, []string{"grep", "read"},
			`{"pattern":{"type":"string","description":"RE2 syntax"},"path":{"type":"string","description":"a folder, file or glob; the working folder if not given"},"ignore_case":{"type":"boolean"}}`, (*conversation).search),
		define("write_file", "Write a whole file, new or instead of the old one.", []string{"path", "content"}, []string{"write", "edit", "multiedit"},
			`{`+pathProperty+`,"content":{"type":"string","description":"all of the file"}}`, (*conversation).writeFile),
		define("edit_file", "Replace text in a file. old must be copied exactly and occur once.", []string{"path", "old", "new"}, []string{"edit", "write", "multiedit", "patch"},
			`{`+pathProperty+`,"old":{"type":"string","description":"the text to replace"},"new":{"type":"string","description":"what comes instead"},"all":{"type":"boolean","description":"replace every occurrence"}}`, (*conversation).editFile),
		define(shellTool, "Run a command line in a copy of the project, without input; what it changes is taken over.", []string{"command"}, []string{"bash", "shell"},
			`{"command":{"type":"string"},"timeout_s":{"type":"integer","description":"60 if not given"}}`, (*conversation).runBash),
	}
}

// offered are the tools of this task.
func (c *conversation) offered() []delegate.Tool {
	var out []delegate.Tool
	for _, t := range tools() {
		if c.may(t) {
			out = append(out, t.Tool)
		}
	}
	return out
}

func (c *conversation) may(t tool) bool {
	if t.Name == shellTool && !c.shell() {
		return false
	}
	return c.agent.May(t.names...)
}

func (c *conversation) shell() bool { return c.Shell || c.order.Task.AllowShell }

// call carries one call out.
func (c *conversation) call(ctx context.Context, call delegate.ToolCall) result {
	c.done.ToolCalls++
	for _, t := range tools() {
		if t.Name == call.Name && c.may(t) {
			a, problem := t.decode(call.Arguments)
			if problem != "" {
				c.done.MalformedCalls++
				return result{text: "error: " + problem + "\n" + t.Name + " takes " + string(t.Schema), failed: true, malformed: true}
			}
			c.say(t.Name, delegate.Generating{})
			return t.run(c, ctx, a)
		}
	}
	c.done.MalformedCalls++
	r := failure("there is no tool %q here; there are %s", clip(call.Name, 64), strings.Join(c.toolNames(), ", "))
	r.malformed = true
	return r
}

func (t tool) decode(raw string) (a arguments, problem string) {
	if strings.TrimSpace(raw) == "" {
		raw = "{}"
	}
	if !json.Valid([]byte(raw)) {
		var syntax *json.SyntaxError
		at := ""
		if err := json.Unmarshal([]byte(raw), &map[string]any{}); errors.As(err, &syntax) {
			at = fmt.Sprintf(" (%v, at byte %d)", syntax, syntax.Offset)
		}
		return a, "the arguments are not valid JSON" + at
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(raw)))
	if err := decoder.Decode(&a); err != nil {
		return a, "the arguments have a wrong type: " + strings.TrimPrefix(err.Error(), "json: ")
	}
	given := map[string]*string{"path": a.Path, "pattern": a.Pattern, "content": a.Content, "old": a.Old, "new": a.New, "command": a.Command}
	for _, need := range t.needs {
		if given[need] == nil {
			return a, "the argument " + need + " is missing"
		}
	}
	return a, ""
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
