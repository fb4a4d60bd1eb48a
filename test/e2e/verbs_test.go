//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"localllm/internal/practice"
	"localllm/test/harness"
)

var verbScript = practice.Script{
	{Say: "no marker was found\n"},
	{When: []string{"TASK-ASK"}, Say: "It adds two numbers.\n"},
	{When: []string{"TASK-ASK", "MARK-B"}, Say: "Both files were read.\n"},
	{When: []string{"PIPED-TEXT"}, Say: "A short text.\n"},
	{When: []string{"TASK-WRITE"}, Say: file("add.go", goodAdd)},
	{When: []string{"TASK-PRINT"}, Say: "```go\n" + goodAdd + "```\n"},
}

// enveloped is what a verb prints with --json.
type enveloped struct {
	OK      bool   `json:"ok"`
	Command string `json:"command"`
	Model   string `json:"model"`
	Content string `json:"content"`
	Target  string `json:"target"`
	Status  string `json:"status"`
	Usage   struct {
		Prompt, Cached, Generated int
	} `json:"usage"`
	Error *struct{ Type, Message string } `json:"error"`
}

// verb calls one of the verbs with --json.
func (m *machine) verb(stdin string, args ...string) (enveloped, int) {
	m.t.Helper()
	cmd := exec.Command(harness.Binary(m.t), append(args, "--json")...)
	cmd.Env, cmd.Dir, cmd.Stdin = m.env, m.project, strings.NewReader(stdin)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, _ := cmd.Output()
	var e enveloped
	if err := json.Unmarshal(out, &e); err != nil || e.Command != args[0] {
		m.t.Fatalf("%q: %v\n%s%s", args, err, out, errs.Bytes())
	}
	return e, cmd.ProcessState.ExitCode()
}

func TestVerbsWithoutAnEngine(t *testing.T) {
	m := &machine{t: t, project: t.TempDir(), env: harness.Env(t, harness.Home(t))}
	m.write(map[string]string{"there.go": "package demo\n"})
	for _, c := range []struct {
		args []string
		kind string
		code int
		says string
	}{
		{[]string{"ask", "TASK-ASK"}, "not_enabled", 12, "enable"},
		{[]string{"ask"}, "usage", 2, "question"},
		{[]string{"summarize"}, "usage", 2, "standard input is empty"},
		{[]string{"write", "--target", "x.go"}, "usage", 2, "--spec"},
		{[]string{"write", "--spec", "x"}, "usage", 2, "--target"},
		{[]string{"write", "--spec", "x", "--target", "there.go"}, "usage", 2, "--force"},
		{[]string{"ask", "TASK-ASK", "--profile", "nobody"}, "usage", 2, "nobody"},
	} {
		e, code := m.verb("", c.args...)
		if e.OK || e.Error == nil || e.Error.Type != c.kind || code != c.code || !strings.Contains(e.Error.Message, c.says) {
			t.Errorf("%q: exit %d, %+v %+v", c.args, code, e, e.Error)
		}
	}
}

func TestVerbsOnTheRealEngine(t *testing.T) {
	m := newMachine(t, harness.LlamaServer, verbScript)
	m.write(map[string]string{"src/a.go": "package demo\n", "src/b.go": "package demo\n\n// MARK-B\n", "src/.env": "KEY=MARK-SECRET\n", "huge.txt": strings.Repeat("too much to read ", 1<<17)})

	// The same folder is the same prompt, to the byte: the second time all but its end comes from the cache.
	first, code := m.verb("", "ask", "TASK-ASK what?", "--paths", "src")
	again, _ := m.verb("", "ask", "--question", "TASK-ASK what?", "--paths", "src/*.go")
	if !first.OK || code != 0 || first.Content != "Both files were read." || first.Usage.Prompt == 0 || first.Usage.Generated == 0 || first.Model == "" || first.Status != "answered" {
		t.Errorf("exit %d, %+v", code, first)
	}
	if again.Usage.Prompt != first.Usage.Prompt || again.Usage.Cached < again.Usage.Prompt-16 {
		t.Errorf("a glob of the same files: %+v, before it %+v", again.Usage, first.Usage)
	}
	if e, code := m.verb("", "ask", "TASK-ASK", "--paths", "huge.txt"); e.OK || e.Error == nil || e.Error.Type != "refused" || code != 3 {
		t.Errorf("a file over the limit: exit %d, %+v %+v", code, e, e.Error)
	}
	if e, code := m.verb("", "ask", "TASK-ASK", "--paths", "nowhere"); e.OK || e.Error == nil || code != 3 || !strings.Contains(e.Error.Message, "nowhere") {
		t.Errorf("a path that leads nowhere: exit %d, %+v %+v", code, e, e.Error)
	}
	if e, _ := m.verb("PIPED-TEXT and more of it\n", "summarize"); !e.OK || e.Content != "A short text." {
		t.Errorf("%+v %+v", e, e.Error)
	}
	m.verbWrites(t)
}

func (m *machine) verbWrites(t *testing.T) {
	target := filepath.Join(m.project, "sub", "add.go")
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		t.Fatal(err)
	}
	if out := m.ok("write", "--spec", "TASK-PRINT it", "--stdout"); out != goodAdd {
		t.Errorf("--stdout printed %q", out)
	}
	if out := m.ok("write", "--spec", "TASK-PRINT it", "--stdout", "--no-strip-fences"); out != "```go\n"+goodAdd+"```\n" {
		t.Errorf("--no-strip-fences printed %q", out)
	}
	if _, err := os.Stat(target); err == nil {
		t.Fatal("--stdout wrote a file")
	}
	e, code := m.verb("", "write", "--spec", "TASK-WRITE it", "--target", "add.go", "--target-root", "sub")
	if text, err := os.ReadFile(target); !e.OK || code != 0 || e.Target != filepath.Join("sub", "add.go") || err != nil || string(text) != goodAdd {
		t.Errorf("exit %d, %+v %+v, %q %v", code, e, e.Error, text, err)
	}
	if err := os.WriteFile(target, []byte("package old\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if e, code := m.verb("", "write", "--spec", "TASK-WRITE it", "--target", "add.go", "--target-root", "sub"); e.OK || code != 2 {
		t.Errorf("a target that exists was replaced: %+v", e)
	}
	out := m.ok("write", "--spec", "TASK-WRITE it", "--target", "add.go", "--target-root", "sub", "--force", "--diff")
	if !strings.Contains(out, "-package old") || !strings.Contains(out, "+package demo") {
		t.Errorf("--diff printed\n%s", out)
	}
	spec := filepath.Join(m.t.TempDir(), "spec.md")
	if err := os.WriteFile(spec, []byte("TASK-PRINT it"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := m.ok("write", "--spec", "@"+spec, "--stdout"); out != goodAdd {
		t.Errorf("@FILE printed %q", out)
	}
}
