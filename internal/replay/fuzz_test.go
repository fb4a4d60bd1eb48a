package replay

import (
	"encoding/json"
	"testing"
)

func FuzzRun(f *testing.F) {
	f.Add(ruled(3, 1))
	f.Add([]byte(`{"timestamp":"0001-01-01T00:00:00Z","task":"x","status":"proven","time_seconds":-1e308,"verification_passed":true}`))
	f.Add([]byte(`{"timestamp":"2026-01-01T00:00:00Z","task":"x","status":"failed","time_seconds":1e400}` + "\n{"))
	f.Fuzz(func(t *testing.T, log []byte) {
		r := run(t, log)
		if r.Successes > r.Outcomes {
			t.Errorf("%d of %d worked out", r.Successes, r.Outcomes)
		}
		for name, q := range map[string]Quality{"prior": r.Prior, "learned": r.Learned} {
			n := 0
			for _, b := range q.Calibration {
				n += b.N
			}
			if n != r.Outcomes || !(q.AUC >= 0 && q.AUC <= 1) || !(q.Brier >= 0 && q.Brier <= 1) {
				t.Errorf("%s: %+v of %d", name, q, r.Outcomes)
			}
		}
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
	})
}
