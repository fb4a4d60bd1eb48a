//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"localllm/delegate"
	"localllm/internal/practice"
	"localllm/test/harness"
)

func TestMain(m *testing.M) {
	// Each test has a home of its own, and a verify that compiles would build the standard library anew in each.
	if dir, err := os.UserCacheDir(); err == nil && os.Getenv("GOCACHE") == "" {
		_ = os.Setenv("GOCACHE", filepath.Join(dir, "go-build"))
	}
	os.Exit(harness.Run(m))
}

// machine is one user's machine: a home, a project, an engine with a scripted model.
type machine struct {
	t       *testing.T
	env     []string
	project string
	enable  []string // arguments that enable the scripted model
}

func newMachine(t *testing.T, kind harness.Kind, script practice.Script) *machine {
	t.Helper()
	return machineWith(t, kind, script, practice.Options{})
}

// toolMachine is a machine whose model knows tools.
func toolMachine(t *testing.T, kind harness.Kind, script practice.Script) *machine {
	t.Helper()
	return machineWith(t, kind, script, practice.Options{Tools: true})
}

func machineWith(t *testing.T, kind harness.Kind, script practice.Script, options practice.Options) *machine {
	t.Helper()
	m := &machine{t: t, project: t.TempDir()}
	switch kind {
	case harness.Ollama: // adopted: it ran before us
		s := harness.Start(t, kind, script, options)
		m.env = harness.Env(t, harness.Home(t), "OLLAMA_HOST="+s.URL)
		m.enable = []string{"enable", "--engine", "ollama", "--model", s.Model}
	default:
		m.env = harness.Env(t, harness.Home(t))
		m.enable = []string{"enable", "--engine", "llama-server", "--model", harness.Model(t, script, options)}
	}
	m.enable = append(m.enable, "--context", "8192", "--while-pid", strconv.Itoa(os.Getpid()))
	m.ok(m.enable...)
	t.Cleanup(func() { m.ok("disable", "--while-pid", strconv.Itoa(os.Getpid())) })
	return m
}

// run calls the program and returns its output and exit code.
func (m *machine) run(args ...string) (stdout, stderr string, code int) {
	m.t.Helper()
	cmd := exec.Command(harness.Binary(m.t), args...)
	cmd.Env, cmd.Dir = m.env, m.project
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !asExit(err, &exit) {
		m.t.Fatalf("localllm %q: %v", args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func (m *machine) ok(args ...string) string {
	m.t.Helper()
	out, errs, code := m.run(args...)
	if code != 0 {
		m.t.Fatalf("localllm %q: exit %d\n%s%s", args, code, out, errs)
	}
	return out
}

// delegate runs one task given as the tool's JSON.
func (m *machine) delegate(t delegate.Task) (delegate.Result, int) {
	m.t.Helper()
	raw, err := json.Marshal(t)
	if err != nil {
		m.t.Fatal(err)
	}
	file := filepath.Join(m.t.TempDir(), "task.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		m.t.Fatal(err)
	}
	out, errs, code := m.run("delegate", "--input", file, "--json")
	var res delegate.Result
	if err := json.Unmarshal([]byte(out), &res); err != nil {
		m.t.Fatalf("no result: exit %d\n%s%s", code, out, errs)
	}
	return res, code
}

func (m *machine) write(files map[string]string) {
	m.t.Helper()
	for name, text := range files {
		path := filepath.Join(m.project, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			m.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			m.t.Fatal(err)
		}
	}
}

// tree is every file of the project with its text, mode and time, the delegation log left out.
func (m *machine) tree() map[string]string {
	m.t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(m.project, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && d.Name() == ".claude" {
				return filepath.SkipDir
			}
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(m.project, path)
		found[rel] = info.Mode().String() + " " + info.ModTime().String() + "\n" + string(text)
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return found
}
