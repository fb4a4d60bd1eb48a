package stats

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"
)

// Every reader of a log sees the same lines in it, whatever it holds.
func FuzzReadersAgree(f *testing.F) {
	f.Add(synthetic(3, 0, 3))
	for _, text := range append(append([]string(nil), bad...), odd...) {
		f.Add([]byte(text + "\r\n\n \t\n" + text))
	}
	f.Fuzz(func(t *testing.T, log []byte) {
		read, skipped := 0, 0
		for rest := log; len(rest) > 0; {
			var one []byte
			if one, rest = nextLine(rest); len(one) == 0 {
				continue
			}
			if _, ok := ParseLine(one); ok {
				read++
			} else {
				skipped++
			}
		}
		brief := 0
		briefSkipped, err := Briefs(t.Context(), bytes.NewReader(log), func(b *Brief) { _ = b.Task(); brief++ })
		if err != nil || brief != read || briefSkipped != skipped {
			t.Errorf("%d and %d bad briefly, %d and %d in full, %v", brief, briefSkipped, read, skipped, err)
		}
		s, err := Summarize(t.Context(), []io.Reader{bytes.NewReader(log)}, Options{Workers: 1})
		if err != nil || s.Delegations+s.Analyzed != read || s.SkippedLines != skipped {
			t.Errorf("summary of %d, %d and %d bad, in full %d and %d, %v", s.Delegations, s.Analyzed, s.SkippedLines, read, skipped, err)
		}
		for name, rate := range map[string]float64{"success": s.SuccessRate, "proven": s.ProvenRate, "first try": s.FirstTryRate, "cache": s.CacheHitRate} {
			if !(rate >= 0 && rate <= 1) {
				t.Errorf("the rate %s is %v", name, rate)
			}
		}
		if _, err := json.Marshal(s); err != nil {
			t.Error(err)
		}
	})
}
