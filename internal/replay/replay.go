// Package replay tries the score on a log as if each task were still to come: every one is scored from the outcomes
// that were known when it began. It changes nothing.
package replay

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"localllm/internal/outcomes"
	"localllm/scoring"
	"localllm/stats"
)

// Report compares the table alone with the score that learned.
type Report struct {
	Log       string  `json:"log"`
	Outcomes  int     `json:"outcomes"` // delegations with a verdict
	Successes int     `json:"successes"`
	Unjudged  int     `json:"unjudged"` // lines without one: advice, answers, what nothing verified
	Skipped   int     `json:"skipped_lines"`
	Prior     Quality `json:"prior"`
	Learned   Quality `json:"learned"`
}

// Quality is how well scores foretold outcomes. AUC is the chance that a success had the higher score than a failure
// (0.5 is a coin); Brier is the mean squared error (0 is perfect, 0.25 a constant 0.5).
type Quality struct {
	AUC         float64        `json:"auc"`
	Brier       float64        `json:"brier"`
	Calibration []stats.Bucket `json:"calibration"`
}

// event is one judged delegation, small, because all of a log have to be in order.
type event struct {
	began, ended   float64 // Unix seconds
	line           int32   // its place in the log, for equal times
	kind           int32
	success        bool
	prior, learned float32
}

// Run reads a log and reports. It takes about 40 bytes a judged line.
func Run(ctx context.Context, logs []io.Reader, name string) (Report, error) {
	rep := Report{Log: name}
	t := table{ids: map[scoring.Kind]int32{}}
	var events []event
	for _, r := range logs {
		skipped, err := stats.Briefs(ctx, r, func(b *stats.Brief) {
			kind, success, counts := outcomes.Outcome(b)
			if !counts {
				rep.Unjudged++
				return
			}
			prior, _ := scoring.Prior(scoring.Task{Text: b.Task(), Type: b.TaskType, Outputs: b.Files})
			ended := float64(b.Unix)
			events = append(events, event{
				began: ended - b.Seconds, ended: ended, line: int32(len(events)), kind: t.id(kind), success: success, prior: float32(prior),
			})
		})
		rep.Skipped += skipped
		if err != nil {
			return Report{}, fmt.Errorf("replaying %s: %w", name, err)
		}
	}
	t.replay(events)
	rep.Outcomes = len(events)
	for _, e := range events {
		if e.success {
			rep.Successes++
		}
	}
	rep.Prior = measure(events, func(e event) float64 { return float64(e.prior) })
	rep.Learned = measure(events, func(e event) float64 { return float64(e.learned) })
	return rep, nil
}

// table is the history so far, by kinds that are numbered as they come.
type table struct {
	ids     map[scoring.Kind]int32
	kinds   []scoring.Kind
	tallies []scoring.Tally
}

func (t *table) id(k scoring.Kind) int32 {
	if i, ok := t.ids[k]; ok {
		return i
	}
	i := int32(len(t.kinds))
	t.ids[k] = i
	t.kinds = append(t.kinds, k)
	t.tallies = append(t.tallies, scoring.Tally{})
	return i
}

// replay scores the events in the order they began; an outcome joins the history when it has ended, not before.
func (t *table) replay(events []event) {
	slices.SortFunc(events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.began, b.began), cmp.Compare(a.line, b.line))
	})
	ends := make([]int32, len(events))
	for i := range ends {
		ends[i] = int32(i)
	}
	slices.SortFunc(ends, func(i, j int32) int {
		a, b := events[i], events[j]
		return cmp.Or(cmp.Compare(a.ended, b.ended), cmp.Compare(a.line, b.line))
	})
	known := 0
	for i := range events {
		e := &events[i]
		for ; known < len(ends); known++ {
			past := events[ends[known]]
			if past.ended > e.began || past.ended == e.began && past.line >= e.line {
				break
			}
			t.tallies[past.kind].Add(past.success)
		}
		e.learned = float32(t.history(e.kind).Correct(float64(e.prior)))
	}
}

func (t *table) history(id int32) scoring.History {
	var h scoring.History
	k := t.kinds[id]
	for i, y := range t.tallies {
		if y.Tried > 0 && k.Similar(t.kinds[i]) {
			h.Similar = h.Similar.Plus(y)
			if k.Alike(t.kinds[i]) {
				h.Alike = h.Alike.Plus(y)
			}
		}
	}
	return h
}

func measure(events []event, score func(event) float64) Quality {
	type cell struct {
		n, successes int
		predicted    float64
	}
	var cells [10]cell
	q := Quality{AUC: auc(events, score), Calibration: []stats.Bucket{}}
	for _, e := range events {
		p := score(e)
		c := &cells[min(int(p*10+1e-6), 9)]
		c.n++
		c.predicted += p
		target := 0.0
		if e.success {
			c.successes++
			target = 1
		}
		q.Brier += (p - target) * (p - target)
	}
	if len(events) > 0 {
		q.Brier = math.Round(q.Brier/float64(len(events))*1e4) / 1e4
	}
	for i, c := range cells {
		if c.n > 0 {
			q.Calibration = append(q.Calibration, stats.Bucket{
				Bucket:    fmt.Sprintf("%.1f-%.1f", float64(i)/10, float64(i+1)/10),
				Predicted: c.predicted / float64(c.n), Observed: float64(c.successes) / float64(c.n), N: c.n,
			})
		}
	}
	return q
}

// auc is the Mann-Whitney statistic with ties as halves; 0.5 where there is only one sort of outcome.
func auc(events []event, score func(event) float64) float64 {
	type point struct {
		p       float64
		success bool
	}
	points := make([]point, len(events))
	for i, e := range events {
		points[i] = point{score(e), e.success}
	}
	slices.SortFunc(points, func(a, b point) int { return cmp.Compare(a.p, b.p) })
	var successes, failures, won float64
	for i := 0; i < len(points); {
		var s, f float64
		j := i
		for ; j < len(points) && points[j].p == points[i].p; j++ {
			if points[j].success {
				s++
			} else {
				f++
			}
		}
		won += s*failures + s*f/2
		successes += s
		failures += f
		i = j
	}
	if successes == 0 || failures == 0 {
		return 0.5
	}
	return math.Round(won/(successes*failures)*1e4) / 1e4
}
