package executor

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// opencode speaks chat completions or Messages, and asks its permission rules before each tool call.
type opencode struct{}

func (opencode) prepare(r *run, prompt string) ([]string, []string, error) {
	path := filepath.Join(r.home, "opencode.json")
	npm := "@ai-sdk/openai-compatible"
	if r.Endpoint.Anthropic {
		npm = "@ai-sdk/anthropic"
	}
	key := "none"
	if r.Endpoint.Key != "" {
		key = "{env:" + keyVariable + "}"
	}
	limit := map[string]int{"context": max(r.Endpoint.Context, 8192), "output": max(r.Endpoint.MaxTokens, 4096)}
	conf, err := json.MarshalIndent(map[string]any{
		"model": "local/model", "small_model": "local/model", "share": "disabled", "autoupdate": false, "snapshot": false,
		"enabled_providers": []string{"local"},
		"provider": map[string]any{"local": map[string]any{
			"npm": npm, "name": "local", "options": map[string]any{"baseURL": r.Endpoint.base() + "/v1", "apiKey": key},
			"models": map[string]any{"model": map[string]any{"id": r.Endpoint.Model, "name": r.Endpoint.Model, "tool_call": true, "limit": limit}},
		}},
		"permission": r.permissions(),
	}, "", "  ")
	if err != nil {
		return nil, nil, err
	}
	args := []string{"run", "--pure", "--format", "json", "--title", "delegation", "--", prompt}
	env := []string{"OPENCODE_CONFIG=" + path, "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_PROJECT_CONFIG=1"}
	return args, env, os.WriteFile(path, conf, 0o600)
}

// rules is a JSON object that keeps its order: of OpenCode's rules the last one that matches holds.
type rules []rule

type rule struct {
	pattern string
	action  any
}

// MarshalJSON writes the rules in their order.
func (rs rules) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, r := range rs {
		b.WriteString(map[bool]string{true: "{", false: ","}[i == 0])
		name, err := json.Marshal(r.pattern)
		if err != nil {
			return nil, err
		}
		action, err := json.Marshal(r.action)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteString(":")
		b.Write(action)
	}
	b.WriteString("}")
	return b.Bytes(), nil
}

func (r *run) permissions() rules {
	edit, outside := rules{{"*", "deny"}}, rules{{"*", "deny"}}
	for _, p := range r.editable() {
		edit = append(edit, rule{p, "allow"})
	}
	for _, root := range r.task.ReadRoots {
		if !filepath.IsAbs(root) {
			root = filepath.Join(r.Dir, root)
		}
		outside = append(outside, rule{filepath.ToSlash(filepath.Clean(root)) + "/*", "allow"})
	}
	shell := "deny"
	if r.task.AllowShell {
		shell = "allow"
	}
	return rules{{"*", "deny"}, {"read", "allow"}, {"glob", "allow"}, {"grep", "allow"}, {"list", "allow"}, {"todowrite", "allow"}, {"todoread", "allow"},
		{"edit", edit}, {"bash", shell}, {"external_directory", outside}}
}

// editable are the patterns of files that may be written. A folder that is no repository counts from the root of the
// file system there, and a repository from its own root.
func (r *run) editable() []string {
	var rel []string
	for _, o := range r.task.OutputFiles {
		rel = append(rel, filepath.ToSlash(filepath.Clean(o.Path)))
	}
	for _, root := range r.roots() {
		rel = append(rel, strings.TrimPrefix(root+"/*", "./"))
	}
	if len(rel) == 0 {
		rel = []string{"*"}
	}
	from := strings.TrimPrefix(filepath.ToSlash(r.copy.dir), "/")
	var out []string
	for _, p := range rel {
		if p != "*" {
			out = append(out, p)
		}
		out = append(out, from+"/"+p)
	}
	return out
}

// event is a line of OpenCode's output.
type event struct {
	Type  string `json:"type"`
	Error struct {
		Name string `json:"name"`
		Data struct {
			Message string `json:"message"`
		} `json:"data"`
	} `json:"error"`
	Part struct {
		Text   string `json:"text"`
		Tool   string `json:"tool"`
		Tokens struct {
			Input  int `json:"input"`
			Output int `json:"output"`
			Cache  struct {
				Read int `json:"read"`
			} `json:"cache"`
		} `json:"tokens"`
		State struct {
			Status string `json:"status"`
			Error  string `json:"error"`
			Input  struct {
				FilePath string `json:"filePath"`
				Command  string `json:"command"`
			} `json:"input"`
		} `json:"state"`
	} `json:"part"`
}

func (opencode) read(_ *run, output []byte) report {
	var out report
	for line := range bytes.Lines(output) {
		var e event
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		switch e.Type {
		case "text":
			out.text = e.Part.Text
		case "tool_use":
			out.toolCalls++
			if s := e.Part.State; s.Status == "error" && strings.Contains(s.Error, "specified a rule which prevents") {
				out.denied = append(out.denied, e.Part.Tool+" "+clipName(s.Input.FilePath+s.Input.Command))
			}
		case "step_finish":
			out.turns++
			t := e.Part.Tokens
			out.tokens.Prompt += t.Input + t.Cache.Read
			out.tokens.Cached += t.Cache.Read
			out.tokens.Generated += t.Output
		case "error":
			out.failure = strings.TrimSpace(e.Error.Name + ": " + e.Error.Data.Message)
		}
	}
	return out
}

func clipName(s string) string {
	if r := []rune(s); len(r) > 200 {
		return string(r[:200]) + "…"
	}
	return s
}
