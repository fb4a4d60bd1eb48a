package stats

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
)

func TestLast(t *testing.T) {
	log := synthetic(3000, 5, 9)
	var all []Record
	if skipped, err := Read(t.Context(), bytes.NewReader(log), func(r Record) error { all = append(all, r); return nil }); err != nil {
		t.Fatal(err)
	} else if page, err := Last(t.Context(), []io.Reader{bytes.NewReader(log)}, Filter{Advice: true}, 0); err != nil || page.Skipped != skipped || len(page.Records) != len(all) {
		t.Fatalf("all: %d of %d, %d skipped of %d, %v", len(page.Records), len(all), page.Skipped, skipped, err)
	}
	since := time.Date(2026, 1, 20, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		filter Filter
		picks  func(Record) bool
	}{
		"delegations": {Filter{}, func(r Record) bool { return r.Outcome() != "" }},
		"with advice": {Filter{Advice: true}, func(Record) bool { return true }},
		"failed":      {Filter{Failed: true}, func(r Record) bool { return r.Outcome() != "" && !OK(r.Outcome()) }},
		"one kind": {Filter{Status: "proven", TaskType: "fix", Model: "gemma3:27b", Since: since}, func(r Record) bool {
			return r.Status == "proven" && r.TaskType == "fix" && r.Model == "gemma3:27b" && !r.Timestamp.Before(since)
		}},
	} {
		var want []Record
		for _, r := range all {
			if c.picks(r) {
				want = append(want, r)
			}
		}
		half := len(log) / 2
		half += bytes.IndexByte(log[half:], '\n') + 1
		page, err := Last(t.Context(), []io.Reader{bytes.NewReader(log[:half]), bytes.NewReader(log[half:])}, c.filter, 20)
		got, picked := page.Records, page.Total
		if err != nil || picked != len(want) || len(got) != min(20, len(want)) || picked == 0 {
			t.Fatalf("%s: %d of %d, want %d; %v", name, len(got), picked, len(want), err)
		}
		for i, r := range got {
			if w := want[len(want)-len(got)+i]; r.ID != w.ID || !r.Timestamp.Equal(w.Timestamp) {
				t.Fatalf("%s: record %d is %+v, want %+v", name, i, r, w)
			}
		}
	}
}

// A brief says what the record says.
func TestBriefsAgreeWithRecords(t *testing.T) {
	log := append(synthetic(3000, 5, 11), []byte(strings.Join(odd, "\n"))...)
	var all []Record
	skipped, err := Read(t.Context(), bytes.NewReader(log), func(r Record) error { all = append(all, r); return nil })
	if err != nil {
		t.Fatal(err)
	}
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
