package delegate

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"
)

const maxMemory = 64 << 20

// peak is how much the heap grows at most while f runs, with what the collector has not found yet.
func peak(f func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	runtime.GC()
	heap := func() uint64 {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	base := heap()
	highest := base
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for tick := time.NewTicker(time.Millisecond); ; {
			highest = max(highest, heap())
			select {
			case <-done:
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	}()
	f()
	close(done)
	<-ended
	return highest - base
}

// The worst that fits under the limit: each line something that has to be remembered or searched for.
func TestLargestRepliesAreBounded(t *testing.T) {
	for name, unit := range map[string]string{
		"fences": "```\n", "opened": "```go\n", "paths": "### File: a/b.go\n```go\nx\n```\n", "declared": "### File: a.go\n```go\nx\n```\n", "thinking": "<think>a</think>\n",
		"open thinking": "<think>\n", "closing": "a </think>\n", "edits": "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n", "starts": "<<<<<<< SEARCH\n", "newlines": "\n", "CRLF": "\r\n",
		"backticks": "`", "one line": "a.go ", "elisions": "// ... rest\n", "tildes": "~~~\n", "quotes": "> **`",
	} {
		text := strings.Repeat(unit, MaxReplyBytes/len(unit))
		for _, edit := range []bool{false, true} {
			gate := Gate{Outputs: []Output{{Path: "a.go", Edit: edit, Exists: edit, Body: "a\nb\n"}, {Path: "README.md"}}}
			started := time.Now()
			used := peak(func() { _, _ = gate.Files(Completion{Text: text, Finish: FinishStop}) })
			if used > maxMemory {
				t.Errorf("%s: the heap grew by %d MiB", name, used>>20)
			}
			if took := time.Since(started); took > 20*time.Second {
				t.Errorf("%s: took %s", name, took)
			}
			t.Logf("%s edit=%v: %d MiB, %s", name, edit, used>>20, time.Since(started).Round(time.Millisecond))
		}
	}
	if err := (Gate{Outputs: []Output{{Path: "a"}}}).tooLongFor(strings.Repeat("x", MaxReplyBytes+1)); err == nil || err.Kind != RejectTooLong {
		t.Errorf("over the limit: %v", err)
	}
}

func (g Gate) tooLongFor(text string) *Rejection {
	_, err := g.Files(Completion{Text: text, Finish: FinishStop})
	r, _ := err.(*Rejection)
	return r
}
