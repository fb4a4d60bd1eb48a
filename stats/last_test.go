package stats

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
)

// records reads a log whole, line by line.
func records(log []byte) (all []Record, skipped int) {
	for len(log) > 0 {
		var one []byte
		if one, log = nextLine(log); len(one) == 0 {
			continue
		}
		if r, ok := ParseLine(one); ok {
			all = append(all, r)
		} else {
			skipped++
		}
	}
	return all, skipped
}

func TestLast(t *testing.T) {
	log := synthetic(3000, 5, 9)
	all, skipped := records(log)
	half := len(log) / 2
	half += bytes.IndexByte(log[half:], '\n') + 1
	for _, since := range []time.Time{{}, time.Date(2026, 1, 20, 0, 0, 0, 0, time.UTC)} {
		var want []Record
		for _, r := range all {
			if r.Outcome() != "" && !r.Timestamp.Before(since) {
				want = append(want, r)
			}
		}
		for n, shown := range map[int]int{20: 20, 0: len(want)} {
			page, err := Last(t.Context(), []io.Reader{bytes.NewReader(log[:half]), bytes.NewReader(log[half:])}, since, n)
			got := page.Records
			if err != nil || page.Total != len(want) || page.Skipped != skipped || len(got) != shown || len(want) < 21 || len(want) == len(all) {
				t.Fatalf("since %v: %d of %d, want %d; %d skipped of %d; %v", since, len(got), page.Total, len(want), page.Skipped, skipped, err)
			}
			for i, r := range got {
				if w := want[len(want)-len(got)+i]; r.ID != w.ID || !r.Timestamp.Equal(w.Timestamp) {
					t.Fatalf("since %v: record %d is %+v, want %+v", since, i, r, w)
				}
			}
		}
	}
}

// A brief says what the record says.
func TestBriefsAgreeWithRecords(t *testing.T) {
	log := append(synthetic(3000, 5, 11), []byte(strings.Join(odd, "\n"))...)
	all, skipped := records(log)
	i := 0
	bad, err := Briefs(t.Context(), bytes.NewReader(log), func(b *Brief) {
		r := all[i]
		i++
		files := len(r.Files)
		if r.Files == nil {
			files = -1
		}
		verified := r.VerificationPassed != nil || r.VerifyExit != nil || r.BaselineExit != nil
		if b.Task() != r.Task || b.TaskType != r.TaskType || b.Model != r.Model || b.Outcome != r.Outcome() || b.Unix != r.Timestamp.Unix() ||
			b.Files != files || b.Prompt != r.TokensPrompt/max(r.Attempts, 1) || b.Seconds != r.TimeSeconds || b.Verified != verified {
			t.Fatalf("line %d: %+v, task %q; the record is %+v", i, b, b.Task(), r)
		}
	})
	if err != nil || bad != skipped || i != len(all) {
		t.Errorf("%d of %d, %d skipped of %d, %v", i, len(all), bad, skipped, err)
	}
}
