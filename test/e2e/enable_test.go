//go:build unix

package e2e

import (
	"encoding/json"
	"os"
	"strconv"
	"testing"
	"time"

	"localllm/internal/practice"
	"localllm/test/harness"
)

// An enable in the background answers at once, and what it began is collected by its task and belongs to the session.
func TestEnableInTheBackground(t *testing.T) {
	m := &machine{t: t, project: t.TempDir(), env: harness.Env(t, harness.Home(t))}
	model := harness.Model(t, practice.Script{{Say: "hello\n"}}, practice.Options{})
	while := []string{"--while-pid", strconv.Itoa(os.Getpid())}
	enable := append([]string{"enable", "--model", model, "--context", "4096", "--json"}, while...)
	t.Cleanup(func() { m.ok(append([]string{"disable"}, while...)...) })

	var begun struct {
		TaskID  string `json:"task_id"`
		Status  string `json:"status"`
		Enabled bool   `json:"enabled"` // it was ready before anybody looked
	}
	began := time.Now()
	m.into(&begun, append(enable, "--background")...)
	if begun.TaskID == "" || begun.Status != "queued" && begun.Status != "running" && !begun.Enabled {
		t.Fatalf("%+v after %v", begun, time.Since(began))
	}

	var done struct {
		Enabled bool   `json:"enabled"`
		Started string `json:"started"`
	}
	m.into(&done, append([]string{"status", "--task-id", begun.TaskID, "--wait-s", "60", "--json"}, while...)...)
	if !done.Enabled || done.Started != "cold" {
		t.Errorf("the task's result: %+v", done)
	}
	var now struct {
		Enabled bool   `json:"enabled"`
		State   string `json:"state"`
	}
	m.into(&now, append([]string{"status", "--json"}, while...)...)
	if !now.Enabled || now.State != "ready" {
		t.Errorf("status: %+v", now)
	}
	m.into(&done, enable...)
	if done.Started != "joined" {
		t.Errorf("the same again: %+v", done)
	}

	// A wish for more is granted where nobody else needs what runs; the model's own limit is told.
	var larger struct {
		Context  int      `json:"context"`
		Started  string   `json:"started"`
		Warnings []string `json:"warnings"`
	}
	m.into(&larger, append([]string{"enable", "--model", model, "--context", "1000000", "--json"}, while...)...)
	if larger.Context != 32768 || larger.Started != "cold" || len(larger.Warnings) == 0 {
		t.Errorf("a larger context: %+v", larger)
	}
	m.into(&larger, append([]string{"enable", "--model", model, "--context", "32768", "--json"}, while...)...)
	if larger.Context != 32768 || larger.Started != "joined" || len(larger.Warnings) != 0 {
		t.Errorf("the same again: %+v", larger)
	}

	// Whoever comes after one that persists it is told that it stays.
	m.ok(append([]string{"enable", "--persist"}, while...)...)
	var after enabledSeen
	m.into(&after, append([]string{"enable", "--json"}, while...)...)
	if !after.Persist {
		t.Errorf("after an enable that persists it: %+v", after)
	}
}

// into runs a command and reads its JSON.
func (m *machine) into(v any, args ...string) {
	m.t.Helper()
	out := m.ok(args...)
	if err := json.Unmarshal([]byte(out), v); err != nil {
		m.t.Fatalf("localllm %q: %v\n%s", args, err, out)
	}
}
