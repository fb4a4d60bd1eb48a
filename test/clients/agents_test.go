//go:build clients

package clients

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"localllm/internal/install"
	"localllm/test/harness"
)

// TestClaudeCodeImplements is the whole way: the installed plugin, the command, the scripted main model, our server, the
// keeper, a real engine with the practice model, a proven file, and nothing left.
func TestClaudeCodeImplements(t *testing.T) {
	w := newWorld(t)
	w.install(install.ClaudeCode)
	api := newScripted(t, script(w, true)...)
	env := []string{"ANTHROPIC_BASE_URL=" + api.URL, "ANTHROPIC_API_KEY=dummy"}
	out, err := w.run(3*time.Minute, env, client(t, "claude"), "-p", "/workflow:implement slug llm=true", "--output-format", "json")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "All done.") {
		t.Errorf("it said %s", tail(out))
	}
	for step, want := range []string{`can_enable`, `cold`, `recommendation`, `proven`, `delegations`, `disabled`} {
		if got := api.got(t, step); !strings.Contains(got, want) {
			t.Errorf("step %d gave %s, without %q", step, tail(got), want)
		}
	}
	w.proven()
	for _, want := range []string{"Build this: slug llm=true", "hands bounded coding work to a model", "The tool local_llm can have bounded work done"} {
		if !strings.Contains(api.shown, want) {
			t.Errorf("the model was not shown %q", want)
		}
	}
	w.quiet()
	w.uninstall(install.ClaudeCode)
}

func TestClaudeCodeWithoutLLMNeverTouchesTheModel(t *testing.T) {
	w := newWorld(t)
	w.install(install.ClaudeCode)
	api := newScripted(t)
	env := []string{"ANTHROPIC_BASE_URL=" + api.URL, "ANTHROPIC_API_KEY=dummy"}
	if _, err := w.run(2*time.Minute, env, client(t, "claude"), "-p", "/workflow:implement slug", "--output-format", "json"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(api.shown, "Don't call the local_llm tool at all") {
		t.Error("the command's text did not reach the model")
	}
	w.quiet()
}

// TestClaudeCodeLeavesNothingWhenItEndsInTheMiddle: the client goes while the model is enabled and nobody disabled it.
func TestClaudeCodeLeavesNothingWhenItEndsInTheMiddle(t *testing.T) {
	w := newWorld(t)
	w.install(install.ClaudeCode)
	api := newScripted(t, script(w, true)[:2]...)
	env := []string{"ANTHROPIC_BASE_URL=" + api.URL, "ANTHROPIC_API_KEY=dummy"}
	if _, err := w.run(2*time.Minute, env, client(t, "claude"), "-p", "/workflow:implement slug llm=true", "--output-format", "json"); err != nil {
		t.Fatal(err)
	}
	if got := api.got(t, 1); !strings.Contains(got, "cold") {
		t.Errorf("enable gave %s", tail(got))
	}
	w.quiet()
}

// TestClaudeCodeGoesOnAfterTheServerWasKilled: the client starts a new server at its next call, and the engine, which
// is not the server's child, is still there for it.
func TestClaudeCodeGoesOnAfterTheServerWasKilled(t *testing.T) {
	w := newWorld(t)
	w.install(install.ClaudeCode)
	steps := script(w, true)
	steps[2] = map[string]any{"action": "status"}
	api := newScripted(t, steps...)
	killed := 0
	api.between = map[int]func(){2: func() {
		for _, p := range harness.Processes(w.mark()) {
			if strings.HasSuffix(strings.TrimSpace(p.Command), "localllm mcp") {
				if err := syscall.Kill(p.PID, syscall.SIGKILL); err == nil {
					killed++
				}
			}
		}
	}}
	env := []string{"ANTHROPIC_BASE_URL=" + api.URL, "ANTHROPIC_API_KEY=dummy"}
	if _, err := w.run(3*time.Minute, env, client(t, "claude"), "-p", "/workflow:implement slug llm=true", "--output-format", "json"); err != nil {
		t.Fatal(err)
	}
	if killed != 1 {
		t.Errorf("%d servers were killed", killed)
	}
	// The call that finds the server gone may be lost; the next ones are not.
	if got := api.got(t, 3); !strings.Contains(got, "proven") {
		t.Errorf("delegate gave %s after %s", tail(got), tail(api.got(t, 2)))
	}
	w.proven()
	w.quiet()
}

func TestClaudeCodeAcceptsThePluginAndTheServer(t *testing.T) {
	w := newWorld(t)
	claude := client(t, "claude")
	root, err := filepath.Abs("../../plugin")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{root, filepath.Join(root, "workflow")} {
		if out, err := w.run(time.Minute, nil, claude, "plugin", "validate", "--strict", folder); err != nil || !strings.Contains(out, "Validation passed") {
			t.Errorf("%s: %s %v", folder, out, err)
		}
	}
	if _, err := w.run(time.Minute, nil, claude, "mcp", "add", "local_llm", "--", w.binary, "mcp"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"mcp", "list"}, {"mcp", "get", "local_llm"}} {
		if out, err := w.run(time.Minute, nil, claude, args...); err != nil || !strings.Contains(out, "Connected") {
			t.Errorf("%v: %s %v", args, out, err)
		}
	}
	w.quiet()
}

