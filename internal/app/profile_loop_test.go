package app

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"localllm/delegate"
	"localllm/internal/practice"
	"localllm/test/harness"
)

// Four turns on both engines by their OpenAI and their Anthropic routes: read, write, mend, say so; verify decides.
func TestToolLoopsOverProfilesAreProven(t *testing.T) {
	script := practice.Script{
		{When: []string{"TASK-LOOP"}, Say: practice.Call("read_file", "path", "value.txt")},
		{When: []string{"TASK-LOOP", "THE-VALUE-IS"}, Say: practice.Call("write_file", "path", "out/result.txt", "content", "seven\n")},
		{When: []string{"TASK-LOOP", "THE-VALUE-IS", "wrote out/result"}, Say: practice.Call("edit_file", "path", "out/result.txt", "old", "seven", "new", "forty-two")},
		{When: []string{"TASK-LOOP", "THE-VALUE-IS", "wrote out/result", "changed out/result"}, Say: "The result stands in its file."},
	}
	for _, kind := range harness.Kinds {
		s := harness.Start(t, kind, script, practice.Options{Tools: true})
		for _, format := range []string{"openai", "anthropic"} {
			t.Run(string(kind)+" by "+format, func(t *testing.T) {
				a, ctx, _ := withConfig(t, fmt.Sprintf("[profiles.p]\nkind = %q\nbase_url = %q\nmodel = %q\ncontext = 16384\n", format, s.URL, s.Model))
				project := os.Getenv("CLAUDE_PROJECT_DIR")
				if err := os.WriteFile(filepath.Join(project, "value.txt"), []byte("THE-VALUE-IS 42\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				out, err := a.Delegate(ctx, &delegate.Task{
					Task: "TASK-LOOP: write the value as a word.", Mode: delegate.ModeAgent, Profile: "p", Verify: json.RawMessage(`"grep -qx forty-two out/result.txt"`),
				}, func(Progress) {})
				if err != nil {
					t.Fatal(err)
				}
				res := out.(*delegate.Result)
				if res.Status != delegate.Proven || res.Turns != 4 || res.ToolCalls != 3 || res.MalformedCalls != 0 || res.Text != "The result stands in its file." {
					t.Errorf("%+v", res)
				}
				if res.Tokens.Cached < res.Tokens.Prompt/2 {
					t.Errorf("the history is append-only, and %d of %d tokens came from the cache", res.Tokens.Cached, res.Tokens.Prompt)
				}
				t.Logf("%+v", res.Tokens)
			})
		}
	}
}
