//go:build clients

package clients

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"localllm/delegate"
	"localllm/internal/practice"
	"localllm/test/harness"
)

// How the practice model calls what the clients write files with; a grammar wants the arguments in this order.
func claudeCall(path, content string) string {
	return practice.Call("Write", "file_path", path, "content", content)
}

func openCodeCall(path, content string) string {
	return practice.Call("write", "content", content, "filePath", path)
}

func codexCall(path, content string) string {
	return practice.Call("exec_command", "cmd", fmt.Sprintf("cat > %s <<'EOF'\n%sEOF\n", path, content))
}

// executing is a world whose managed engine runs a practice model that calls tools.
func executing(t *testing.T) (w *world, outside string) {
	t.Helper()
	w = newWorld(t)
	outside = filepath.Join(w.home, "outside.txt")
	const answered = "<tool_response>"
	w.model = harness.Model(t, practice.Script{
		{Say: "Nothing."},
		{When: []string{"MAKE-INSIDE"}, Say: openCodeCall("slug.txt", slug)},
		{When: []string{"MAKE-INSIDE", answered}, Say: "FINAL-ANSWER the file is there."},
		{When: []string{"MAKE-OUTSIDE"}, Say: openCodeCall(outside, "escaped\n")},
		{When: []string{"MAKE-OUTSIDE", answered}, Say: "FINAL-ANSWER it did not work."},
		{When: []string{"CLAUDE-INSIDE"}, Say: claudeCall("slug.txt", slug)},
		{When: []string{"CLAUDE-INSIDE", answered}, Say: "FINAL-ANSWER the file is there."},
		{When: []string{"CLAUDE-OUTSIDE"}, Say: claudeCall(outside, "escaped\n")},
		{When: []string{"CLAUDE-OUTSIDE", answered}, Say: "FINAL-ANSWER it did not work."},
		{When: []string{"CODEX-INSIDE"}, Say: codexCall("slug.txt", slug)},
		{When: []string{"CODEX-INSIDE", answered}, Say: "FINAL-ANSWER the file is there."},
		{When: []string{"CODEX-OUTSIDE"}, Say: codexCall(outside, "escaped\n")},
		{When: []string{"CODEX-OUTSIDE", answered}, Say: "FINAL-ANSWER it did not work."},
		{When: []string{"CODEX-OTHER"}, Say: codexCall("other.txt", "undeclared\n")},
		{When: []string{"CODEX-OTHER", answered}, Say: "FINAL-ANSWER that is not what was asked for."},
		{When: []string{"MAKE-OTHER"}, Say: openCodeCall("other.txt", "undeclared\n")},
		{When: []string{"MAKE-OTHER", answered}, Say: "FINAL-ANSWER that did not work either."},
	}, practice.Options{Tools: true, Context: 65536})
	w.env = append(w.env, "PATH="+filepath.Dir(client(t, "opencode"))+string(os.PathListSeparator)+w.get("PATH"), "SECRET_TOKEN=not-for-clients")
	w.write(filepath.Join(w.project, "opencode.json"), `{"permission": "allow"}`) // a project grants nothing
	self := strconv.Itoa(os.Getpid())
	if _, err := w.run(time.Minute, nil, w.binary, "enable", "--engine", "llama-server", "--model", w.model, "--context", "49152", "--while-pid", self); err != nil {
		t.Fatal(err)
	}
	return w, outside
}

// disable lets go of the engine, which nobody else holds.
func (w *world) disable() {
	if _, err := w.run(time.Minute, nil, w.binary, "disable", "--while-pid", strconv.Itoa(os.Getpid())); err != nil {
		w.t.Error(err)
	}
	w.quiet()
}

func (w *world) execute(task delegate.Task) delegate.Result {
	w.t.Helper()
	raw, err := json.Marshal(task)
	if err != nil {
		w.t.Fatal(err)
	}
	file := filepath.Join(w.home, "task.json")
	w.write(file, string(raw))
	out, err := w.run(3*time.Minute, nil, w.binary, "delegate", "--input", file, "--json")
	var res delegate.Result
	if bad := json.Unmarshal([]byte(out), &res); bad != nil {
		w.t.Fatal(bad, err)
	}
	return res
}

