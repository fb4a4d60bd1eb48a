package benchtasks

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"localllm/delegate"
	"localllm/test/harness/engines"
)

// verify runs the task's command over its files and one answer ("" is none), and tells whether it is green.
func verify(t *testing.T, task Task, answer string) (green bool, output string) {
	t.Helper()
	dir := t.TempDir()
	if err := task.Write(dir); err != nil {
		t.Fatal(err)
	}
	if answer != "" {
		if err := os.WriteFile(filepath.Join(dir, task.Output), []byte(answer), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), task.Verify[0], task.Verify[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOWORK=off")
	text, err := cmd.CombinedOutput()
	return err == nil, string(text)
}

// Each task is red before, green with a right answer, and red with a plausible wrong one.
func TestEachTaskTellsRightFromWrong(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	path, err := engines.Path(t.Context(), "python3", "sqlite3")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", path)
	languages := map[string]int{}
	for _, task := range all {
		languages[task.Language]++
		t.Run(task.Name, func(t *testing.T) {
			if missing := task.Missing(); len(missing) > 0 {
				t.Fatal(task.Skipped(missing).Reason)
			}
			var known struct{ Solution, Wrong string }
			if _, err := toml.DecodeFile(filepath.Join("testdata", task.Name+".toml"), &known); err != nil {
				t.Fatal(err)
			}
			if known.Solution == "" || known.Wrong == "" || known.Wrong == known.Solution {
				t.Fatal("a solution and another, wrong one are needed")
			}
			if green, _ := verify(t, task, ""); green {
				t.Error("green before anything was done")
			}
			if green, text := verify(t, task, known.Solution); !green {
				t.Errorf("red with the solution:\n%s", text)
			}
			if green, _ := verify(t, task, known.Wrong); green {
				t.Error("green with a wrong solution")
			}
		})
	}
	for _, want := range []string{"Go", "Python", "JavaScript", "shell", "SQL", "configuration"} {
		if languages[want] == 0 {
			t.Errorf("no task in %s", want)
		}
	}
	if len(all) < 12 {
		t.Errorf("%d tasks", len(all))
	}
}

func TestDelegationShowsEverythingAndProtectsTheChecks(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range all {
		d, err := task.Delegation()
		if err != nil {
			t.Fatal(err)
		}
		for name := range task.Files {
			shown, protected := slices.Contains(d.ContextFiles, name), slices.Contains(d.Protect, name)
			if shown == (name == task.Output || name == "go.mod") || protected == (name == task.Output) {
				t.Errorf("%s: %s shown %t, protected %t", task.Name, name, shown, protected)
			}
		}
		if len(d.OutputFiles) != 1 || d.OutputFiles[0].Path != task.Output || !bytes.HasPrefix(d.Verify, []byte(`["`)) {
			t.Errorf("%s: %+v", task.Name, d)
		}
	}
}

func TestReportCountsWhatWasRun(t *testing.T) {
	task := Task{Name: "a", Language: "Go"}
	r := Report{Model: "m", Engine: "ollama", Context: 8192}
	r.Add(task.Outcome(&delegate.Result{Status: delegate.Proven, Attempts: make([]delegate.Attempt, 1), Seconds: 2, TokensPerSecond: 10}))
	r.Add(task.Outcome(&delegate.Result{Status: delegate.Proven, Attempts: make([]delegate.Attempt, 2), Seconds: 4, TokensPerSecond: 30}))
	r.Add(task.Outcome(&delegate.Result{Status: delegate.Unproven, Attempts: make([]delegate.Attempt, 1), Seconds: 6, TokensPerSecond: 20}))
	r.Add(task.Outcome(&delegate.Result{Status: delegate.Failed, Attempts: make([]delegate.Attempt, 3), Seconds: 8, TokensPerSecond: 20}))
	r.Add(Task{Name: "b"}.Skipped([]string{"node"}))
	if r.Tasks != 4 || r.NotRun != 1 || r.Solved != 2 || r.FirstTry != 1 || r.Seconds != 20 || r.SecondsMedian != 5 || r.TokensPerSecond != 20 {
		t.Errorf("%+v", r)
	}
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"solved 2 of 4, 1 at the first try", "not installed: node", "1 not run", "8192"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}
