package stats

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func summarize(t *testing.T, o Options, logs ...[]byte) Summary {
	t.Helper()
	var readers []io.Reader
	for _, log := range logs {
		readers = append(readers, bytes.NewReader(log))
	}
	s, err := Summarize(t.Context(), readers, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func near(a, b, tolerance float64) bool {
	return math.Abs(a-b) <= tolerance*math.Max(math.Abs(a), math.Abs(b))
}

func TestEqualsTheSlowReference(t *testing.T) {
	n, seeds := 3000, uint64(4)
	if text := os.Getenv("LOCALLLM_LINES"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
		seeds = 1
	}
	for seed := range seeds {
		log := synthetic(n, 1+int(seed)*5, seed)
		want := refSummary(log)
		for _, workers := range []int{1, 2, 5} {
			for _, by := range []By{ByTaskType, ByModel, ByDay, ByStatus} {
				compare(t, summarize(t, Options{Workers: workers, By: by}, log), want, by)
			}
		}
		if want.SkippedLines == 0 || want.Analyzed == 0 || len(want.ByStatus) < 10 {
			t.Fatalf("the synthetic log shows too little: %+v", want.Summary)
		}
	}
}

func compare(t *testing.T, got Summary, want *reference, by By) {
	t.Helper()
	if got.Delegations != want.Delegations || got.Analyzed != want.Analyzed || got.SkippedLines != want.SkippedLines {
		t.Fatalf("%d delegations, %d analyzed, %d skipped; want %d, %d, %d", got.Delegations, got.Analyzed, got.SkippedLines, want.Delegations, want.Analyzed, want.SkippedLines)
	}
	if !reflect.DeepEqual(got.ByStatus, want.ByStatus) || got.Tokens != want.Tokens {
		t.Fatalf("%v %+v, want %v %+v", got.ByStatus, got.Tokens, want.ByStatus, want.Tokens)
	}
	if !near(got.TokensPerSecond, want.paced/want.paceTime, 0.01) {
		t.Fatalf("%v tokens a second, want %v", got.TokensPerSecond, want.paced/want.paceTime)
	}
	if !slices.Equal(got.Failures, want.sortedFailures()) {
		t.Fatalf("failures %+v, want %+v", got.Failures, want.sortedFailures())
	}
	if len(got.Groups) != len(want.groups[by]) || got.GroupBy != by {
		t.Fatalf("%d groups by %s, want %d by %s", len(got.Groups), got.GroupBy, len(want.groups[by]), by)
	}
	for _, g := range got.Groups {
		w := want.groups[by][g.Key]
		if w == nil || g.Delegations != w.Delegations || g.Accomplished != w.Accomplished || g.Proven != w.Proven ||
			g.TokensGenerated != w.TokensGenerated || g.KeptOut != w.Group.KeptOut {
			t.Fatalf("group %+v, want %+v", g, w)
		}
		if w.tried > 0 && g.FirstTryRate != float64(w.first)/float64(w.tried) {
			t.Fatalf("group %s: first try %v, want %d of %d", g.Key, g.FirstTryRate, w.first, w.tried)
		}
		if !near(g.Seconds.P50, refQuantile(w.seconds, 0.5), 0.01) || !near(g.Seconds.P90, refQuantile(w.seconds, 0.9), 0.01) {
			t.Fatalf("group %s: %+v, want %v and %v", g.Key, g.Seconds, refQuantile(w.seconds, 0.5), refQuantile(w.seconds, 0.9))
		}
	}
	i := 0
	for b, c := range want.cells {
		if c.n == 0 {
			continue
		}
		g := got.Calibration[i]
		if g.Bucket != fmt.Sprintf("%.1f-%.1f", float64(b)/10, float64(b+1)/10) || g.N != int(c.n) || !near(g.Predicted, c.predicted/c.n, 1e-9) || g.Observed != c.good/c.n {
			t.Fatalf("calibration %+v, want %v of %+v", g, b, c)
		}
		i++
	}
	if i != len(got.Calibration) {
		t.Fatalf("%d buckets, want %d", len(got.Calibration), i)
	}
}

func TestEveryBadLineIsCountedAndEveryOddOneRead(t *testing.T) {
	for _, text := range bad {
		if s := summarize(t, Options{}, []byte(text+"\n")); s.SkippedLines != 1 || s.Delegations+s.Analyzed != 0 {
			t.Errorf("%q: %d skipped", text, s.SkippedLines)
		}
		if _, ok := ParseLine([]byte(text)); ok {
			t.Errorf("%q is a record", text)
		}
	}
	for _, text := range odd {
		if s := summarize(t, Options{}, []byte(text+"\n")); s.SkippedLines != 0 || s.Delegations+s.Analyzed != 1 {
			t.Errorf("%q: %d skipped, %d delegations", text, s.SkippedLines, s.Delegations)
		}
		if _, ok := ParseLine([]byte(text)); !ok {
			t.Errorf("%q is no record", text)
		}
	}
}

func TestOwnLinesGoTheFastWay(t *testing.T) {
	passed := true
	exit := 0
	for _, r := range []Record{
		{Timestamp: time.Now(), Task: "a «b» \"c\"\n", TaskType: "fix", Score: 0.78, Decision: "keep"},
		{Timestamp: time.Now(), Task: "x", TaskType: "fix", Score: 0.7812, Decision: "delegate", VerificationPassed: &passed,
			TokensGenerated: 847, TimeSeconds: 42.125, Status: "proven", Model: "m", Attempts: 2, Files: []string{"a", "b"},
			VerifyExit: &exit, DecodeSeconds: 3.5, TokensRead: 7},
	} {
		b, err := r.Line(func(s string) string { return s })
		if err != nil {
			t.Fatal(err)
		}
		var l line
		if !l.scan(bytes.TrimSpace(b)) {
			t.Errorf("%s needs encoding/json", b)
		}
	}
}

func TestSinceAndUntil(t *testing.T) {
	log := []byte(`{"timestamp":"2026-01-01T00:00:00Z","status":"proven"}
{"timestamp":"2026-01-02T00:00:00Z","status":"failed"}
{"timestamp":"2026-01-03T00:00:00Z","status":"failed"}
`)
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	if s := summarize(t, Options{Since: day(2)}, log); s.Delegations != 2 || s.ByStatus["proven"] != 0 || !s.From.Equal(day(2)) || !s.To.Equal(day(3)) {
		t.Errorf("since: %+v", s)
	}
	if s := summarize(t, Options{Since: day(2).Add(time.Millisecond)}, log); s.Delegations != 1 {
		t.Errorf("since a fraction of a second: %+v", s)
	}
	if s := summarize(t, Options{}); s.Delegations != 0 || s.Groups == nil || s.Calibration == nil || s.Failures == nil || s.From != nil {
		t.Errorf("nothing: %+v", s)
	}
}

func TestSeveralPartsAndTornEnds(t *testing.T) {
	one := `{"timestamp":"2026-01-01T00:00:00Z","status":"proven"}`
	s := summarize(t, Options{}, []byte(one+"\n"+one[:20]), []byte(one), nil, []byte("\n \n"+one+"\r\n"))
	if s.Delegations != 3 || s.SkippedLines != 1 {
		t.Errorf("%d delegations, %d skipped", s.Delegations, s.SkippedLines)
	}
}

func TestMonstrousLineCountsOnce(t *testing.T) {
	one := `{"timestamp":"2026-01-01T00:00:00Z","status":"proven"}` + "\n"
	monster := strings.Repeat("x", 3*longestLine) + "\n"
	log := one + monster + one
	s, err := Summarize(t.Context(), []io.Reader{iotest.OneByteReader(strings.NewReader(one)), strings.NewReader(log)}, Options{})
	if err != nil || s.Delegations != 3 || s.SkippedLines != 1 {
		t.Errorf("%d delegations, %d skipped, %v", s.Delegations, s.SkippedLines, err)
	}
}

func TestReadErrorsComeThrough(t *testing.T) {
	boom := io.ErrUnexpectedEOF // not the end
	if _, err := Summarize(t.Context(), []io.Reader{iotest.ErrReader(boom)}, Options{}); !errors.Is(err, boom) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Summarize(ctx, []io.Reader{strings.NewReader("x")}, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestTooManyKindsFoldTheSameInAnyOrder(t *testing.T) {
	var lines []string
	for i := range 3 * mostKinds {
		lines = append(lines, fmt.Sprintf(`{"timestamp":"2026-01-01T00:00:00Z","status":"proven","model":"m%04d","time_seconds":%d}`, i, i+1))
	}
	forth := summarize(t, Options{By: ByModel, Workers: 2}, []byte(strings.Join(lines, "\n")))
	slices.Reverse(lines)
	back := summarize(t, Options{By: ByModel, Workers: 1}, []byte(strings.Join(lines, "\n")))
	if !reflect.DeepEqual(forth, back) {
		t.Error("the order of lines changes the groups")
	}
	last := forth.Groups[len(forth.Groups)-1]
	if len(forth.Groups) != mostKinds+1 || last.Key != rest || last.Delegations != 2*mostKinds {
		t.Errorf("%d groups, the last %+v", len(forth.Groups), last)
	}
}

func TestNewestDaysAreKept(t *testing.T) {
	var b bytes.Buffer
	at := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range mostDays + 10 {
		fmt.Fprintf(&b, `{"timestamp":%q,"status":"proven"}`+"\n", at.AddDate(0, 0, i).Format(time.RFC3339))
	}
	days := summarize(t, Options{}, b.Bytes()).Days
	if days[0].Key != "2000-01-11" || days[mostDays-1].Key != at.AddDate(0, 0, mostDays+9).Format(time.DateOnly) || days[mostDays].Delegations != 10 {
		t.Errorf("from %v to %v, others %+v", days[0].Key, days[mostDays-1].Key, days[mostDays])
	}
}
