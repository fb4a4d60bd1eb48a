package delegate_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"localllm/delegate"
)

func TestEachFieldWrong(t *testing.T) {
	rows := map[string]struct{ field, says string }{
		`{}`:                              {"task", "is missing"},
		`{"task":" \n"}`:                  {"task", "is missing"},
		`{"task":"a\u0000b"}`:             {"task", "NUL"},
		`{"task":"x","tasks":[{}]}`:       {"tasks", "one task"},
		`{"task":"x","task_type":"make"}`: {"task_type", "generate, test, refactor"},
		`{"task":"x","tier":"best"}`:      {"tier", "default, fast, deep"},
		`{"task":"x","on_failure":"cry"}`: {"on_failure", "rollback, keep"},
		`{"task":"x","mode":"fast"}`:      {"mode", "files, text, agent"},
		`{"task":"x","mode":"files"}`:     {"output_files", "is missing"},
		`{"task":"x","mode":"text","output_files":[{"path":"a"}]}`:               {"output_files", "mode text"},
		`{"task":"x","output_files":[{"path":""}]}`:                              {"output_files[0].path", "is empty"},
		`{"task":"x","output_files":[{"path":"a\u0000"}]}`:                       {"output_files[0].path", "NUL"},
		`{"task":"x","output_files":[{"path":"a"},{"path":"./b/../a"}]}`:         {"output_files[1].path", "again"},
		`{"task":"x","output_files":[{"path":"a"}],"context_files":["b","./a"]}`: {"context_files[1]", "also output_files[0]"},
		`{"task":"x","output_files":[{"path":"a"}],"protect":["a"]}`:             {"protect[0]", "also output_files[0]"},
		`{"task":"x","context_files":["a",""]}`:                                  {"context_files[1]", "is empty"},
		`{"task":"x","read_roots":[""]}`:                                         {"read_roots[0]", "is empty"},
		`{"task":"x","mode":"agent","write_roots":["\u0000"]}`:                   {"write_roots[0]", "NUL"},
		`{"task":"x","allow_paths":[" "]}`:                                       {"allow_paths[0]", "is empty"},
		`{"task":"x","agent":"reviewer"}`:                                        {"agent", "mode agent only"},
		`{"task":"x","allow_shell":true}`:                                        {"allow_shell", "mode agent only"},
		`{"task":"x","max_turns":3}`:                                             {"max_turns", "mode agent only"},
		`{"task":"x","verify":"true"}`:                                           {"verify", "text mode"},
		`{"task":"x","output_files":[{"path":"a"}],"verify":""}`:                 {"verify", "is empty"},
		`{"task":"x","output_files":[{"path":"a"}],"verify":"a\u0000"}`:          {"verify", "NUL"},
		`{"task":"x","output_files":[{"path":"a"}],"verify":[]}`:                 {"verify", "argv array"},
		`{"task":"x","output_files":[{"path":"a"}],"verify":[1]}`:                {"verify", "argv array"},
		`{"task":"x","output_files":[{"path":"a"}],"verify":["",""]}`:            {"verify", "argv array"},
		`{"task":"x","output_files":[{"path":"a"}],"verify":{"run":"x"}}`:        {"verify", "argv array"},
		`{"task":"x","verify_timeout_s":-1}`:                                     {"verify_timeout_s", "from 1 to 86400, not -1"},
		`{"task":"x","attempts":21}`:                                             {"attempts", "from 1 to 20, not 21"},
		`{"task":"x","timeout_s":-5}`:                                            {"timeout_s", "from 1 to"},
		`{"task":"x","mode":"agent","max_turns":41}`:                             {"max_turns", "from 1 to 40"},
		`{"task":"x","max_tokens":-1}`:                                           {"max_tokens", "from 1 to"},
	}
	for raw, want := range rows {
		var task delegate.Task
		if err := json.Unmarshal([]byte(raw), &task); err != nil {
			t.Fatal(raw, err)
		}
		checkField(t, raw, task, want.field, want.says)
	}
	many := delegate.Task{Task: "x"}
	for range 65 {
		many.OutputFiles = append(many.OutputFiles, delegate.OutputFile{Path: "p"})
	}
	checkField(t, "65 outputs", many, "output_files", "at most 64")
	checkField(t, "a huge task", delegate.Task{Task: strings.Repeat("x", 300<<10)}, "task", "at most 256 KB")
	checkField(t, "a huge path", delegate.Task{Task: "x", ContextFiles: []string{strings.Repeat("x", 5000)}}, "context_files[0]", "longer than any path")
	checkField(t, "a huge verify", delegate.Task{Task: "x", OutputFiles: many.OutputFiles[:1], Verify: []byte(`"` + strings.Repeat("x", 70<<10) + `"`)}, "verify", "64 KB")
}

func checkField(t *testing.T, what string, task delegate.Task, field, says string) {
	t.Helper()
	_, err := delegate.Validate(task)
	var e *delegate.FieldError
	if !errors.As(err, &e) || e.Field != field || !strings.Contains(e.Error(), says) || !strings.HasPrefix(e.Error(), field+" ") || len(e.Hints()) != 1 {
		t.Errorf("%s: %v, want %s … %s", what, err, field, says)
	}
}

func TestDefaultsAreFilledIn(t *testing.T) {
	c, err := delegate.Validate(delegate.Task{Task: "x", OutputFiles: []delegate.OutputFile{{Path: "a"}}, Verify: []byte(`["go","test","a b"]`)})
	if err != nil {
		t.Fatal(err)
	}
	if k := c.Task; k.Mode != delegate.ModeFiles || k.TaskType != "generate" || k.Attempts != 3 || k.TimeoutS != 1800 || k.VerifyTimeoutS != 120 || k.OnFailure != "rollback" || k.MaxTurns != 15 || k.MaxTokens != 0 {
		t.Errorf("%+v", k)
	}
	if c.Command.Timeout != 2*time.Minute || len(c.Command.Argv) != 3 || c.Command.String() != "go test a b" {
		t.Errorf("%+v", c.Command)
	}
	if c, err := delegate.Validate(delegate.Task{Task: "x", Verify: []byte("null")}); err != nil || c.Command != nil || c.Task.Mode != delegate.ModeText {
		t.Errorf("%+v %v", c, err)
	}
}
