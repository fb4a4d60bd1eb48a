//go:build unix

package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"localllm/delegate"
	"localllm/internal/practice"
	"localllm/internal/tasks"
	"localllm/stats"
	"localllm/test/harness"
)

var dayScript = append(practice.Script{
	{When: []string{"TASK-NOTES"}, Say: "notes.txt\n```text\ndone\n```\n"},
	{When: []string{"TASK-TIDY"}, Say: "tidy.txt\n```text\ntidy\n```\n"},
	{When: []string{"TASK-SLOW"}, Say: "slow.txt\n```text\nslow\n```\n"},
}, script...)

// day is what two people see of one machine.
type day struct {
	*machine
	want map[string]map[string]int // project → status → how often
	done int
}

// TestADayInTheLife is two sessions in two projects with one engine, from the first enable to the page at the end, and
// all that goes wrong on the way.
func TestADayInTheLife(t *testing.T) {
	started := time.Now()
	m := &machine{t: t, project: t.TempDir(), env: harness.Env(t, harness.Home(t), "LOCALLLM_ANSWER_WITHIN=20s")}
	model := harness.Model(t, dayScript, practice.Options{})
	other := t.TempDir()
	d := &day{machine: m, want: map[string]map[string]int{m.project: {}, other: {}}}
	m.write(map[string]string{"go.mod": "module demo\n\ngo 1.21\n", "add_test.go": addTest, "long_file.go": longFile})
	if err := os.WriteFile(filepath.Join(other, "README.md"), []byte("# Other\n"), 0o644); err != nil {
		t.Fatal(err)
	}

	// Morning: the first session starts the engine, the second one joins.
	ann, bob := m.agent(m.project), m.agent(other)
	enable := map[string]any{"action": "enable", "model": model, "engine": "llama-server", "context": 8192} // one slot: a proof must not keep the other session waiting
	var cold, joined enabledSeen
	ann.call(true, enable, &cold)
	bob.call(true, enable, &joined)
	if cold.Started != "cold" || joined.Started != "joined" || joined.Sessions != 2 || joined.Endpoint != cold.Endpoint {
		t.Fatalf("%+v\n%+v", cold, joined)
	}
	d.morning(t, ann, bob, other)
	d.crashInTheMiddleOfAWrite(t)
	d.killedClient(t, ann, bob, other)
	d.killedKeeper(t, bob, other, enable)
	d.evening(t, bob, other)
	t.Logf("%d delegations, %.1f s", d.done, time.Since(started).Seconds())
	if d.done != 12 {
		t.Errorf("%d delegations, want 12", d.done)
	}
}

// delegated is one delegation by a session, and what has to come of it.
func (d *day) delegated(t *testing.T, a *agent, project string, patient bool, want string, task map[string]any) delegate.Result {
	t.Helper()
	var res delegate.Result
	a.call(patient, with(task, "action", "delegate"), &res)
	if res.Status != want || res.OK != delegate.OK(want) {
		t.Fatalf("%v: %s, want %s: %s %+v", task["task"], res.Status, want, res.Reason, res.Attempts)
	}
	d.count(project, want)
	return res
}

func (d *day) count(project, status string) {
	d.want[project][status]++
	d.done++
}

func writes(task, path, verify string) map[string]any {
	in := map[string]any{"task": task, "output_files": []any{map[string]any{"path": path}}}
	if verify != "" {
		in["verify"] = verify
	}
	return in
}

// morning is the first seven, one of every kind of outcome.
func (d *day) morning(t *testing.T, ann, bob *agent, other string) {
	before := d.tree()
	failed := d.delegated(t, ann, d.project, true, delegate.Failed, with(writes("TASK-WRONG write Add", "add.go", "go test ./..."), "attempts", 1))
	if !maps.Equal(before, d.tree()) || failed.Verify.Exit == 0 {
		t.Errorf("not put back: %+v", failed)
	}
	res := d.delegated(t, ann, d.project, true, delegate.Proven, with(writes("TASK-REPAIR write Add", "add.go", "go test ./..."), "context_files", []string{"add_test.go"}))
	if len(res.Attempts) != 2 || res.Verify.BaselineExit == 0 || res.Verify.Exit != 0 || d.tree()["add.go"] == "" {
		t.Errorf("%+v", res)
	}
	d.delegated(t, bob, other, true, delegate.Unverified, writes("TASK-TIDY write it", "tidy.txt", ""))
	d.delegated(t, bob, other, true, delegate.Refused, writes("TASK-PLAIN write it", "../escape.txt", ""))
	if _, err := os.Lstat(filepath.Join(filepath.Dir(other), "escape.txt")); err == nil {
		t.Error("a file outside of the project was written")
	}
	d.delegated(t, ann, d.project, true, delegate.Rejected, with(writes("TASK-EMPTY write it", "empty.go", ""), "attempts", 1))
	answer := d.delegated(t, ann, d.project, false, delegate.Answered, map[string]any{"task": "TASK-ASK what does Add do?", "task_type": "ask", "context_files": []string{"add.go"}})
	if !strings.Contains(answer.Text, "adds two numbers") || answer.TaskID == "" {
		t.Errorf("%+v", answer)
	}
	d.delegated(t, ann, d.project, true, delegate.Unproven, writes("TASK-GREEN write the comment", "doc.go", "go vet ./..."))
}

