package executor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// codex speaks the Responses API only, and of a model that it doesn't know it wants all files written by commands.
type codex struct{}

func (codex) prepare(r *run, prompt string) ([]string, []string, error) {
	home := filepath.Join(r.home, ".codex")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, nil, err
	}
	// Its own sandbox can't be set up within another one: every command would fail. So it has one only where ours is missing.
	sandbox := "workspace-write"
	if r.contained() {
		sandbox = "danger-full-access"
	}
	conf := fmt.Sprintf(`model = %q
model_provider = "local"
approval_policy = "never"
sandbox_mode = %q
web_search = "disabled"

[features]
shell_tool = %t

[model_providers.local]
name = "local"
base_url = %q
wire_api = "responses"
env_key = %q
`, r.Endpoint.Model, sandbox, r.task.AllowShell, r.Endpoint.base()+"/v1", keyVariable)
	env := []string{"CODEX_HOME=" + home}
	if r.Endpoint.Key == "" {
		env = append(env, keyVariable+"=none")
	}
	return []string{"exec", "--json", "--skip-git-repo-check", "--", prompt}, env, os.WriteFile(filepath.Join(home, "config.toml"), []byte(conf), 0o600)
}

func (codex) read(_ *run, output []byte) report {
	var out report
	for line := range bytes.Lines(output) {
		var e struct {
			Type    string `json:"type"`
			Message string `json:"message"`
			Item    struct {
				Type string `json:"type"`
				Text string `json:"text"`
			} `json:"item"`
			Error struct {
				Message string `json:"message"`
			} `json:"error"`
			Usage struct {
				Input  int `json:"input_tokens"`
				Cached int `json:"cached_input_tokens"`
				Output int `json:"output_tokens"`
			} `json:"usage"`
		}
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		switch {
		case e.Type == "item.completed" && e.Item.Type == "agent_message":
			out.text = e.Item.Text
		case e.Type == "item.completed" && e.Item.Type != "reasoning" && e.Item.Type != "error":
			out.toolCalls++
		case e.Type == "turn.completed":
			out.turns++
			out.tokens.Prompt += e.Usage.Input
			out.tokens.Cached += e.Usage.Cached
			out.tokens.Generated += e.Usage.Output
		case e.Type == "turn.failed":
			out.failure = e.Error.Message
		case e.Type == "error":
			out.failure = e.Message
		}
	}
	return out
}
