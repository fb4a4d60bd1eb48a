//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"localllm/delegate"
	"localllm/internal/agents"
	"localllm/internal/practice"
	"localllm/test/harness"
)

// Four turns on each real engine, by the real program: look, write, mend, say so; and verify is what says that it is right.
func TestToolLoopIsProven(t *testing.T) {
	script := practice.Script{
		{When: []string{"TASK-LOOP"}, Say: practice.Call("read_file", "path", "value.txt")},
		{When: []string{"TASK-LOOP", "THE-VALUE-IS"}, Say: practice.Call("write_file", "path", "out/result.txt", "content", "seven\n")},
		{When: []string{"TASK-LOOP", "THE-VALUE-IS", "wrote out/result"}, Say: practice.Call("edit_file", "path", "out/result.txt", "old", "seven", "new", "forty-two")},
		{When: []string{"TASK-LOOP", "THE-VALUE-IS", "wrote out/result", "changed out/result"}, Say: "The result stands in its file."},
	}
	for _, kind := range harness.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			m := toolMachine(t, kind, script)
			m.write(map[string]string{"value.txt": "THE-VALUE-IS 42\n", ".claude/agents/worker.md": "---\ndescription: works\n---\nWork with care.\n"})
			res, code := m.delegate(delegate.Task{Task: "TASK-LOOP: write the value as a word.", Mode: delegate.ModeAgent, Agent: "worker", Verify: json.RawMessage(`"grep -qx forty-two out/result.txt"`)})
			if res.Status != delegate.Proven || code != 0 || res.Turns != 4 || res.ToolCalls != 3 || res.MalformedCalls != 0 || res.StopReason != "end" || res.HitTurnLimit || res.Containment != "" {
				t.Fatalf("exit %d: %+v", code, res)
			}
			if !strings.HasSuffix(res.AgentSource, filepath.Join(".claude", "agents", "worker.md")) || len(res.Files) != 1 || res.Files[0].Change != "created" || res.Text != "The result stands in its file." {
				t.Errorf("%+v", res)
			}
			if raw, err := os.ReadFile(filepath.Join(m.project, "out", "result.txt")); string(raw) != "forty-two\n" {
				t.Errorf("%q %v", raw, err)
			}
		})
	}
}

func TestToolLoopThatOnlyTalksIsRejected(t *testing.T) {
	m := toolMachine(t, harness.LlamaServer, practice.Script{
		{When: []string{"TASK-TALK"}, Say: "I will now write the file."},
		{When: []string{"TASK-STUCK"}, Say: practice.Call("write_file", "path", ".git/hooks/pre-commit", "content", "x")},
	})
	before := m.tree()
	res, code := m.delegate(delegate.Task{Task: "TASK-TALK", Mode: delegate.ModeAgent, Verify: json.RawMessage(`"test -f x"`)})
	if res.Status != delegate.Rejected || code != 3 || res.Turns != 2 || res.StopReason != "no_action" {
		t.Errorf("exit %d: %+v", code, res)
	}
	res, code = m.delegate(delegate.Task{Task: "TASK-STUCK", Mode: delegate.ModeAgent})
	if res.Status != delegate.Rejected || code != 3 || res.ToolCalls != 3 || res.StopReason != "repeated_call" {
		t.Errorf("exit %d: %+v", code, res)
	}
	if now := m.tree(); fmt.Sprint(now) != fmt.Sprint(before) {
		t.Errorf("the project changed: %v", now)
	}
}

