package stats

import (
	"context"
	"io"
	"time"
)

// Filter picks single lines. Empty fields pick all.
type Filter struct {
	Since    time.Time
	Status   string
	TaskType string
	Model    string
	Failed   bool // only what did not work out
	Advice   bool // lines of analyze too
}

// Last gives the newest n records that the filter picks, newest last, and how many it picked in all. Only those n
// are read in full.
func Last(ctx context.Context, logs []io.Reader, f Filter, n int) (records []Record, picked int, err error) {
	ring := make([][]byte, max(n, 1))
	var buf []byte
	for _, r := range logs {
		err := blocks(ctx, r, func() []byte { return buf }, func(b []byte) error {
			buf = b
			for len(b) > 0 {
				var one []byte
				one, b = nextLine(b)
				var l line
				if len(one) == 0 || !l.scan(one) && !l.parse(one) || !l.ours() || !f.picks(&l) {
					continue
				}
				at := &ring[picked%len(ring)]
				*at = append((*at)[:0], one...)
				picked++
			}
			return nil
		})
		if err != nil {
			return nil, 0, err
		}
	}
	for i := max(0, picked-n); i < picked; i++ {
		if rec, ok := ParseLine(ring[i%len(ring)]); ok {
			records = append(records, rec)
		}
	}
	return records, picked, nil
}

func (f Filter) picks(l *line) bool {
	status := l.outcome()
	switch {
	case !f.Since.IsZero() && l.unix < f.Since.Unix(),
		f.Status != "" && f.Status != status,
		f.TaskType != "" && f.TaskType != string(l.taskType),
		f.Model != "" && f.Model != string(l.model),
		f.Failed && (status == "" || OK(status)),
		!f.Advice && status == "":
		return false
	}
	return true
}