// crashInTheMiddleOfAWrite kills a delegation when its file is in place and not yet proven.
func (d *day) crashInTheMiddleOfAWrite(t *testing.T) {
	d.write(map[string]string{"notes.txt": "before\n"})
	before := d.tree()
	cmd := exec.Command(harness.Binary(t), "delegate", "TASK-NOTES write it", "--output-files", "notes.txt",
		"--verify", "grep -q done notes.txt && sleep 300")
	cmd.Env, cmd.Dir = d.env, d.project
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d.written(d.project)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if got := d.tree()["notes.txt"]; !strings.HasSuffix(got, "done\n") {
		t.Fatalf("the crash left %q, so this test shows nothing", got)
	}
	// The next one in this project repairs, whatever it is itself.
	res, code := d.delegate(delegate.Task{Task: "TASK-ASK and now?", TaskType: "ask"})
	if res.Status != delegate.Answered || code != 0 {
		t.Errorf("%+v", res)
	}
	d.count(d.project, delegate.Answered)
	if !maps.Equal(before, d.tree()) {
		t.Errorf("not repaired: %v", d.tree())
	}
}

// killedClient: a session dies with a background task under way. The task goes on, and so does the other session.
func (d *day) killedClient(t *testing.T, ann, bob *agent, other string) {
	gate := filepath.Join(t.TempDir(), "gate")
	var begun tasks.State
	ann.call(true, with(with(d.gated(gate), "background", true), "verify_timeout_s", 30), &begun)
	d.written(d.project)
	ann.kill()
	d.delegated(t, bob, other, true, delegate.Proven, writes("TASK-NOTES write it", "notes.txt", "grep -q done notes.txt"))
	open(t, gate)
	var res delegate.Result
	bob.call(true, map[string]any{"action": "status", "task_id": begun.ID, "wait_s": 30}, &res)
	if res.Status != delegate.Proven || res.TaskID != begun.ID {
		t.Errorf("the task of the killed client: %+v", res)
	}
	d.count(d.project, delegate.Proven)
	harness.Until(t, "the killed client's session is over", 30*time.Second, func() bool { return len(d.status().Sessions) == 1 })
}

// killedKeeper: the engine goes with the keeper; the session enables again and works on.
func (d *day) killedKeeper(t *testing.T, bob *agent, other string, enable map[string]any) {
	was := d.status()
	if err := syscall.Kill(was.Keeper.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	harness.Until(t, "the keeper is gone", 10*time.Second, func() bool { return d.status().Keeper.PID == 0 })
	var again enabledSeen
	bob.call(true, enable, &again)
	now := d.status()
	if !again.Enabled || now.Keeper.PID == was.Keeper.PID || now.Keeper.PID == 0 || len(now.Sessions) != 1 {
		t.Fatalf("%+v\n%+v", again, now)
	}
	d.delegated(t, bob, other, false, delegate.Unverified, writes("TASK-SLOW write it", "slow.txt", ""))
}

// evening: persist outlives the last session, the page tells the day, and one disable ends it all.
func (d *day) evening(t *testing.T, bob *agent, other string) {
	var kept enabledSeen
	bob.call(true, map[string]any{"action": "enable", "persist": true}, &kept)
	bob.kill()
	harness.Until(t, "the last session is over", 30*time.Second, func() bool { return len(d.status().Sessions) == 0 })
	if st := d.status(); !kept.Persist || !st.Persist || st.Endpoint == "" {
		t.Errorf("not persisted: %+v\n%+v", kept, st)
	}
	res, code := d.delegate(delegate.Task{Task: "TASK-ASK once more?", TaskType: "ask"})
	if res.Status != delegate.Answered || code != 0 {
		t.Errorf("%+v", res)
	}
	d.count(d.project, delegate.Answered)
	for project, want := range d.want {
		d.checkDay(t, project, want)
	}
	d.ok("disable")
	mark := d.mark()
	harness.Until(t, "nothing is left", 30*time.Second, func() bool { return len(harness.Processes(mark)) == 0 })
}

// checkDay compares stats and its page with what was done in a project.
func (d *day) checkDay(t *testing.T, project string, want map[string]int) {
	t.Helper()
	here := *d.machine
	here.project = project
	var s stats.Summary
	if err := json.Unmarshal([]byte(here.ok("stats", "--json")), &s); err != nil {
		t.Fatal(err)
	}
	total, proven := 0, want[delegate.Proven]
	for _, n := range want {
		total += n
	}
	if s.Delegations != total || !maps.Equal(s.ByStatus, want) || s.SkippedLines != 0 {
		t.Errorf("stats of %s: %d, %v; want %d, %v", project, s.Delegations, s.ByStatus, total, want)
	}
	if page := here.ok("stats"); !strings.Contains(page, "proven") || proven == 0 {
		t.Errorf("the page says nothing of %d proven delegations:\n%s", proven, page)
	}
}
