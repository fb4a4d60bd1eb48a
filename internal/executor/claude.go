package executor

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// claude is Claude Code. It speaks Messages, which both engines serve too.
type claude struct{}

func (claude) prepare(r *run, prompt string) ([]string, []string, error) {
	allow := []string{"Read(./**)", "Glob", "Grep"}
	absolute := "/" + filepath.ToSlash(r.copy.dir) + "/" // two slashes: one alone counts from the settings' folder
	deny := []string{"WebFetch", "WebSearch", "Task", "NotebookEdit"}
	for _, o := range r.task.OutputFiles {
		allow = append(allow, "Edit("+absolute+filepath.ToSlash(filepath.Clean(o.Path))+")")
	}
	for _, root := range r.roots() {
		allow = append(allow, "Edit("+absolute+root+"/**)")
	}
	if len(r.task.OutputFiles)+len(r.task.WriteRoots) == 0 {
		allow = append(allow, "Edit(./**)")
	}
	var readable []string
	for _, root := range r.task.ReadRoots {
		if !filepath.IsAbs(root) {
			root = filepath.Join(r.Dir, root)
		}
		readable = append(readable, root)
		allow = append(allow, "Read(/"+filepath.ToSlash(root)+"/**)")
	}
	if r.task.AllowShell {
		allow = append(allow, "Bash")
	} else {
		deny = append(deny, "Bash")
	}
	settings := filepath.Join(r.home, "settings.json")
	raw, err := json.MarshalIndent(map[string]any{"permissions": map[string]any{"defaultMode": "dontAsk", "allow": allow, "deny": deny}}, "", "  ")
	if err != nil {
		return nil, nil, err
	}
	args := []string{"-p", "--output-format", "json", "--settings", settings, "--setting-sources", "", "--strict-mcp-config", "--model", r.Endpoint.Model}
	for _, root := range readable {
		args = append(args, "--add-dir", root)
	}
	env := []string{"ANTHROPIC_BASE_URL=" + r.Endpoint.base(), "ANTHROPIC_API_KEY=" + r.Endpoint.key(), "CLAUDE_CONFIG_DIR=" + filepath.Join(r.home, ".claude"),
		"DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "ANTHROPIC_SMALL_FAST_MODEL=" + r.Endpoint.Model}
	return append(args, "--", prompt), env, os.WriteFile(settings, raw, 0o600)
}

func (claude) read(_ *run, output []byte) report {
	var e struct {
		Result  string `json:"result"`
		IsError bool   `json:"is_error"`
		Turns   int    `json:"num_turns"`
		Usage   struct {
			Input   int `json:"input_tokens"`
			Cached  int `json:"cache_read_input_tokens"`
			Created int `json:"cache_creation_input_tokens"`
			Output  int `json:"output_tokens"`
		} `json:"usage"`
		Denials []struct {
			Tool  string `json:"tool_name"`
			Input struct {
				FilePath string `json:"file_path"`
				Command  string `json:"command"`
			} `json:"tool_input"`
		} `json:"permission_denials"`
	}
	if json.Unmarshal(output, &e) != nil {
		return report{failure: "it printed no result"}
	}
	out := report{text: e.Result, turns: e.Turns}
	out.tokens.Prompt = e.Usage.Input + e.Usage.Cached + e.Usage.Created
	out.tokens.Cached, out.tokens.Generated = e.Usage.Cached, e.Usage.Output
	if e.IsError {
		out.failure = e.Result
	}
	for _, d := range e.Denials {
		out.denied = append(out.denied, d.Tool+" "+clipName(d.Input.FilePath+d.Input.Command))
	}
	return out
}
