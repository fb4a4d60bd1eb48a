package replay

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"localllm/scoring"
)

// ruled writes a log that follows a rule which the table does not know: whether a task works out hangs on its type,
// its model and the number of its outputs. The words of the task say nothing.
func ruled(n int, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	types := map[string]float64{"generate": 1.2, "test": 0.4, "fix": -0.6, "refactor": -1.4}
	models := map[string]float64{"big": 1.5, "small": -1.5}
	texts := []string{"CRUD routes", "write tests", "design the store", "auth", "rename things", "parse dates", "scaffold specs"}
	keys := slices.Sorted(keysOf(types))
	var b bytes.Buffer
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for range n {
		at = at.Add(time.Duration(60+rng.IntN(600)) * time.Second)
		kind, model := keys[rng.IntN(len(keys))], []string{"big", "small"}[rng.IntN(2)]
		outputs := 1 + rng.IntN(4)
		chance := 1 / (1 + math.Exp(-(types[kind] + models[model] - 0.8*float64(outputs-2))))
		status, exit := "proven", 0
		if rng.Float64() > chance {
			status, exit = "failed", 1
		}
		fmt.Fprintf(&b, `{"timestamp":%q,"task":%q,"task_type":%q,"score":0.5,"decision":"delegate","verification_passed":%t,"tokens_generated":500,"time_seconds":%d,"status":%q,"model":%q,"attempts":1,"tokens_prompt":2000,"files":[%s],"verify_exit":%d}`+"\n",
			at.Format(time.RFC3339), texts[rng.IntN(len(texts))], kind, exit == 0, rng.IntN(50), status, model,
			strings.TrimSuffix(strings.Repeat(`"f",`, outputs), ","), exit)
	}
	return b.Bytes()
}

