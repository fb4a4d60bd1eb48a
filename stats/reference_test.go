package stats

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// reference is the summary as one would write it without a thought for speed: maps, floats, sorting. It shares no
// code with the real one but Summary's types.
type reference struct {
	Summary
	groups   map[By]map[string]*refGroup
	paced    float64
	paceTime float64
	cells    [10]struct{ n, good, predicted float64 }
	failures map[[2]string]int
}

type refGroup struct {
	Group
	tried, first int
	seconds      []float64
}

func refSummary(log []byte) *reference {
	r := &reference{groups: map[By]map[string]*refGroup{ByTaskType: {}, ByModel: {}, ByDay: {}, ByStatus: {}}, failures: map[[2]string]int{}}
	r.ByStatus = map[string]int{}
	for text := range bytes.SplitSeq(log, []byte("\n")) {
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		if !r.line(text) {
			r.SkippedLines++
		}
	}
	return r
}

func (r *reference) line(text []byte) bool {
	var m map[string]any
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if !json.Valid(text) || dec.Decode(&m) != nil || m == nil {
		return false
	}
	str := func(k string) string { s, _ := m[k].(string); return s }
	num := func(k string) float64 {
		n, _ := m[k].(json.Number)
		f, err := strconv.ParseFloat(string(n), 64)
		if err != nil || f < 0 || f > 1e12 {
			return 0
		}
		return math.Round(f*1e6) / 1e6
	}
	count := func(k string) int { return int(num(k)) }
	at, err := time.Parse(time.RFC3339, str("timestamp"))
	if err != nil {
		at, err = time.Parse(time.RFC3339, strings.Replace(str("timestamp"), " ", "T", 1)+"Z")
	}
	if err != nil {
		return false
	}
	status := str("status")
	passed, judged := m["verification_passed"].(bool)
	switch {
	case status == "analyzed":
		status = ""
	case status != "":
	case judged && passed:
		status = "passed"
	case judged:
		status = "failed"
	case num("time_seconds") > 0 || count("tokens_generated") > 0:
		status = "unverified"
	}
	if status == "" {
		if str("decision") == "" {
			return false
		}
		r.Analyzed++
		return true
	}
	r.delegation(status, str, num, count, at, m)
	return true
}

func (r *reference) delegation(status string, str func(string) string, num func(string) float64, count func(string) int, at time.Time, m map[string]any) {
	ok := slices.Contains([]string{"proven", "unproven", "unverified", "answered", "passed"}, status)
	r.Delegations++
	r.ByStatus[status]++
	kept := 0
	if n := count("tokens_read") + count("tokens_written") + count("tokens_request") + count("tokens_result"); n > 0 {
		r.Tokens.CountedOn++
		kept = -count("tokens_request") - count("tokens_result")
		if ok {
			kept += min(count("tokens_read"), count("tokens_prompt")/max(count("attempts"), 1)) + min(count("tokens_written"), count("tokens_generated"))
		}
	}
	r.Tokens.KeptOut += kept
	r.Tokens.Prompt += count("tokens_prompt")
	r.Tokens.Cached += min(count("tokens_cached"), count("tokens_prompt"))
	r.Tokens.Generated += count("tokens_generated")
	or := func(s string) string {
		if s == "" {
			return "(not named)"
		}
		return s
	}
	for by, key := range map[By]string{ByTaskType: or(str("task_type")), ByModel: or(str("model")), ByDay: at.UTC().Format(time.DateOnly), ByStatus: status} {
		g := r.groups[by][key]
		if g == nil {
			g = &refGroup{Group: Group{Key: key}}
			r.groups[by][key] = g
		}
		g.Delegations++
		g.TokensGenerated += count("tokens_generated")
		g.Group.KeptOut += kept
		if ok {
			g.Accomplished++
		}
		if status == "proven" {
			g.Proven++
		}
		if count("attempts") > 0 {
			g.tried++
			if ok && count("attempts") == 1 {
				g.first++
			}
		}
		if s := num("time_seconds"); s > 0 {
			g.seconds = append(g.seconds, s)
		}
	}
	took := num("decode_seconds")
	if took == 0 {
		took = num("time_seconds")
	}
	if took > 0 && count("tokens_generated") > 0 {
		r.paced += float64(count("tokens_generated"))
		r.paceTime += took
	}
	if !ok && status != "cancelled" {
		cause := str("cause")
		if cause == "" {
			cause = str("reason")
		}
		r.failures[[2]string{status, cause}]++
	}
	good := status == "proven" || status == "passed"
	score, isNumber := m["score"].(json.Number)
	raw, err := strconv.ParseFloat(string(score), 64)
	if isNumber && err == nil && math.Round(raw*1e6) <= 1e6 && (good || slices.Contains([]string{"failed", "rejected", "timed_out"}, status)) {
		c := &r.cells[min(int(math.Round(num("score")*1e6))/100000, 9)]
		c.n++
		c.predicted += num("score")
		if good {
			c.good++
		}
	}
}

func refQuantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return v[max(0, int(math.Ceil(q*float64(len(v))))-1)]
}

// sortedFailures is the ten most frequent, ties by status and cause.
func (r *reference) sortedFailures() []Failure {
	var out []Failure
	for k, n := range r.failures {
		out = append(out, Failure{Status: k[0], Cause: k[1], N: n})
	}
	slices.SortFunc(out, func(a, b Failure) int {
		if a.N != b.N {
			return b.N - a.N
		}
		return strings.Compare(a.Status+"\x00"+a.Cause, b.Status+"\x00"+b.Cause)
	})
	return out[:min(10, len(out))]
}
