package executor

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"localllm/delegate"
	"localllm/internal/containment"
	"localllm/internal/paths"
	"localllm/internal/workspace"
)

// The test binary is its own hidden command, which contains clients.
func TestMain(m *testing.M) {
	if exit, did := containment.Dispatch(os.Args[1:]); did {
		os.Exit(exit)
	}
	goleak.VerifyTestMain(m)
}

// install puts a program of the client's name into PATH.
func install(t *testing.T, name, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// work has the installed client do a task in dir, by the real change and journal.
func work(t *testing.T, ctx context.Context, dir string, task delegate.Task, e Endpoint, hide ...string) (delegate.WorkDone, delegate.Change, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	layout := paths.Layout{State: t.TempDir(), Run: t.TempDir()}
	tree, err := workspace.Open(layout, dir, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tree.Close() })
	outputs, err := tree.Admit(task.OutputFiles, nil)
	if err != nil {
		t.Fatal(err)
	}
	change, err := tree.Begin("d-test", outputs, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := Worker{Dir: dir, Layout: layout, Endpoint: e, Self: self, Hide: append(hide, layout.State, layout.Run)}
	done, err := w.Work(ctx, delegate.WorkOrder{Task: task, Change: change})
	for _, where := range []string{filepath.Join(layout.State, "executors"), filepath.Join(layout.Run, "scratch")} {
		if left, err := os.ReadDir(where); err != nil || len(left) > 0 {
			t.Errorf("the copy is left: %v, %v", left, err)
		}
	}
	return done, change, err
}

const says = `echo '{"type":"text","part":{"text":"thinking aloud"}}'; echo 'no event'; echo '{"type":"text","part":{"text":"the answer"}}'
echo '{"type":"step_finish","part":{"tokens":{"input":10,"output":3,"cache":{"read":90}}}}'
`

// A project is often opened through a link; and the client is often installed in a folder that is hidden from it.
func TestThroughLinksAndPastWhatIsHidden(t *testing.T) {
	dir, hidden := t.TempDir(), t.TempDir()
	write(t, dir, map[string]string{"a.txt": "old\n"})
	write(t, hidden, map[string]string{"secret": "hidden-text\n"})
	link := filepath.Join(t.TempDir(), "project")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	install(t, "opencode", "cat "+hidden+"/secret > b.txt 2>/dev/null; cat a.txt >> b.txt\n"+says)
	installed, err := exec.LookPath("opencode")
	if err != nil {
		t.Fatal(err)
	}
	done, _, err := work(t, t.Context(), link, delegate.Task{Task: "t", Executor: "opencode", OutputFiles: []delegate.OutputFile{{Path: "b.txt"}}}, Endpoint{URL: "http://127.0.0.1:1"}, hidden, filepath.Dir(installed))
	if err != nil || done.Unusable != "" {
		t.Fatal(done.Unusable, err)
	}
	want := "old\n"
	if strings.HasSuffix(done.Containment, "none around it") {
		want = "hidden-text\nold\n"
	}
	if got := read(t, filepath.Join(dir, "b.txt")); got != want {
		t.Errorf("%q under %q", got, done.Containment)
	}
}

func TestOnlyDeclaredFilesAreTakenOver(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.txt": "old\n", "b.txt": "b\n", ".env": "KEY=1\n", ".git/config": "x\n", "opencode.json": "{}", ".opencode/x.md": "x"})
	install(t, "opencode", `for f in .env .git opencode.json .opencode; do test -e $f && echo "$f was copied" >&2 && exit 9; done
cat a.txt > copy.txt; echo new > a.txt; echo changed > b.txt; mkdir deep; echo deep > deep/c.txt; rm -f nothing; ln -s /etc/passwd link
`+says)
	done, change, err := work(t, t.Context(), dir, delegate.Task{Task: "t", Executor: "opencode", OutputFiles: []delegate.OutputFile{{Path: "a.txt"}}, WriteRoots: []string{"deep"}}, Endpoint{URL: "http://127.0.0.1:1"})
	if err != nil || done.Unusable != "" {
		t.Fatal(done.Unusable, err)
	}
	if read(t, filepath.Join(dir, "a.txt")) != "new\n" || read(t, filepath.Join(dir, "deep", "c.txt")) != "deep\n" || read(t, filepath.Join(dir, "b.txt")) != "b\n" {
		t.Error("not what was declared was written")
	}
	for _, name := range []string{"copy.txt", "link"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s came over", name)
		}
	}
	if told := strings.Join(done.Warnings, "\n"); !strings.Contains(told, "b.txt") || !strings.Contains(told, "copy.txt") {
		t.Errorf("warnings %q", done.Warnings)
	}
	if done.Text != "the answer" || done.Tokens != (delegate.Tokens{Prompt: 100, Cached: 90, Generated: 3}) || done.Turns != 1 {
		t.Errorf("%+v", done)
	}
	if _, err := change.Undo(); err != nil || read(t, filepath.Join(dir, "a.txt")) != "old\n" {
		t.Error("not put back", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "deep")); err == nil {
		t.Error("a new folder is left")
	}
}

func TestAClientThatFailsCountsForNothing(t *testing.T) {
	dir := t.TempDir()
	task := delegate.Task{Task: "t", Executor: "opencode", OutputFiles: []delegate.OutputFile{{Path: "a.txt"}}}
	for script, want := range map[string]string{
		"echo x > a.txt; echo broken >&2; exit 3":                                                   "exit 3: broken",
		`echo '{"type":"error","error":{"name":"APIError","data":{"message":"no model"}}}'; exit 1`: "APIError: no model",
		"echo x > b.txt": "none of the declared files",
	} {
		install(t, "opencode", script)
		done, _, err := work(t, t.Context(), dir, task, Endpoint{})
		if err != nil || !strings.Contains(done.Unusable, want) {
			t.Errorf("%q: %q, %v", script, done.Unusable, err)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%q left %v", script, left)
		}
	}
}

