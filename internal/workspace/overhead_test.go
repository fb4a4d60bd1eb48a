package workspace_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"localllm/delegate"
)

// heavyRig has 100 KB of context in eight files, and a model that answers at once.
func heavyRig(t testing.TB) (*rig, delegate.Task, delegate.Task) {
	tree := map[string]string{"out/1.txt": "old\n", "out/2.txt": "old\n", "out/3.txt": "old\n"}
	var shown []string
	line := strings.Repeat("a line of some source text, as it comes // ", 2)
	for i := range 8 {
		name := fmt.Sprintf("src/file%d.txt", i)
		tree[name] = strings.Repeat(fmt.Sprintf("%d %s\n", i, line), 12_800/(len(line)+3))
		shown = append(shown, name)
	}
	r := newRig(t, tree)
	n := 0
	r.script.answers = []answer{func(_ context.Context, q delegate.Request) (delegate.Completion, error) {
		n++
		text := "An answer."
		if strings.Contains(q.Messages[1].Content, "Output files:") {
			w := fmt.Sprintf("new %d\n", n)
			text = files("out/1.txt", w, "out/2.txt", w, "out/3.txt", w, "out/4.txt", w)
		}
		return delegate.Completion{Text: text, Finish: delegate.FinishStop}, nil
	}}
	r.script.limits.Context = 1 << 20
	ask := delegate.Task{Task: "what does it do?", ContextFiles: shown}
	write := delegate.Task{Task: "write them", ContextFiles: shown, OutputFiles: out("out/1.txt", "out/2.txt", "out/3.txt", "out/4.txt")}
	return r, ask, write
}

func median(t testing.TB, r *rig, task delegate.Task, want string) time.Duration {
	var took []time.Duration
	for i := range 50 {
		started := time.Now()
		res, err := r.Run(t.Context(), delegate.Job{ID: fmt.Sprint("o", i), Task: task})
		took = append(took, time.Since(started))
		if err != nil || res.Status != want {
			t.Fatalf("%v %+v", err, res)
		}
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// What a delegation costs beside the model. The limits are those we promise, which a machine has to be very busy to miss.
func TestOverhead(t *testing.T) {
	r, ask, write := heavyRig(t)
	for _, row := range []struct {
		name   string
		task   delegate.Task
		status string
		limit  time.Duration
	}{{"100 KB of context, no writes", ask, delegate.Answered, 5 * time.Millisecond}, {"the same with journal and writes", write, delegate.Unverified, 25 * time.Millisecond}} {
		best := time.Hour
		for range 10 { // the machine may be busy with other tests just now
			best = min(best, median(t, r, row.task, row.status))
			if best < row.limit {
				break
			}
		}
		t.Logf("%s: median of 50: %v", row.name, best)
		if best >= row.limit && !raceEnabled {
			t.Errorf("%s: median of 50 is %v, want under %v", row.name, best, row.limit)
		}
	}
}

func BenchmarkOverhead(b *testing.B) {
	r, ask, write := heavyRig(b)
	for name, task := range map[string]delegate.Task{"text": ask, "files": write} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := r.Run(b.Context(), delegate.Job{ID: "b", Task: task}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
