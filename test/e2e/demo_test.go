//go:build unix

package e2e

import (
	"strings"
	"testing"
	"time"

	"localllm/test/harness"
)

// TestTheDemo runs the README's first command: it says that its answers are scripted, proves its file by a second
// attempt, and leaves no process.
func TestTheDemo(t *testing.T) {
	m := &machine{t: t, project: t.TempDir(), env: harness.Env(t, harness.Home(t))}
	out := m.ok("demo")
	at := 0
	for _, want := range []string{"its answers are scripted", "$ localllm enable", "delegate  score", "attempt 1 red", "attempt 2 proven", "1 delegation", "came back", "That was all of it"} {
		next := strings.Index(out[at:], want)
		if next < 0 {
			t.Fatalf("no %q behind\n%s\nin\n%s", want, out[:at], out)
		}
		at += next
	}
	harness.Until(t, "nothing being left", 30*time.Second, func() bool { return len(harness.Processes(m.mark())) == 0 })
}
