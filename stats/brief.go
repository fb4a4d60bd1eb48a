package stats

import (
	"context"
	"encoding/json"
	"io"
)

// Brief is what a line says about an outcome, for those who go through a whole log. It is valid during the call
// that it is handed to.
type Brief struct {
	l        line
	Unix     int64
	TaskType string
	Model    string
	Outcome  string // as Record.Outcome
	Files    int    // declared outputs, -1 if the line doesn't say
	Prompt   int    // tokens of one attempt, 0 if the line doesn't say
	Seconds  float64
	Verified bool // a verify ran
}

// Task is the task's text.
func (b *Brief) Task() string {
	if !b.l.escaped {
		return string(b.l.task)
	}
	var text string
	_ = json.Unmarshal(append(append([]byte{'"'}, b.l.task...), '"'), &text)
	return text
}

// Briefs hands every line to fn and counts the bad ones.
func Briefs(ctx context.Context, r io.Reader, fn func(*Brief)) (skipped int, err error) {
	names := map[string]string{} // a log has few, and a text each a line would be a lot
	name := func(b []byte) string {
		if s, ok := names[string(b)]; ok {
			return s
		}
		s := string(b)
		if len(names) < mostKinds {
			names[s] = s
		}
		return s
	}
	var buf []byte
	var brief Brief
	err = blocks(ctx, r, func() []byte { return buf }, func(b []byte) error {
		buf = b
		skipped += lines(b, func(l *line, _ []byte) {
			brief = Brief{
				l: *l, Unix: l.unix, TaskType: name(l.taskType), Model: name(l.model), Outcome: l.outcome(), Files: -1,
				Prompt: int(l.prompt / max(l.attempts, 1)), Seconds: float64(l.seconds) / million, Verified: l.verified || l.passed != 0,
			}
			if l.filesKnown {
				brief.Files = l.fileCount
			}
			fn(&brief)
		})
		return nil
	})
	return skipped, err
}
