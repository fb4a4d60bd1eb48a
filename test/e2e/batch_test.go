//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"localllm/delegate"
	"localllm/internal/paths"
	"localllm/internal/practice"
	"localllm/internal/slots"
	"localllm/test/harness"
)

// newSlotMachine is a machine whose managed llama-server has four slots.
func newSlotMachine(t *testing.T, script practice.Script, options practice.Options) *machine {
	t.Helper()
	m := &machine{t: t, project: t.TempDir(), env: harness.Env(t, harness.Home(t))}
	self := strconv.Itoa(os.Getpid())
	m.enable = []string{"enable", "--engine", "llama-server", "--model", harness.Model(t, script, options), "--context", "16384", "--slots", "4", "--while-pid", self}
	m.ok(m.enable...)
	t.Cleanup(func() { m.ok("disable", "--while-pid", self) })
	return m
}

// long is a text of about the given number of the practice model's tokens.
func long(tokens int) string {
	var b strings.Builder
	for i := 0; b.Len() < tokens*12/5; i++ { // names and numbers: 2.4 characters a token
		fmt.Fprintf(&b, "func helper%d(a int) int { return a + %d }\n", i, i*7)
	}
	return "package demo\n\n" + b.String()
}

var batchScript = practice.Script{
	{Say: "no marker was found\n"},
	{When: []string{"TASK-ONE"}, Say: "first answer\n"},
	{When: []string{"TASK-TWO"}, Say: file("two.go", "package demo\n\nconst Two = 2\n")},
	{When: []string{"TASK-THREE"}, Say: "\n"}, // an empty answer: it fails
	{When: []string{"TASK-FOUR"}, Say: "fourth answer\n"},
}

var batchTasks = []delegate.Task{
	{Task: "TASK-ONE what is in there?", TaskType: "ask"},
	{Task: "TASK-TWO write it", OutputFiles: outputs("two.go")},
	{Task: "TASK-THREE what else?", TaskType: "ask", Attempts: 1},
	{Task: "TASK-FOUR and now?", TaskType: "ask"},
}

func (m *machine) batch(t *testing.T, tasks []delegate.Task, context ...string) delegate.BatchResult {
	t.Helper()
	out, errs, code := m.input(map[string]any{"tasks": tasks, "context_files": context}, "delegate", "--json")
	var res delegate.BatchResult
	if err := json.Unmarshal([]byte(out), &res); err != nil || code != 3 {
		t.Fatalf("exit %d\n%s%s", code, out, errs)
	}
	return res
}

func checkBatch(t *testing.T, m *machine, res delegate.BatchResult) {
	t.Helper()
	if res.OK || res.Succeeded != 3 || res.Failed != 1 || len(res.Results) != 4 {
		t.Fatalf("%+v", res)
	}
	for i, want := range []string{delegate.Answered, delegate.Unverified, delegate.Rejected, delegate.Answered} {
		if got := res.Results[i].Status; got != want {
			t.Errorf("task %d: %s, want %s: %s", i, got, want, res.Results[i].Reason)
		}
	}
	if !strings.Contains(res.Results[0].Text, "first answer") || !strings.Contains(res.Results[3].Text, "fourth answer") {
		t.Errorf("not in input order: %q, %q", res.Results[0].Text, res.Results[3].Text)
	}
	if !strings.Contains(m.tree()["two.go"], "const Two = 2") {
		t.Error("two.go was not written")
	}
}

// TestABatchReadsItsSharedContextOnce counts at the engine: the four prompts have 8,000 tokens in common.
func TestABatchReadsItsSharedContextOnce(t *testing.T) {
	m := newSlotMachine(t, batchScript, practice.Options{})
	m.write(map[string]string{"go.mod": "module demo\n\ngo 1.21\n", "shared.go": long(8200)})
	before := m.prefilled()
	res := m.batch(t, batchTasks, "shared.go")
	checkBatch(t, m, res)
	prompts, cached := 0, 0
	for _, r := range res.Results {
		if r.Tokens.Prompt < 8000 {
			t.Errorf("a prompt has only %d tokens", r.Tokens.Prompt)
		}
		prompts += r.Tokens.Prompt
		cached += r.Tokens.Cached
	}
	read, one := m.prefilled()-before, prompts/4
	t.Logf("four prompts of %d tokens, the engine read %d in all; %d of %d came from the cache; %.1f s", one, read, cached, prompts, res.Seconds)
	if read >= one*3/2 {
		t.Errorf("the engine read %d tokens for four prompts of %d", read, one)
	}
}

// TestABatchLeavesOthersTheirSlots: two of the four places are held by others, as two sessions at work would.
func TestABatchLeavesOthersTheirSlots(t *testing.T) {
	m := newSlotMachine(t, batchScript, practice.Options{})
	m.write(map[string]string{"go.mod": "module demo\n\ngo 1.21\n", "shared.go": long(2000)})
	held := slots.Open(paths.Layout{Run: filepath.Join(m.home(), "run")}, m.status().Endpoint, 4).More(2)
	if busy := m.status().Slots.Busy; len(held) != 2 || busy != 2 {
		t.Fatalf("%d places held, status says %d", len(held), busy)
	}
	defer func() {
		for _, s := range held {
			s.Release()
		}
	}()
	before := m.lastTasks()
	checkBatch(t, m, m.batch(t, batchTasks, "shared.go"))
	after, used := m.lastTasks(), 0
	for slot, task := range after {
		if before[slot] != task {
			used++
		}
	}
	for _, s := range held {
		if before[s.Index] != after[s.Index] {
			t.Errorf("the batch used slot %d, which somebody else holds", s.Index)
		}
	}
	if used != 2 {
		t.Errorf("the batch used %d slots, and two were free: %v, then %v", used, before, after)
	}
}

// lastTasks says for each slot of the engine which request it had last.
func (m *machine) lastTasks() map[int]int {
	m.t.Helper()
	var all []struct {
		ID   int `json:"id"`
		Task int `json:"id_task"`
	}
	if err := json.Unmarshal([]byte(m.ask("/slots")), &all); err != nil || len(all) != 4 {
		m.t.Fatal(err, all)
	}
	last := map[int]int{}
	for _, s := range all {
		last[s.ID] = s.Task
	}
	return last
}

// prefilled is how many prompt tokens the engine has read so far, the cached ones not counted.
func (m *machine) prefilled() int {
	m.t.Helper()
	for line := range strings.Lines(m.ask("/metrics")) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "llamacpp:prompt_tokens_total "); ok {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				m.t.Fatal(err)
			}
			return int(n)
		}
	}
	m.t.Fatal("the engine doesn't count prompt tokens")
	return 0
}
