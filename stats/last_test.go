package stats

import (
	"bytes"
	"io"
	"testing"
	"time"
)

func TestLast(t *testing.T) {
	log := synthetic(3000, 5, 9)
	var all []Record
	if _, err := Read(t.Context(), bytes.NewReader(log), func(r Record) error { all = append(all, r); return nil }); err != nil {
		t.Fatal(err)
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
		got, picked, err := Last(t.Context(), []io.Reader{bytes.NewReader(log[:half]), bytes.NewReader(log[half:])}, c.filter, 20)
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
