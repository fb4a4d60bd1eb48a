//go:build unix

package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"localllm/delegate"
	"localllm/internal/practice"
	"localllm/internal/tasks"
	"localllm/test/harness"
)

var backgroundScript = practice.Script{
	{Say: "no marker was found\n"},
	{When: []string{"TASK-NOTES"}, Say: "notes.txt\n```text\ndone\n```\n"},
	{When: []string{"TASK-ENDLESS"}, Say: strings.Repeat("words without end and without sense\n", 400)},
}

// gated is a task whose verify, once the file is written, waits for a file outside of the project.
func (m *machine) gated(gate string) map[string]any {
	return map[string]any{
		"action": "delegate", "task": "TASK-NOTES write it", "output_files": []any{map[string]any{"path": "notes.txt"}},
		"verify": "grep -q done notes.txt && until test -f '" + gate + "'; do sleep 0.1; done",
	}
}

func open(t *testing.T, gate string) {
	t.Helper()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func with(in map[string]any, name string, value any) map[string]any {
	out := maps.Clone(in)
	out[name] = value
	return out
}

// written waits until a delegation in the project has put its file in place.
func (m *machine) written(project string) {
	m.t.Helper()
	harness.Until(m.t, "the file is in place", 60*time.Second, func() bool {
		text, _ := os.ReadFile(filepath.Join(project, "notes.txt"))
		return string(text) == "done\n"
	})
}

// begin starts a background task from the command line.
func (m *machine) begin(request map[string]any) (id string) {
	m.t.Helper()
	request = with(request, "background", true)
	delete(request, "action")
	out, errs, code := m.input(request, "delegate", "--json")
	var st struct {
		ID     string `json:"task_id"`
		Status string `json:"status"`
	}
	if err := json.Unmarshal([]byte(out), &st); err != nil || code != 0 || st.ID == "" || st.Status != tasks.Running {
		m.t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	return st.ID
}

// task is how far a task is, from another process.
func (m *machine) task(verb, id string) tasks.State {
	m.t.Helper()
	out, errs, code := m.run("tasks", verb, id, "--json")
	var st tasks.State
	if err := json.Unmarshal([]byte(out), &st); err != nil {
		m.t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	return st
}

func (m *machine) result(st tasks.State) delegate.Result {
	m.t.Helper()
	var res delegate.Result
	if err := json.Unmarshal(st.Result, &res); err != nil {
		m.t.Fatalf("%+v: %v", st, err)
	}
	return res
}

// TestABackgroundTaskOutlivesItsClient: the server that began it is killed, the engine stays for the task, another
// process collects the result, and then nothing is left.
func TestABackgroundTaskOutlivesItsClient(t *testing.T) {
	m := &machine{t: t, project: t.TempDir(), env: harness.Env(t, harness.Home(t))}
	m.write(map[string]string{"notes.txt": "before\n"})
	gate := filepath.Join(t.TempDir(), "gate")
	a := m.agent(m.project)
	a.call(true, map[string]any{"action": "enable", "model": harness.Model(t, backgroundScript, practice.Options{}), "engine": "llama-server", "context": 8192}, &struct{}{})
	var begun tasks.State
	a.call(true, with(m.gated(gate), "background", true), &begun)
	if begun.ID == "" {
		t.Fatal("no task_id")
	}
	a.kill() // at once: the task has hardly begun
	m.written(m.project)
	if st := m.task("show", begun.ID); st.State != tasks.Running || st.Phase == "" {
		t.Fatalf("%+v", st)
	}
	open(t, gate)
	st := m.task("wait", begun.ID)
	if res := m.result(st); st.State != tasks.Done || st.Exit != 0 || res.Status != delegate.Proven {
		t.Errorf("%+v %+v", st, res)
	}
	mark := m.mark()
	harness.Until(t, "nothing is left", 30*time.Second, func() bool { return len(harness.Processes(mark)) == 0 })
}

func (m *machine) mark() string {
	for _, entry := range m.env {
		if strings.HasPrefix(entry, "LOCALLLM_TEST_MARK=") {
			return entry
		}
	}
	m.t.Fatal("the environment has no mark")
	return ""
}

// TestBackgroundTasksThatDoNotEndWell: killed, cancelled while it generates and while it verifies, out of time.
func TestBackgroundTasksThatDoNotEndWell(t *testing.T) {
	m := &machine{t: t, project: t.TempDir(), env: harness.Env(t, harness.Home(t))}
	model := harness.Model(t, backgroundScript, practice.Options{Layers: 8, Width: 1024})
	self := strconv.Itoa(os.Getpid())
	m.ok("enable", "--engine", "llama-server", "--model", model, "--context", "16384", "--while-pid", self)
	t.Cleanup(func() { m.ok("disable", "--while-pid", self) })
	m.write(map[string]string{"notes.txt": "before\n"})
	before := m.tree()
	gate := filepath.Join(t.TempDir(), "gate")

	t.Run("killed", func(t *testing.T) {
		id := m.begin(m.gated(gate))
		m.written(m.project)
		killed := time.Now()
		if err := syscall.Kill(m.runner(id), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		harness.Until(t, "the task has failed", 30*time.Second, func() bool { return m.task("show", id).State == tasks.Failed })
		t.Logf("failed %v after the kill", time.Since(killed).Round(time.Millisecond))
		if st := m.task("show", id); !strings.Contains(st.Error, "died") || st.Result != nil || st.Exit == 0 {
			t.Errorf("%+v", st)
		}
		if !maps.Equal(before, m.tree()) {
			t.Errorf("not put back: %v", m.tree())
		}
	})
	t.Run("cancelled while it generates", func(t *testing.T) {
		id := m.begin(map[string]any{"task": "TASK-ENDLESS write it", "output_files": []any{map[string]any{"path": "notes.txt"}}})
		harness.Until(t, "the engine works", 60*time.Second, func() bool { return m.working() == 1 })
		cancelled := time.Now()
		if st := m.task("cancel", id); st.State != tasks.Cancelled || m.result(st).Status != delegate.Cancelled {
			t.Errorf("%+v", st)
		}
		harness.Until(t, "the slot is free", 10*time.Second, func() bool { return m.working() == 0 })
		took := time.Since(cancelled)
		t.Logf("the slot was free %v after the cancel", took.Round(time.Millisecond))
		if took > 5*time.Second { // one second on a quiet machine
			t.Errorf("the slot was busy for %v", took)
		}
		if st := m.status(); st.Slots.Busy != 0 {
			t.Errorf("the place is still locked: %+v", st.Slots)
		}
	})
	t.Run("cancelled while it verifies", func(t *testing.T) {
		id := m.begin(m.gated(gate))
		m.written(m.project)
		if st := m.task("cancel", id); st.State != tasks.Cancelled {
			t.Errorf("%+v", st)
		}
		if !maps.Equal(before, m.tree()) {
			t.Errorf("not put back: %v", m.tree())
		}
	})
	t.Run("out of time", func(t *testing.T) {
		id := m.begin(with(m.gated(gate), "timeout_s", 5))
		st := m.task("wait", id)
		if res := m.result(st); res.Status != delegate.TimedOut || st.Exit != 3 {
			t.Errorf("%+v %+v", st, res)
		}
		if !maps.Equal(before, m.tree()) {
			t.Errorf("not put back: %v", m.tree())
		}
	})
}

// runner is the process that carries a task out.
func (m *machine) runner(id string) int {
	m.t.Helper()
	var progress struct {
		Runner struct {
			PID int `json:"pid"`
		} `json:"runner"`
	}
	raw, err := os.ReadFile(filepath.Join(m.home(), "state", "tasks", id, "progress.json"))
	if err == nil {
		err = json.Unmarshal(raw, &progress)
	}
	if err != nil || progress.Runner.PID < 2 {
		m.t.Fatalf("no runner: %s %v", raw, err)
	}
	return progress.Runner.PID
}

// TestACallThatShowsNothingBecomesATask: without a progress token the client would give up.
func TestACallThatShowsNothingBecomesATask(t *testing.T) {
	m := newMachine(t, harness.LlamaServer, backgroundScript)
	m.write(map[string]string{"notes.txt": "before\n"})
	gate := filepath.Join(t.TempDir(), "gate")
	a := m.agent(m.project, "LOCALLLM_ANSWER_WITHIN=1s")
	a.call(true, map[string]any{"action": "enable"}, &struct{}{})
	asked := time.Now()
	var begun struct {
		ID     string `json:"task_id"`
		Status string `json:"status"`
	}
	a.call(false, m.gated(gate), &begun)
	if took := time.Since(asked); begun.ID == "" || begun.Status != tasks.Running || took < time.Second {
		t.Fatalf("%+v after %v", begun, took)
	}
	// A wait that shows nothing is no longer than its client's patience either.
	asked = time.Now()
	a.call(false, map[string]any{"action": "status", "task_id": begun.ID, "wait_s": 3600}, &begun)
	if took := time.Since(asked); begun.Status != tasks.Running || took < time.Second || took > 30*time.Second {
		t.Fatalf("%+v after %v", begun, took)
	}
	open(t, gate)
	var res delegate.Result
	a.call(true, map[string]any{"action": "status", "task_id": begun.ID, "wait_s": 30}, &res)
	if res.Status != delegate.Proven || res.TaskID != begun.ID {
		t.Errorf("%+v", res)
	}
	// What is over in time comes back as the result itself.
	a = m.agent(m.project)
	a.call(false, map[string]any{"action": "delegate", "task": "TASK-NOTES what?", "task_type": "ask"}, &res)
	if res.Status != delegate.Answered {
		t.Errorf("%+v", res)
	}
	// What could not begin is told as it is to those who see progress: of a task they know nothing.
	var failed struct {
		Content []struct{ Text string }
	}
	raw := a.request("tools/call", map[string]any{"name": "local_llm", "arguments": map[string]any{"action": "delegate", "task": "x", "model": "nobody:1b"}})
	if err := json.Unmarshal(raw, &failed); err != nil || len(failed.Content) == 0 || !strings.HasPrefix(failed.Content[0].Text, "model nobody:1b is not the enabled one") {
		t.Errorf("%s, %v", raw, err)
	}
}
