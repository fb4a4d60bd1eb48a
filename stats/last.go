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

// Picked is what Last found: records oldest first, how many the filter picked in all, and how many lines were bad.
type Picked struct {
	Records []Record
	Total   int
	Skipped int
}

// Last gives the last n records that the filter picks, or all for n = 0. Only those n are read in full.
func Last(ctx context.Context, logs []io.Reader, f Filter, n int) (Picked, error) {
	var p Picked
	var ring [][]byte
	var buf []byte
	for _, r := range logs {
		err := blocks(ctx, r, func() []byte { return buf }, func(b []byte) error {
			buf = b
			for len(b) > 0 {
				var one []byte
				one, b = nextLine(b)
				if len(one) == 0 {
					continue
				}
				var l line
				if !l.scan(one) && !l.parse(one) || !l.ours() {
					p.Skipped++
					continue
				}
				if !f.picks(&l) {
					continue
				}
				if n <= 0 || len(ring) < n {
					ring = append(ring, append([]byte(nil), one...))
				} else {
					at := &ring[p.Total%n]
					*at = append((*at)[:0], one...)
				}
				p.Total++
			}
			return nil
		})
		if err != nil {
			return Picked{}, err
		}
	}
	for i := max(0, p.Total-len(ring)); i < p.Total; i++ {
		if rec, ok := ParseLine(ring[i%len(ring)]); ok {
			p.Records = append(p.Records, rec)
		}
	}
	return p, nil
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
