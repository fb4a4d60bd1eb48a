package practice_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"localllm/internal/practice"
	"localllm/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }

func onBoth(t *testing.T, test func(t *testing.T, kind harness.Kind)) {
	for _, kind := range harness.Kinds {
		t.Run(string(kind), func(t *testing.T) { test(t, kind) })
	}
}

// source is ordinary Go, from the toolchain that runs the test.
func source(t *testing.T, bytes int) string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(root)), "src/net/http/*.go"))
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	if all.Len() < bytes {
		t.Fatalf("only %d bytes of source", all.Len())
	}
	return all.String()[:bytes]
}

const (
	wrong    = "```go\npackage a\n\n// Add adds.\nfunc Add(a, b int) int {\n\treturn a - b\n}\n```\n"
	repaired = "```go\npackage a\n\n// Add adds.\nfunc Add(a, b int) int {\n\treturn a + b\n}\n```\n"
	odd      = "Äpfel\tund 日本語 🎉, trailing   \n\n~~~\n<tool_call>\n{\"name\": \"x\"}\n</tool_call>\n~~~ "
)

var fourAnswers = practice.Script{
	{Say: "Nothing fits."},
	{When: []string{"TASK-ADD"}, Say: wrong},
	{When: []string{"TASK-ADD", "--- FAIL: TestAdd"}, Say: repaired},
	{When: []string{"schlüssel 🔑"}, Say: odd},
}

// A conversation as a delegation holds it: one prefix, a task, its repair as an appended turn, then other tasks.
func TestFourPrompts(t *testing.T) {
	onBoth(t, func(t *testing.T, kind harness.Kind) {
		server := harness.Start(t, kind, fourAnswers, practice.Options{})
		system := harness.Message{Role: "system", Content: "You write code.\n" + source(t, 2000)}
		user := func(text string) harness.Message { return harness.Message{Role: "user", Content: text} }
		task := []harness.Message{system, user("Do TASK-ADD.")}
		for i, c := range []struct {
			messages []harness.Message
			want     string
		}{
			{task, wrong},
			{append(task, harness.Message{Role: "assistant", Content: wrong}, user("--- FAIL: TestAdd (0.00s)\n    want 3, got -1")), repaired},
			{[]harness.Message{system, user("Something else.")}, "Nothing fits."},
			{[]harness.Message{system, user("Den schlüssel 🔑 bitte.")}, odd},
		} {
			reply := server.Chat(c.messages, nil)
			if reply.Text != c.want || reply.Finish != "stop" {
				t.Errorf("prompt %d: got %q (%s), want %q", i+1, reply.Text, reply.Finish, c.want)
			}
			// All share the system turn of some 500 tokens; the first finds an empty cache.
			if i > 0 && reply.CachedTokens < 400 || reply.CachedTokens >= reply.PromptTokens {
				t.Errorf("prompt %d: %d of %d tokens cached", i+1, reply.CachedTokens, reply.PromptTokens)
			}
			if reply.Tokens < 4 {
				t.Errorf("prompt %d: %q in %d tokens", i+1, reply.Text, reply.Tokens)
			}
		}
	})
}

// One marker hundreds of times and the other once, wherever it is, at 100 and at 12,000 tokens.
func TestMarkersAnywhere(t *testing.T) {
	onBoth(t, func(t *testing.T, kind harness.Kind) {
		server := harness.Start(t, kind, fourAnswers, practice.Options{})
		long := source(t, 46000)
		crowd := strings.Repeat("TASK-ADD ", 500)
		fail := "--- FAIL: TestAdd"
		for _, c := range []struct {
			name   string
			prompt string
			tokens int
			want   string
		}{
			{"short, none", long[:330], 90, "Nothing fits."},
			{"short, one", long[:300] + "TASK-ADD", 80, wrong},
			{"short, other only", long[:300] + fail, 80, "Nothing fits."},
			{"short, both", fail + long[:300] + "TASK-ADD", 80, repaired},
			{"long, none", long, 12000, "Nothing fits."},
			{"long, first", "TASK-ADD" + long, 12000, wrong},
			{"long, last", long + "TASK-ADD", 12000, wrong},
			{"long, far apart", fail + long + "TASK-ADD", 12000, repaired},
			{"long, once in crowd", crowd + long[:20000] + fail + long[20000:43000] + crowd, 12000, repaired},
			{"long, only a crowd", crowd + long[:43000] + crowd, 12000, wrong},
		} {
			reply := server.Ask(c.prompt)
			if reply.Text != c.want {
				t.Errorf("%s: got %q, want %q", c.name, reply.Text, c.want)
			}
			if reply.PromptTokens < c.tokens {
				t.Errorf("%s: %d prompt tokens, want at least %d", c.name, reply.PromptTokens, c.tokens)
			}
		}
	})
}