func keysOf(m map[string]float64) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func run(t *testing.T, log []byte) Report {
	t.Helper()
	r, err := Run(t.Context(), []io.Reader{bytes.NewReader(log)}, "log.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestLearnedBeatsThePrior(t *testing.T) {
	for seed := range uint64(5) {
		r := run(t, ruled(2000, seed))
		t.Logf("seed %d: AUC %.3f to %.3f, Brier %.3f to %.3f, of %d", seed, r.Prior.AUC, r.Learned.AUC, r.Prior.Brier, r.Learned.Brier, r.Outcomes)
		if r.Outcomes != 2000 || r.Learned.AUC < r.Prior.AUC+0.15 || r.Learned.Brier >= r.Prior.Brier {
			t.Errorf("seed %d: %+v", seed, r)
		}
		if off, was := miscalibration(r.Learned), miscalibration(r.Prior); off > 0.08 || off > was {
			t.Errorf("seed %d: off by %.3f, the prior by %.3f", seed, off, was)
		}
	}
}

// miscalibration is the mean distance of what was foretold from what came.
func miscalibration(q Quality) float64 {
	sum, n := 0.0, 0
	for _, b := range q.Calibration {
		sum += math.Abs(b.Predicted-b.Observed) * float64(b.N)
		n += b.N
	}
	return sum / float64(n)
}

// What comes later must not change what was foretold before it: the same log with another end.
func TestNoLookingAhead(t *testing.T) {
	build := func(end bool) []event {
		var events []event
		for i := range 40 {
			events = append(events, event{began: float64(i * 10), ended: float64(i*10 + 5), line: int32(i), success: i%3 == 0 || i >= 30 && end, prior: 0.5})
		}
		tb := table{ids: map[scoring.Kind]int32{}}
		tb.id(scoring.Kind{Type: "fix"})
		tb.replay(events)
		return events
	}
	a, b := build(true), build(false)
	for i := range 31 {
		if a[i].learned != b[i].learned {
			t.Fatalf("event %d was scored %v and %v", i, a[i].learned, b[i].learned)
		}
	}
	if a[39].learned <= b[39].learned {
		t.Errorf("nothing was learned: %v, %v", a[39].learned, b[39].learned)
	}
}

func TestTasksAtTheSameTimeDoNotKnowOfEachOther(t *testing.T) {
	for name, c := range map[string]struct {
		events []event
		known  []int
	}{
		"one after the other":              {[]event{{began: 0, ended: 5}, {began: 5, ended: 9}}, []int{0, 1}},
		"overlapping":                      {[]event{{began: 0, ended: 5}, {began: 4, ended: 9}, {began: 6, ended: 7}}, []int{0, 0, 1}},
		"a long one ends last":             {[]event{{began: 1, ended: 2}, {began: 0, ended: 9}, {began: 3, ended: 4}}, []int{0, 0, 1}},
		"no durations and one second":      {[]event{{began: 3, ended: 3}, {began: 3, ended: 3}, {began: 3, ended: 3}}, []int{0, 1, 2}},
		"the log is not in order of times": {[]event{{began: 8, ended: 9}, {began: 1, ended: 2}}, []int{0, 1}},
	} {
		for i := range c.events {
			c.events[i].line, c.events[i].prior, c.events[i].success = int32(i), 0.5, true
		}
		tb := table{ids: map[scoring.Kind]int32{}}
		tb.id(scoring.Kind{Type: "fix"})
		tb.replay(c.events)
		for i, e := range c.events {
			y := scoring.Tally{Tried: c.known[i], Succeeded: c.known[i]}
			if want := float32((scoring.History{Similar: y, Alike: y}).Correct(0.5)); e.learned != want {
				t.Errorf("%s: event %d has %v, want %v for %d known", name, i, e.learned, want, c.known[i])
			}
		}
	}
}

func TestAUCAgreesWithCountingPairs(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	score := func(e event) float64 { return float64(e.prior) }
	for range 50 {
		var events []event
		for range 2 + rng.IntN(60) {
			events = append(events, event{prior: float32(rng.IntN(6)) / 5, success: rng.IntN(2) == 0})
		}
		won, pairs := 0.0, 0.0
		for _, a := range events {
			for _, b := range events {
				if a.success && !b.success {
					pairs++
					switch {
					case a.prior > b.prior:
						won++
					case a.prior == b.prior:
						won += 0.5
					}
				}
			}
		}
		want := 0.5
		if pairs > 0 {
			want = won / pairs
		}
		if got := auc(events, score); math.Abs(got-want) > 1e-4 {
			t.Fatalf("%v, want %v", got, want)
		}
	}
}

func TestMeasure(t *testing.T) {
	q := measure([]event{{prior: 0.7, success: true}, {prior: 0.7}, {prior: 1, success: true}, {prior: 0}}, func(e event) float64 { return float64(e.prior) })
	if q.AUC != 0.875 || math.Abs(q.Brier-(0.09+0.49)/4) > 1e-4 || len(q.Calibration) != 3 {
		t.Errorf("%+v", q)
	}
	if b := q.Calibration[1]; b.Bucket != "0.7-0.8" || b.N != 2 || b.Observed != 0.5 || math.Abs(b.Predicted-0.7) > 1e-6 {
		t.Errorf("%+v", b)
	}
}

func TestCountsOfALog(t *testing.T) {
	log := `{"timestamp":"2026-01-01T00:00:00Z","task_type":"fix","status":"proven"}
{"timestamp":"2026-01-01T00:00:00Z","task_type":"fix","status":"answered"}
{"timestamp":"2026-01-01T00:00:00Z","task_type":"fix","decision":"keep"}
{"timestamp":"2026-01-01T00:00:00Z","status":"failed"}
{"torn
`
	r := run(t, []byte(log))
	if r.Outcomes != 1 || r.Successes != 1 || r.Unjudged != 3 || r.Skipped != 1 || r.Log != "log.jsonl" || r.Prior.AUC != 0.5 {
		t.Errorf("%+v", r)
	}
	if _, err := Run(t.Context(), []io.Reader{failing{}}, "x"); err == nil || !strings.Contains(err.Error(), "replaying x") {
		t.Errorf("%v", err)
	}
	if r := run(t, nil); r.Outcomes != 0 || r.Learned.Calibration == nil {
		t.Errorf("%+v", r)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
