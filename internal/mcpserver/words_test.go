package mcpserver

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"localllm/internal/request"
)

var update = flag.Bool("update", false, "write the snapshots anew")

func TestToolSnapshot(t *testing.T) {
	raw, err := json.Marshal(tool())
	if err != nil {
		t.Fatal(err)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, raw, "", "  "); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("schema %d bytes, description %d bytes, instructions %d bytes\n\n# instructions\n%s\n\n# description\n%s\n\n# tool\n%s\n",
		len(request.Schema()), len(Description()), len(Instructions), Instructions, Description(), pretty.Bytes())
	const path = "testdata/tool.txt"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("what the model reads changed; if that is meant: go test ./internal/mcpserver -run Snapshot -update\n%s", got)
	}
}

func TestSizesStayUnderWhatClientsCut(t *testing.T) {
	if n := len(Instructions); n >= 1000 {
		t.Errorf("the instructions have %d characters", n)
	}
	if n := len([]rune(Description())); n >= 4096 {
		t.Errorf("the description has %d characters", n)
	}
	// A token of JSON and plain English is never under 3.5 bytes on average with the tokenizers in use; test/clients
	// counts with a real one.
	if n := len(request.Schema()) + len(Description()); n > 5250 {
		t.Errorf("schema and description have %d bytes, more than 1,500 tokens of 3.5 bytes", n)
	}
	for _, name := range request.Actions() {
		if !strings.Contains(Description(), "\n"+name+": ") {
			t.Errorf("the description lacks %s", name)
		}
	}
}

func TestProgressComesAtOnceAndAtLeastEveryTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type note struct {
			at       time.Duration
			progress float64
			words    string
		}
		var notes []note
		start := time.Now()
		r := startReporter("delegate", func(p float64, words string) { notes = append(notes, note{time.Since(start), p, words}) })
		time.Sleep(25 * time.Second)
		for i := range 1000 { // fast counting
			r.report(Progress{Phase: "prefill", Done: int64(i), Total: 1000, Unit: "tokens"})
			time.Sleep(time.Millisecond)
		}
		time.Sleep(31 * time.Second)
		r.stop()
		n := len(notes)
		time.Sleep(time.Minute)
		if len(notes) != n {
			t.Errorf("%d notifications after the end", len(notes)-n)
		}
		if notes[0].at != 0 || notes[0].words != "delegate: started" {
			t.Errorf("the first: %+v", notes[0])
		}
		for i := 1; i < n; i++ {
			if gap := notes[i].at - notes[i-1].at; gap > 10*time.Second {
				t.Errorf("%v of silence before %+v", gap, notes[i])
			}
			if notes[i].progress < notes[i-1].progress+0.0009 { // and by something that a client can show
				t.Errorf("no growth: %+v after %+v", notes[i], notes[i-1])
			}
		}
		if n > 20 {
			t.Errorf("%d notifications in 57 s", n)
		}
		if last := notes[n-1].words; !strings.HasPrefix(last, "prefill 999 of 1000 tokens (") {
			t.Errorf("the last: %q", last)
		}
	})
}

func TestTextHasTheWholeResult(t *testing.T) {
	type file struct {
		Path  string `json:"path"`
		Added int    `json:"added"`
	}
	result := struct {
		OK      bool           `json:"ok"`
		Score   float64        `json:"score"`
		Reasons []string       `json:"reasons"`
		Long    []string       `json:"long"`
		Files   []file         `json:"files"`
		Verify  map[string]any `json:"verify"`
		Empty   []string       `json:"empty"`
		None    *int           `json:"none"`
		Last    string         `json:"last"`
	}{true, 0.78, []string{"a", "b"}, []string{strings.Repeat("x", 80), "y"}, []file{{"a.go", 3}, {"b.go", 0}},
		map[string]any{"exit": 0, "tail": "one\n  two\n"}, nil, nil, "<&>"}
	want := `ok: true
score: 0.78
reasons: a, b
long:
  - ` + strings.Repeat("x", 80) + `
  - y
files:
  - path: a.go
    added: 3
  - path: b.go
    added: 0
verify:
  exit: 0
  tail:
    one
      two
last: <&>`
	if got := Text(result); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	for _, empty := range []any{struct{}{}, map[string]any{"a": nil}, nil} {
		if got := Text(empty); got != "" {
			t.Errorf("Text(%v) = %q", empty, got)
		}
	}
}