// TestOpenCodeExecutes has OpenCode do a task on the managed engine: what was declared is written and proven, and
// neither a file beside it nor one outside of the root is.
func TestOpenCodeExecutes(t *testing.T) {
	w, outside := executing(t)
	defer w.disable()
	verify, _ := json.Marshal(prove)
	declared := []delegate.OutputFile{{Path: "slug.txt"}}
	for _, mark := range []string{"MAKE-OUTSIDE", "MAKE-OTHER"} {
		res := w.execute(delegate.Task{Task: mark + " please", Executor: "opencode", OutputFiles: declared, Verify: verify, Attempts: 1})
		if res.OK || res.Status != delegate.Rejected || res.TaskID == "" || len(res.Files) != 0 {
			t.Errorf("%s: %+v", mark, res)
		}
		if !strings.Contains(strings.Join(res.Warnings, " "), "was not allowed to write") {
			t.Errorf("%s: the refusal is not told: %q", mark, res.Warnings)
		}
		for _, path := range []string{outside, filepath.Join(w.project, "other.txt"), filepath.Join(w.project, "slug.txt")} {
			if _, err := os.Lstat(path); err == nil {
				t.Errorf("%s: %s was written", mark, path)
			}
		}
	}
	res := w.execute(delegate.Task{Task: "MAKE-INSIDE please", Executor: "opencode", OutputFiles: declared, Verify: verify})
	if !res.OK || res.Status != delegate.Proven || res.Verify == nil || res.Verify.BaselineExit == 0 || res.Verify.Exit != 0 {
		t.Fatalf("%+v", res)
	}
	if res.Text != "FINAL-ANSWER the file is there." || res.Turns != 2 || res.ToolCalls != 1 || res.Tokens.Prompt == 0 || res.Tokens.Cached == 0 {
		t.Errorf("text %q, %d turns, %d calls, %+v", res.Text, res.Turns, res.ToolCalls, res.Tokens)
	}
	t.Logf("%.1f s, tokens %+v, containment %q", res.Seconds, res.Tokens, res.Containment)
	w.proven()
	if left, err := os.ReadDir(filepath.Join(w.home, "state", "executors")); err == nil && len(left) > 0 {
		t.Errorf("copies are left: %v", left)
	}
}

// TestClaudeCodeExecutes is the same with Claude Code, which speaks Messages.
func TestClaudeCodeExecutes(t *testing.T) {
	w, outside := executing(t)
	defer w.disable()
	verify, _ := json.Marshal(prove)
	declared := []delegate.OutputFile{{Path: "slug.txt"}}
	res := w.execute(delegate.Task{Task: "CLAUDE-OUTSIDE please", Executor: "claude", OutputFiles: declared, Verify: verify, Attempts: 1})
	if _, err := os.Lstat(outside); res.OK || len(res.Files) != 0 || err == nil {
		t.Errorf("%+v", res)
	}
	res = w.execute(delegate.Task{Task: "CLAUDE-INSIDE please", Executor: "claude", OutputFiles: declared, Verify: verify})
	if !res.OK || res.Status != delegate.Proven || res.Text != "FINAL-ANSWER the file is there." {
		t.Fatalf("%+v", res)
	}
	t.Logf("%.1f s, tokens %+v", res.Seconds, res.Tokens)
	w.proven()
}

// TestCodexExecutes is the same with Codex, which speaks Responses and writes by commands only: without them it is
// refused before anything starts.
func TestCodexExecutes(t *testing.T) {
	w, outside := executing(t)
	defer w.disable()
	verify, _ := json.Marshal(prove)
	declared := []delegate.OutputFile{{Path: "slug.txt"}}
	_, err := w.run(time.Minute, nil, w.binary, "delegate", "--executor", "codex", "CODEX-INSIDE please")
	if err == nil || !strings.Contains(err.Error(), "allow_shell") {
		t.Errorf("without commands: %v", err)
	}
	for mark, told := range map[string]string{"CODEX-OUTSIDE": "wrote none of the declared files", "CODEX-OTHER": "other.txt too"} {
		res := w.execute(delegate.Task{Task: mark + " please", Executor: "codex", AllowShell: true, OutputFiles: declared, Verify: verify, Attempts: 1})
		raw, _ := json.Marshal(res)
		if res.OK || res.Status != delegate.Rejected || len(res.Files) != 0 || !strings.Contains(string(raw), told) {
			t.Errorf("%s: %s", mark, raw)
		}
		for _, path := range []string{outside, filepath.Join(w.project, "other.txt"), filepath.Join(w.project, "slug.txt")} {
			if _, err := os.Lstat(path); err == nil {
				t.Errorf("%s: %s was written", mark, path)
			}
		}
	}
	res := w.execute(delegate.Task{Task: "CODEX-INSIDE please", Executor: "codex", AllowShell: true, OutputFiles: declared, Verify: verify})
	if !res.OK || res.Status != delegate.Proven || res.Text != "FINAL-ANSWER the file is there." || res.ToolCalls != 1 || res.Tokens.Prompt == 0 {
		t.Fatalf("%+v", res)
	}
	t.Logf("%.1f s, tokens %+v, containment %q", res.Seconds, res.Tokens, res.Containment)
	w.proven()
}