func TestTheEnvironmentIsAnAllowList(t *testing.T) {
	t.Setenv("SECRET_TOKEN", "s3cret")
	t.Setenv("OPENAI_API_KEY", "s3cret")
	t.Setenv("HTTPS_PROXY", "http://me:s3cret@proxy:1")
	install(t, "opencode", `env > a.txt`)
	for _, loopback := range []bool{true, false} {
		dir := t.TempDir()
		_, _, err := work(t, t.Context(), dir, delegate.Task{Task: "t", Executor: "opencode", OutputFiles: []delegate.OutputFile{{Path: "a.txt"}}}, Endpoint{Key: "endpoint-key", Loopback: loopback})
		if err != nil {
			t.Fatal(err)
		}
		env := read(t, filepath.Join(dir, "a.txt"))
		if strings.Contains(env, "s3cret") || !strings.Contains(env, keyVariable+"=endpoint-key") || strings.Contains(env, "HOME="+os.Getenv("HOME")+"\n") {
			t.Errorf("loopback %v:\n%s", loopback, env)
		}
		if strings.Contains(env, "HTTPS_PROXY="+nowhere) != loopback {
			t.Errorf("loopback %v and the proxy:\n%s", loopback, env)
		}
	}
}

func TestACancelledClientIsGone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	install(t, "opencode", "sleep 60")
	if _, _, err := work(t, ctx, t.TempDir(), delegate.Task{Task: "t", Executor: "opencode"}, Endpoint{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestWhatIsNotGrantedIsDenied(t *testing.T) {
	r := &run{Worker: &Worker{Dir: "/p"}, task: delegate.Task{OutputFiles: []delegate.OutputFile{{Path: "./a.go"}}, ReadRoots: []string{"/ref"}, WriteRoots: []string{"gen", "/p/abs", "/elsewhere", "../up"}}, copy: copied{dir: "/tmp/c"}}
	raw, err := json.Marshal(r.permissions())
	if err != nil {
		t.Fatal(err)
	}
	want := `{"*":"deny","read":"allow","glob":"allow","grep":"allow","list":"allow","todowrite":"allow","todoread":"allow",` +
		`"edit":{"*":"deny","a.go":"allow","tmp/c/a.go":"allow","gen/*":"allow","tmp/c/gen/*":"allow","abs/*":"allow","tmp/c/abs/*":"allow"},"bash":"deny","external_directory":{"*":"deny","/ref/*":"allow"}}`
	if string(raw) != want {
		t.Errorf("got\n%s\nwant\n%s", raw, want)
	}
	r.task.AllowShell = true
	if raw, _ = json.Marshal(r.permissions()); !strings.Contains(string(raw), `"bash":"allow"`) {
		t.Errorf("%s", raw)
	}
}

// Codex' own sandbox fails within ours, and must not be off without ours.
func TestCodexIsAlwaysInASandbox(t *testing.T) {
	for name, want := range map[string]string{"": "workspace-write", "none": "workspace-write", "landlock": "danger-full-access"} {
		r := &run{Worker: &Worker{}, task: delegate.Task{Executor: "codex"}, client: codex{}, home: t.TempDir(), box: containment.Box{Name: name}}
		if _, _, err := (codex{}).prepare(r, "t"); err != nil {
			t.Fatal(err)
		}
		if conf := read(t, filepath.Join(r.home, ".codex", "config.toml")); !strings.Contains(conf, `sandbox_mode = "`+want+`"`) {
			t.Errorf("within %q:\n%s", name, conf)
		}
		if told := r.held(); strings.Contains(told, "codex's own") != (want == "workspace-write") {
			t.Errorf("within %q: %s", name, told)
		}
	}
}

func TestCheck(t *testing.T) {
	install(t, "opencode", "exit 0")
	t.Setenv("PATH", strings.Split(os.Getenv("PATH"), string(os.PathListSeparator))[0])
	var field *delegate.FieldError
	if err := Check(delegate.Task{Executor: "vim"}, false); !errors.As(err, &field) || field.Field != "executor" {
		t.Error(err)
	}
	if err := Check(delegate.Task{Executor: "opencode", Mode: "files"}, false); !errors.As(err, &field) {
		t.Error(err)
	}
	if err := Check(delegate.Task{Executor: "codex"}, true); err == nil || !strings.Contains(err.Error(), "not installed") {
		t.Error(err)
	}
	if err := Check(delegate.Task{Executor: "codex"}, false); !errors.As(err, &field) || !strings.Contains(err.Error(), "commands") {
		t.Error(err)
	}
	if err := errors.Join(Check(delegate.Task{Executor: "opencode"}, false), Check(delegate.Task{}, false)); err != nil {
		t.Error(err)
	}
}

// What clients print is foreign text.
func FuzzRead(f *testing.F) {
	f.Add([]byte(strings.ReplaceAll(says, "echo ", "")))
	f.Add([]byte(`{"result":"x","is_error":true,"num_turns":2,"permission_denials":[{"tool_name":"Write","tool_input":{"file_path":"/x"}}]}`))
	f.Add([]byte(`{"type":"item.completed","item":{"type":"agent_message","text":"x"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, c := range []client{opencode{}, claude{}, codex{}} {
			said := c.read(nil, data)
			if len(said.text) > 3*len(data) || slices.Contains(said.denied, "") {
				t.Errorf("%T: %+v", c, said)
			}
		}
	})
}
