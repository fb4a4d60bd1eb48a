package stats

import (
	"context"
	"io"
	"time"
)

// Picked is what Last found: records oldest first, how many there are in all, and how many lines were bad.
type Picked struct {
	Records []Record
	Total   int
	Skipped int
}

// Last gives the last n delegations since then, or all for n = 0. Only those n are read in full.
func Last(ctx context.Context, logs []io.Reader, since time.Time, n int) (Picked, error) {
	var p Picked
	var ring [][]byte
	var buf []byte
	for _, r := range logs {
		err := blocks(ctx, r, func() []byte { return buf }, func(b []byte) error {
			buf = b
			p.Skipped += lines(b, func(l *line, one []byte) {
				if l.outcome() == "" || !since.IsZero() && l.unix < since.Unix() {
					return
				}
				if n <= 0 || len(ring) < n {
					ring = append(ring, append([]byte(nil), one...))
				} else {
					at := &ring[p.Total%n]
					*at = append((*at)[:0], one...)
				}
				p.Total++
			})
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