// The request's own knobs must not change the words: temperature, thinking, a limit that cuts.
func TestKnobs(t *testing.T) {
	onBoth(t, func(t *testing.T, kind harness.Kind) {
		server := harness.Start(t, kind, fourAnswers, practice.Options{})
		prompt := []harness.Message{{Role: "system", Content: "Be brief."}, {Role: "user", Content: "TASK-ADD"}}
		knobs := []map[string]any{{"temperature": 1, "seed": 7, "chat_template_kwargs": map[string]any{"enable_thinking": true}}, {"chat_template_kwargs": map[string]any{"enable_thinking": false}}}
		cut := map[string]any{"max_tokens": 5}
		if kind == harness.Ollama {
			knobs = []map[string]any{{"options": map[string]any{"temperature": 1, "seed": 7, "num_ctx": 16384}}, {"think": false}}
			cut = map[string]any{"options": map[string]any{"temperature": 0, "num_ctx": 16384, "num_predict": 5}}
		}
		for _, fields := range knobs {
			if reply := server.Chat(prompt, fields); reply.Text != wrong {
				t.Errorf("with %v: got %q", fields, reply.Text)
			}
		}
		reply := server.Chat(prompt, cut)
		if reply.Finish != "length" || reply.Tokens != 5 || !strings.HasPrefix(wrong, reply.Text) {
			t.Errorf("cut off: %+v", reply)
		}
	})
}

// fullScript has all that a model has room for: each entry but the default has one marker more than the one before, up
// to eight, so that most prompts hold the markers of several entries.
func fullScript() (script practice.Script, prompts []string) {
	marker := func(i int) string { return fmt.Sprintf("«mark %02d»", i) }
	// 47 entries with a marker of their own make 47; the 48th marker is shared.
	for i := range practice.MaxEntries - 1 {
		when := []string{marker(i)}
		if i%3 == 1 {
			when = append(when, marker(47))
		}
		if i%3 == 2 {
			when = append(when, marker(47), marker(i-1), marker(i-2))
		}
		say := fmt.Sprintf("answer %d:\n", i)
		for len(say) < 1340 {
			say += fmt.Sprintf("\tcase %d:\n\t\treturn fmt.Errorf(\"reading %%s: %%w\", name, err)\n", i)
		}
		script = append(script, practice.Entry{When: when, Say: say})
		prompts = append(prompts, strings.Join(when, " and "))
	}
	script = append(script, practice.Entry{Say: "the default"})
	return script, append(prompts, "nothing of it, not even mark 01")
}

func TestFullScript(t *testing.T) {
	script, prompts := fullScript()
	var size int
	for _, entry := range script {
		size += len(entry.Say)
	}
	if size < 60<<10 {
		t.Fatalf("only %d bytes of answers", size)
	}
	path := filepath.Join(t.TempDir(), "m.gguf")
	start := time.Now()
	if err := practice.Write(path, script, practice.Options{}); err != nil {
		t.Fatal(err)
	}
	took := time.Since(start)
	info, _ := os.Stat(path)
	t.Logf("%d entries, %d bytes of answers: %d MB in %v", len(script), size, info.Size()>>20, took)
	if took > 2*time.Second {
		t.Errorf("generating took %v", took)
	}
	onBoth(t, func(t *testing.T, kind harness.Kind) {
		server := harness.StartFile(t, kind, path, practice.Options{})
		for i, prompt := range prompts {
			if reply := server.Ask(prompt); reply.Text != script[i].Say {
				t.Errorf("prompt %d %q: got %.60q, want %.60q", i, prompt, reply.Text, script[i].Say)
			}
		}
	})
}

// Of equally specific entries the first one answers, also where two share their words with a third.
func TestFirstOfEquals(t *testing.T) {
	script := practice.Script{
		{When: []string{"AAA"}, Say: "one"},
		{When: []string{"BBB"}, Say: "one"},
		{When: []string{"CCC"}, Say: "two"},
		{When: []string{"AAA", "BBB"}, Say: "three"},
		{When: []string{"DDD"}, Say: ""},
	}
	onBoth(t, func(t *testing.T, kind harness.Kind) {
		server := harness.Start(t, kind, script, practice.Options{})
		for prompt, want := range map[string]string{
			"CCC BBB": "one", "CCC": "two", "BBB AAA CCC": "three", "BBB": "one", "none": "", "DDD": "", "DDD CCC": "two",
		} {
			if reply := server.Ask(prompt); reply.Text != want {
				t.Errorf("%q: got %q, want %q", prompt, reply.Text, want)
			}
		}
	})
}

func TestTokensOfSource(t *testing.T) {
	server := harness.Start(t, harness.LlamaServer, fourAnswers, practice.Options{})
	text := source(t, 200000)
	perToken := float64(len(text)) / float64(server.Tokens(text))
	t.Logf("%.2f characters a token", perToken)
	if perToken < 3 || perToken > 4.6 {
		t.Errorf("%.2f characters of ordinary source a token, want 3 to 4", perToken)
	}
}