// Ollama lets its model write what it likes: calls that are broken, and tools that there are not.
func TestToolLoopCorrectsCalls(t *testing.T) {
	m := toolMachine(t, harness.Ollama, practice.Script{
		{When: []string{"TASK-BREAK"}, Say: "<tool_call>\n{\"name\": \"write_file\", \"arguments\": {\"path\": }\n</tool_call>"},
		{When: []string{"TASK-BREAK", "could be read"}, Say: practice.Call("write_file", "path", "mended.txt", "content", "x")},
		{When: []string{"TASK-BREAK", "could be read", "wrote mended"}, Say: "The file is written."},
		{When: []string{"TASK-NOSHELL"}, Say: practice.Call("run_bash", "command", "touch ran.txt")},
		{When: []string{"TASK-NOSHELL", "could be read"}, Say: "No command can be run here."},
	})
	res, code := m.delegate(delegate.Task{Task: "TASK-BREAK", Mode: delegate.ModeAgent})
	if res.Status != delegate.Unverified || code != 0 || res.MalformedCalls != 1 || res.Turns != 3 || len(res.Files) != 1 {
		t.Errorf("a broken call: exit %d: %+v", code, res)
	}
	res, code = m.delegate(delegate.Task{Task: "TASK-NOSHELL", Mode: delegate.ModeAgent})
	if res.Status != delegate.Unverified || code != 0 || res.MalformedCalls != 1 || res.Containment != "" || len(res.Files) != 0 {
		t.Errorf("a shell that is not allowed: exit %d: %+v", code, res)
	}
	if _, err := os.Stat(filepath.Join(m.project, "ran.txt")); err == nil {
		t.Error("a command ran that nobody allowed")
	}
}

// Commands are contained by what this machine has.
func TestToolLoopCommands(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside.txt")
	m := toolMachine(t, harness.LlamaServer, practice.Script{
		{When: []string{"TASK-SHELL"}, Say: practice.Call("run_bash", "command", "echo made > made.txt; echo x > "+outside+"; exit 7")},
		{When: []string{"TASK-SHELL", "exit 7"}, Say: "The command made its file."},
	})
	res, code := m.delegate(delegate.Task{Task: "TASK-SHELL", Mode: delegate.ModeAgent, AllowShell: true})
	if res.Status != delegate.Unverified || code != 0 || len(res.Files) != 1 || res.Files[0].Path != "made.txt" || !strings.Contains(res.Text, "exit 7") {
		t.Errorf("exit %d: %+v", code, res)
	}
	_, err := os.Stat(outside)
	switch name, _, _ := strings.Cut(res.Containment, ":"); {
	case name == "none":
		t.Logf("this machine has no containment: %s", res.Containment)
	case !strings.HasPrefix(name, "landlock") && name != "bubblewrap":
		t.Errorf("containment %q", res.Containment)
	case err == nil:
		t.Errorf("%s: a command wrote outside", res.Containment)
	}
}

func TestAgentsAreListed(t *testing.T) {
	m := &machine{t: t, project: t.TempDir(), env: harness.Env(t, harness.Home(t))}
	m.write(map[string]string{".claude/agents/a.md": "---\ndescription: first\nmodel: haiku\n---\nx", ".claude/skills/a/SKILL.md": "x", ".claude/skills/b/SKILL.md": ""})
	var list struct{ Agents []agents.Definition }
	if err := json.Unmarshal([]byte(m.ok("agents", "--json")), &list); err != nil || len(list.Agents) != 2 {
		t.Fatalf("%+v %v", list, err)
	}
	if a := list.Agents[0]; a.Name != "a" || a.Description != "first" || a.Model != "haiku" || len(a.Shadows) != 1 {
		t.Errorf("%+v", a)
	}
	if out := m.ok("agents"); !strings.Contains(out, "shadowed") || !strings.Contains(out, "can't be used") {
		t.Errorf("%s", out)
	}
	var report struct{ Agents []struct{ Name string } }
	if err := json.Unmarshal([]byte(m.ok("capability", "--json")), &report); err != nil || len(report.Agents) != 1 || report.Agents[0].Name != "a" {
		t.Errorf("%+v %v", report, err)
	}
	_, errs, code := m.run("delegate", "--mode", "agent", "--agent", "../../x", "--task", "t")
	if code == 0 || strings.Contains(errs, "panic") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
