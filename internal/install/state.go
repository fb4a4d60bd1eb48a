package install

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"localllm/internal/proc"
)

// State is what is installed in one client.
type State struct {
	Client  string `json:"client"`
	Found   bool   `json:"found"` // the client is on this machine
	Path    string `json:"path,omitempty"`
	Server  string `json:"server"`            // "installed", "outdated", "missing", "unreadable"
	Policy  string `json:"policy"`            // the same, or "none" where the client has no such file
	Answers *bool  `json:"answers,omitempty"` // the installed server answered when it was started as the client starts it
	Detail  string `json:"detail,omitempty"`
}

// answerLimit is how long a server may take to answer; clients wait for 30 s.
const answerLimit = 10 * time.Second

// Status looks at every chosen client and starts the installed server once to see whether it answers.
func Status(ctx context.Context, o Options) ([]State, error) {
	chosen, err := choose(&o)
	if err != nil {
		return nil, err
	}
	states := make([]State, 0, len(chosen))
	for _, c := range chosen {
		s := State{Client: c.name, Found: c.found(o), Path: c.config(o), Policy: "none"}
		var notes []string
		for _, e := range c.edits(o) {
			state, note := look(o, e)
			if note != "" {
				notes = append(notes, e.path+": "+note)
			}
			if e.what == "policy" {
				s.Policy = state
			} else {
				s.Server = state
			}
		}
		if s.Server == "installed" && c.plugin && !pluginThere(o) {
			s.Server = "outdated"
			notes = append(notes, pluginDir(o)+": the plugin's files are missing or of another version")
		}
		if s.Server == "installed" {
			err := Answers(ctx, o.Binary, o.environment())
			ok := err == nil
			s.Answers = &ok
			if err != nil {
				notes = append(notes, err.Error())
			}
		}
		s.Detail = strings.Join(notes, "; ")
		states = append(states, s)
	}
	return states, nil
}

func look(o Options, e edit) (state, note string) {
	t, err := open(e.path, o)
	if err != nil {
		return "unreadable", err.Error()
	}
	if !t.exists {
		return "missing", ""
	}
	want, err := e.set(t.text)
	if err != nil {
		return "unreadable", err.Error()
	}
	if bytes.Equal(want, t.text) {
		return "installed", ""
	}
	if bare, err := e.cut(t.text, nil); err == nil && bytes.Equal(bare, t.text) {
		return "missing", ""
	}
	return "outdated", ""
}

func pluginThere(o Options) bool {
	o.DryRun = true
	change, err := plugin(o, false)
	return err == nil && change.Action == "unchanged"
}

// Answers starts the server as a client does, with env added to this process's environment, and waits for its first
// answer.
func Answers(ctx context.Context, binary string, env map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	var out, said bytes.Buffer
	vars := os.Environ()
	for name, value := range env {
		vars = append(vars, name+"="+value)
	}
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"localllm","version":"0"}}}` + "\n"
	_, err := proc.Run(ctx, proc.Command{Path: binary, Args: []string{"mcp"}, Env: vars, Stdin: strings.NewReader(hello), Stdout: &out, Stderr: &said})
	if err != nil {
		return fmt.Errorf("starting %s: %w", binary, err)
	}
	var answer struct {
		Result struct {
			ServerInfo struct{ Name string } `json:"serverInfo"`
		} `json:"result"`
	}
	line, _, _ := bytes.Cut(out.Bytes(), []byte("\n"))
	if json.Unmarshal(line, &answer) != nil || answer.Result.ServerInfo.Name != serverName {
		return fmt.Errorf("%s mcp did not answer as it should: %.200s", binary, bytes.TrimSpace(append(out.Bytes(), said.Bytes()...)))
	}
	return nil
}

// Print is what to put in by hand: for each client its file and the text that belongs into it.
func Print(o Options) (string, error) {
	chosen, err := choose(&o)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, c := range chosen {
		for _, e := range c.edits(o) {
			text, err := e.set(nil)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&b, "# %s: %s\n%s\n", c.name, e.path, text)
		}
	}
	return b.String(), nil
}
