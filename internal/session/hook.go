package session

import (
	"encoding/json"
	"fmt"
	"io"
)

// Hook is what a client tells a hook on its standard input.
type Hook struct {
	Event   string `json:"hook_event_name"`
	Session string `json:"session_id"`
	Folder  string `json:"cwd"`
	Source  string `json:"source"` // of a start: startup, resume, clear, compact
	Reason  string `json:"reason"` // of an end: clear, logout, prompt_input_exit, other
}

const hookLimit = 1 << 20 // a hook's JSON is a few hundred bytes

// ReadHook reads a hook's JSON. Unknown fields are the client's own business.
func ReadHook(r io.Reader) (Hook, error) {
	data, err := io.ReadAll(io.LimitReader(r, hookLimit))
	if err != nil {
		return Hook{}, fmt.Errorf("reading the hook's input: %w", err)
	}
	var h Hook
	if err := json.Unmarshal(data, &h); err != nil {
		return Hook{}, fmt.Errorf("reading the hook's input: %w", err)
	}
	return h, nil
}

// Ends reports whether a session's end is the end of its client process. /clear and /resume end a session too, but
// the process, and its MCP server with the old id in its environment, live on with a new one.
func (h Hook) Ends() bool { return h.Reason != "clear" && h.Reason != "resume" }

// Apply takes over what the hook says into the binding that the walk found.
func (h Hook) Apply(b Binding) Binding {
	if h.Session != "" {
		b.Session = h.Session
	}
	if h.Folder != "" {
		b.Project = h.Folder
	}
	return b
}
