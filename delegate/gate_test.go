package delegate

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTextAnswers(t *testing.T) {
	for _, c := range []struct{ text, finish, want, kind string }{
		{"It prints a greeting.\n", FinishStop, "It prints a greeting.", ""},
		{"<think>hm</think>\nYes.", FinishStop, "Yes.", ""},
		{"Let me know if you need more.", FinishStop, "Let me know if you need more.", ""},
		{"I'll be brief: no.\n\n1. One\n\n2. Two\n", FinishStop, "I'll be brief: no.\n\n1. One\n\n2. Two", ""},
		{"I will look at the file now.", FinishStop, "", RejectIntention},
		{"Sure! Let me check the code first", FinishStop, "", RejectIntention},
		{"Let me explain: it returns 1.", FinishStop, "Let me explain: it returns 1.", ""},
		{"Let's see. It adds two numbers.", FinishStop, "Let's see. It adds two numbers.", ""},
		{"", FinishStop, "", RejectEmpty},
		{"Half an ans", FinishLength, "", RejectCutOff},
		{"<think>hm", FinishStop, "", RejectThinking},
		{strings.Repeat("x", MaxReplyBytes+1), FinishStop, "", RejectTooLong},
	} {
		got, err := Gate{}.Text(Completion{Text: c.text, Finish: c.finish})
		var r *Rejection
		errors.As(err, &r)
		if got != c.want || (c.kind != "") != (r != nil) || r != nil && (r.Kind != c.kind || r.Error() != r.Reason || r.Ask == "") {
			t.Errorf("%.40q: %q, %+v; want %q, %s", c.text, got, r, c.want, c.kind)
		}
	}
}

func TestClipKeepsCharactersWhole(t *testing.T) {
	if got := clip("aé", 2); got != "a…" {
		t.Errorf("%q", got)
	}
	if got := clip("aé", 3); got != "aé" {
		t.Errorf("%q", got)
	}
}

// Laying out and reading cost next to nothing beside the engine.
func TestPromptAndGateAreQuick(t *testing.T) {
	var files []File
	for i := range 10 {
		files = append(files, file(string(rune('a'+i))+".go", 10, "1"))
	}
	in := Input{Task: Task{Task: "x"}, Mode: ModeFiles, Context: files, Outputs: []Output{{Path: "new.go"}}}
	c := &window{context: 1 << 20, exact: true}
	reply := Completion{Finish: FinishStop, Text: "### File: new.go\n```go\n" + strings.Repeat("var x = 1 // a line of code\n", 400) + "```\n"}
	var took []time.Duration
	for range 50 {
		started := time.Now()
		p, err := Build(t.Context(), c, in)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (Gate{Outputs: p.Outputs}).Files(reply); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(started))
		in.Session = p.Session
	}
	slices.Sort(took)
	t.Logf("median %s, best %s", took[25], took[0])
	if took[0] > 20*time.Millisecond { // it is 1 to 2 ms; a busy machine makes it longer, and the race detector
		t.Errorf("at least %s for 100 KB of context", took[0])
	}
}
