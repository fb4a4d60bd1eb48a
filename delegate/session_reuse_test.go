package delegate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// reusedBytes plays an engine with one slot: what a prompt shares with the one before, answer included, is not
// prefilled again. The unit is the byte, which flatters no layout.
type reusedBytes struct{ cache string }

func (r *reusedBytes) prefill(messages []Message, answer string) int {
	prompt := shown(messages)
	n := 0
	for n < len(prompt) && n < len(r.cache) && prompt[n] == r.cache[n] {
		n++
	}
	r.cache = prompt + answer
	return len(prompt) - n
}

// TestReuseOfASession: 20 tasks over the same 8 files (about 12,000 tokens), one of which changes and one of which is
// added on the way. Ideal: every byte that is new to the session is prefilled once, headings and reminders that are
// sent again not counted. The same figures from real engines are in docs/results.md.
func TestReuseOfASession(t *testing.T) {
	var s Session
	sticky, sorted, taskFirst := &reusedBytes{}, &reusedBytes{}, &reusedBytes{}
	got, gotSorted, gotTaskFirst := 0, 0, 0
	ideal := 0
	seen := map[string]bool{}
	for i := range 20 {
		files := make([]File, 0, 9)
		for n := range 8 {
			version := "one"
			if n == 2 && i >= 7 {
				version = "two"
			}
			files = append(files, file(fmt.Sprintf("pkg/part%d.go", n), 6, version))
		}
		if i >= 13 {
			files = append(files, file("pkg/extra.go", 6, "one"))
			files[3], files[8] = files[8], files[3] // the caller's order is not the session's
		}
		task := Task{Task: fmt.Sprintf("Write part %d. ", i) + strings.Repeat(fmt.Sprintf("It does the %dth thing with care. ", i), 12), TaskType: TaskTypes()[i%4],
			OutputFiles: []OutputFile{{Path: fmt.Sprintf("pkg/new%d.go", i)}}}
		in := Input{Model: "m", Task: task, Context: files, Outputs: []Output{{Path: task.OutputFiles[0].Path}}, Session: s}
		p := build(t, in)
		s = p.Session
		answer := strings.Repeat("answer ", 100)
		got += sticky.prefill(p.Messages, answer)
		for _, piece := range append([]string{p.Messages[0].Content, task.Task, task.OutputFiles[0].Path}, bodies(files)...) {
			if !seen[piece] {
				seen[piece] = true
				ideal += len(piece)
			}
		}
		plain := in
		plain.Session, plain.Context = Session{}, slices.SortedFunc(slices.Values(files), func(a, b File) int { return strings.Compare(a.Path, b.Path) })
		gotSorted += sorted.prefill(build(t, plain).Messages, answer)
		gotTaskFirst += taskFirst.prefill(taskBeforeFiles(build(t, plain).Messages), answer)
	}
	t.Logf("ideal %d, session %.3f, sorted by path %.2f, task first %.2f", ideal, float64(got)/float64(ideal), float64(gotSorted)/float64(ideal), float64(gotTaskFirst)/float64(ideal))
	if float64(got) > 1.08*float64(ideal) {
		t.Errorf("prefilled %d bytes, ideal is %d", got, ideal)
	}
	if float64(gotSorted) < 1.2*float64(ideal) || float64(gotTaskFirst) < 3*float64(ideal) {
		t.Errorf("the controls prefill %d and %d of an ideal of %d: they show nothing", gotSorted, gotTaskFirst, ideal)
	}
}

func taskBeforeFiles(messages []Message) []Message {
	user := messages[1].Content
	at := strings.LastIndex(user, "## Task\n")
	return []Message{messages[0], {Role: User, Content: user[at:] + "\n" + user[:at]}}
}

func bodies(files []File) []string {
	var out []string
	for _, f := range files {
		out = append(out, f.Body)
	}
	return out
}