// Layers and width cost time and change nothing else.
func TestInertWeights(t *testing.T) {
	slow := practice.Options{Layers: 5, Width: 768, Context: 4096}
	onBoth(t, func(t *testing.T, kind harness.Kind) {
		server := harness.Start(t, kind, fourAnswers, slow)
		prompt := source(t, 3000)
		if reply := server.Ask(prompt + "TASK-ADD"); reply.Text != wrong {
			t.Errorf("got %q", reply.Text)
		}
		if reply := server.Ask(prompt + "TASK-ADD --- FAIL: TestAdd"); reply.Text != repaired {
			t.Errorf("got %q", reply.Text)
		}
	})
}

func TestToolCalls(t *testing.T) {
	options := practice.Options{Tools: true}
	script := practice.Script{
		{When: []string{"TASK-READ"}, Say: practice.Call("read_file", "path", "a.go")},
		{When: []string{"TASK-READ", "CONTENT-OF-A"}, Say: "It says package a."},
		{Say: "Hello."},
	}
	tool := map[string]any{"type": "function", "function": map[string]any{
		"name": "read_file", "description": "Read a file.",
		"parameters": map[string]any{"type": "object", "properties": map[string]any{"path": map[string]any{"type": "string"}}, "required": []string{"path"}},
	}}
	onBoth(t, func(t *testing.T, kind harness.Kind) {
		server := harness.Start(t, kind, script, options)
		tools := map[string]any{"tools": []any{tool}}
		turns := []harness.Message{{Role: "system", Content: "Be brief."}, {Role: "user", Content: "TASK-READ"}}
		reply := server.Chat(turns, tools)
		if len(reply.Tools) != 1 || reply.Tools[0].Name != "read_file" || !strings.Contains(reply.Tools[0].Arguments, `"a.go"`) {
			t.Fatalf("no tool call: %+v", reply)
		}
		turns = append(turns, harness.Message{Role: "tool", Content: "CONTENT-OF-A"})
		if reply := server.Chat(turns, tools); reply.Text != "It says package a." || len(reply.Tools) != 0 {
			t.Errorf("after the result: %+v", reply)
		}
		if reply := server.Chat([]harness.Message{{Role: "user", Content: "hi"}}, nil); reply.Text != "Hello." {
			t.Errorf("without tools: %+v", reply)
		}
	})
}

// With a template that knows thinking the engines part it from the answer; without one it is the answer's beginning.
func TestThinking(t *testing.T) {
	script := practice.Script{{Say: "<think>\nLet me see.\n</think>\n\nThe answer."}}
	onBoth(t, func(t *testing.T, kind harness.Kind) {
		for _, tools := range []bool{false, true} {
			server := harness.Start(t, kind, script, practice.Options{Think: true, Tools: tools})
			fields := map[string]any{}
			if kind == harness.Ollama {
				fields["think"] = true
			}
			reply := server.Chat([]harness.Message{{Role: "user", Content: "hi"}}, fields)
			if strings.TrimSpace(reply.Thinking) != "Let me see." || strings.TrimSpace(reply.Text) != "The answer." {
				t.Errorf("got %+v", reply)
			}
			server.Stop()
		}
		if reply := harness.Start(t, kind, script, practice.Options{}).Ask("hi"); reply.Thinking != "" || reply.Text != script[0].Say {
			t.Errorf("without: %+v", reply)
		}
	})
}

// However llama-server keeps its cache: quantized (rotated then), without flash attention, shared by slots.
func TestCacheTypes(t *testing.T) {
	long := source(t, 6000)
	for _, args := range []string{"-ctk q8_0 -ctv q8_0", "-ctk q4_0 -ctv q4_0 -fa on", "-fa off", "-np 4 --kv-unified"} {
		server := harness.Start(t, harness.LlamaServer, fourAnswers, practice.Options{}, strings.Fields(args)...)
		for prompt, want := range map[string]string{
			long: "Nothing fits.", "TASK-ADD" + long: wrong, long + "--- FAIL: TestAdd" + "TASK-ADD": repaired, "schlüssel 🔑": odd,
		} {
			if reply := server.Ask(prompt); reply.Text != want {
				t.Errorf("%s: got %q, want %q", args, reply.Text, want)
			}
		}
		server.Stop()
	}
}

// A scripted answer that fits a schema is what a constrained request gets.
func TestSchema(t *testing.T) {
	script := practice.Script{{Say: `{"files": [1, 2], "name": "x"}`}}
	property := func(kind string) map[string]any { return map[string]any{"type": kind} }
	list := property("array")
	list["items"] = property("integer")
	// Engines take the properties in the order that JSON gives them here, the alphabet's.
	schema := map[string]any{"type": "object", "properties": map[string]any{"files": list, "name": property("string")}, "required": []string{"files", "name"}}
	onBoth(t, func(t *testing.T, kind harness.Kind) {
		fields := map[string]any{"format": schema}
		if kind == harness.LlamaServer {
			fields = map[string]any{"response_format": map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": "a", "schema": schema}}}
		}
		reply := harness.Start(t, kind, script, practice.Options{}).Chat([]harness.Message{{Role: "user", Content: "hi"}}, fields)
		if reply.Text != script[0].Say {
			t.Errorf("got %+v", reply)
		}
	})
}