func TestClaudeCodeFindsWhatTheInstallerDeclared(t *testing.T) {
	w := newWorld(t)
	w.install(install.ClaudeCode)
	out, err := w.run(time.Minute, nil, client(t, "claude"), "mcp", "list")
	if err != nil || !strings.Contains(out, "plugin:workflow:local_llm") || !strings.Contains(out, "Connected") {
		t.Errorf("%s %v", out, err)
	}
	// What the marketplace command itself does with the same folder.
	plain := newWorld(t)
	for _, args := range [][]string{{"plugin", "marketplace", "add", filepath.Join(w.home, "state", "plugin")}, {"plugin", "install", "workflow@localllm"}} {
		if _, err := plain.run(time.Minute, nil, client(t, "claude"), args...); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := plain.run(time.Minute, nil, client(t, "claude"), "plugin", "list"); err != nil || !strings.Contains(out, "workflow@localllm") || !strings.Contains(out, "enabled") {
		t.Errorf("%s %v", out, err)
	}
	w.quiet()
	plain.quiet()
}

func TestOpenCodeDelegates(t *testing.T) {
	w := newWorld(t)
	api := newScripted(t, openSteps()...)
	w.write(filepath.Join(w.user, ".config", "opencode", "opencode.json"), `{
  "model": "scripted/m",
  "provider": {"scripted": {"npm": "@ai-sdk/openai-compatible", "name": "S", "options": {"baseURL": "`+api.URL+`/v1", "apiKey": "x"}, "models": {"m": {"name": "m", "tool_call": true}}}}
}
`)
	w.install(install.OpenCode)
	if _, err := w.run(3*time.Minute, nil, client(t, "opencode"), "run", "do it"); err != nil {
		t.Fatal(err)
	}
	w.checkOpenSteps(api)
	w.uninstall(install.OpenCode)
}

func TestCodexDelegates(t *testing.T) {
	w := newWorld(t)
	api := newScripted(t, openSteps()...)
	w.write(filepath.Join(w.user, ".codex", "config.toml"), `model = "scripted"
model_provider = "scripted"
approval_policy = "never"

[model_providers.scripted]
name = "scripted"
base_url = "`+api.URL+`/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
`)
	w.install(install.Codex)
	name, value, _ := strings.Cut(w.mark(), "=")
	if _, err := w.run(3*time.Minute, []string{"SCRIPTED_KEY=x"}, client(t, "codex"), "exec", "--skip-git-repo-check",
		"-c", "mcp_servers.local_llm.env."+name+"="+`"`+value+`"`, "do it"); err != nil {
		t.Fatal(err)
	}
	w.checkOpenSteps(api)
	w.uninstall(install.Codex)
}

func openSteps() []map[string]any {
	return []map[string]any{
		{"action": "status"},
		{"action": "enable", "llm": true},
		{"action": "delegate", "task": ask + ": write slug.txt", "output_files": []any{map[string]any{"path": "slug.txt"}}, "verify": prove},
	}
}

func (w *world) checkOpenSteps(api *scripted) {
	w.t.Helper()
	for step, want := range []string{"state", "cold", "proven"} {
		if got := api.got(w.t, step); !strings.Contains(got, want) {
			w.t.Errorf("step %d gave %s, without %q", step, tail(got), want)
		}
	}
	if !strings.Contains(api.shown, "hands bounded coding work to a model") {
		w.t.Error("the server's instructions did not reach the model")
	}
	w.proven()
	w.quiet()
}
