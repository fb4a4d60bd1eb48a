package stats

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func same(s string) string { return s }

func TestLineHasTheDocumentedFieldsInOrder(t *testing.T) {
	passed := true
	exit, red := 0, 1
	r := Record{
		Timestamp: time.Date(2026, 1, 21, 16, 30, 0, 5, time.FixedZone("", 3600)), Task: "Generate CRUD <routes>", TaskType: "generate",
		Score: 0.78, Decision: "delegate", VerificationPassed: &passed, TokensGenerated: 847, TimeSeconds: 42,
		ID: "t1", Status: "proven", Model: "qwen3-coder:30b", Engine: "ollama", Profile: "local", Attempts: 1,
		TokensPrompt: 2000, TokensCached: 1500, Files: []string{"routes.js"}, VerifyExit: &exit, BaselineExit: &red, Session: "s", Version: "1",
	}
	b, err := r.Line(same)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"timestamp":"2026-01-21T15:30:00Z","task":"Generate CRUD <routes>","task_type":"generate","score":0.78,"decision":"delegate","verification_passed":true,"tokens_generated":847,"time_seconds":42,` +
		`"id":"t1","status":"proven","model":"qwen3-coder:30b","engine":"ollama","profile":"local","attempts":1,"tokens_prompt":2000,"tokens_cached":1500,"files":["routes.js"],"verify_exit":0,"baseline_exit":1,"session":"s","version":"1"}` + "\n"
	if string(b) != want {
		t.Errorf("\n got %s\nwant %s", b, want)
	}
	got, ok := ParseLine(bytes.TrimSpace(b))
	r.Timestamp = r.Timestamp.UTC().Truncate(time.Second)
	if !ok || !reflect.DeepEqual(got, r) {
		t.Errorf("read back: %+v", got)
	}
}

func TestAdviceLineHasNullWhereNothingWasVerified(t *testing.T) {
	b, err := Record{Timestamp: time.Unix(0, 0), Task: "x", Decision: "keep"}.Line(same)
	if err != nil || !strings.Contains(string(b), `"verification_passed":null,"tokens_generated":0,"time_seconds":0,"files":null}`) {
		t.Errorf("%s %v", b, err)
	}
	if r, ok := ParseLine(b); !ok || r.Outcome() != "" || r.Files != nil {
		t.Errorf("%+v %v", r, ok)
	}
}

// The secret stands across the cut: redacting after cutting would leave its first half.
func TestSecretsAreRedactedBeforeTheCut(t *testing.T) {
	secret := "sk-abcdefghijklmnop"
	task := strings.Repeat("é", TaskLimit-5) + secret + strings.Repeat("z", 100)
	b, err := Record{Task: task, Reason: "said " + secret + "\nand " + strings.Repeat("more ", 99)}.Line(func(s string) string {
		return strings.ReplaceAll(s, secret, "[redacted]")
	})
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), "sk-a") {
		t.Errorf("a secret is in %s", b)
	}
	if n := len([]rune(m["task"].(string))); n != TaskLimit {
		t.Errorf("the task has %d characters", n)
	}
	if why := m["reason"].(string); len([]rune(why)) != ReasonLimit || strings.Contains(why, "\n") {
		t.Errorf("reason %q", why)
	}
	if bytes.Count(b, []byte("\n")) != 1 {
		t.Errorf("more than one line: %q", b)
	}
}

func TestManyFilesAndImpossibleNumbers(t *testing.T) {
	b, err := Record{Decision: "x", Files: make([]string, 50)}.Line(same)
	if err != nil {
		t.Fatal(err)
	}
	if r, _ := ParseLine(b); len(r.Files) != filesLimit {
		t.Errorf("%d files", len(r.Files))
	}
	if _, err := (Record{Score: math.NaN()}).Line(same); err == nil {
		t.Error("NaN was written")
	}
}

func TestOutcomeOfOldLines(t *testing.T) {
	for text, want := range map[string]string{
		`"verification_passed":true`:                        Passed,
		`"verification_passed":false`:                       "failed",
		`"verification_passed":null,"tokens_generated":5`:   "unverified",
		`"verification_passed":null,"time_seconds":5`:       "unverified",
		`"decision":"keep"`:                                 "",
		`"status":"proven","verification_passed":false`:     "proven",
		`"decision":"keep","status":"analyzed","files":[1]`: "",
	} {
		r, ok := ParseLine([]byte(`{"timestamp":"2026-01-01T00:00:00Z",` + text + `}`))
		if !ok || r.Outcome() != want {
			t.Errorf("%s: %q %v, want %q", text, r.Outcome(), ok, want)
		}
	}
}

func TestKeptOut(t *testing.T) {
	all := Kept{Read: 5000, Written: 900, Request: 150, Result: 250, Prompt: 6000, Generated: 1000}
	claims := all
	claims.Prompt, claims.Generated = 4000, 100
	uncounted := all
	uncounted.Prompt, uncounted.Generated = 0, 0
	for name, c := range map[string]struct {
		kept Kept
		ok   bool
		want int
	}{
		"all of it":                          {all, true, 5500},
		"what failed kept nothing out":       {all, false, -400},
		"no more than the engine counted":    {claims, true, 3700},
		"nothing where the engine said none": {uncounted, true, -400},
	} {
		if got := c.kept.Out(c.ok); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestParseSince(t *testing.T) {
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"": {}, "7d": now.AddDate(0, 0, -7), "36h": now.Add(-36 * time.Hour), "2w": now.AddDate(0, 0, -14), "5m": now.Add(-5 * time.Minute),
		"2026-01-31": time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC), " 2026-01-31T01:02:03Z ": time.Date(2026, 1, 31, 1, 2, 3, 0, time.UTC),
	} {
		if got, err := ParseSince(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"d", "x", "7y", "-7d", "7 days", "2026-13-01", "9999999d"} {
		if _, err := ParseSince(text, now); err == nil || !strings.Contains(err.Error(), "give a span") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestParseBy(t *testing.T) {
	if by, err := ParseBy(""); by != ByTaskType || err != nil {
		t.Errorf("%v %v", by, err)
	}
	if _, err := ParseBy("moon"); err == nil {
		t.Error("moon is a grouping")
	}
}

func TestQuickTimeAgreesWithTheCalendar(t *testing.T) {
	for at := time.Date(1, 1, 1, 3, 4, 5, 0, time.UTC); at.Year() < 2400; at = at.Add(977 * time.Hour) {
		if sec, ok := quickTime([]byte(at.Format(time.RFC3339))); ok && sec != at.Unix() {
			t.Fatalf("%v: %d, want %d", at, sec, at.Unix())
		}
	}
}

func TestQuantilesAreWithinOnePercent(t *testing.T) {
	for _, seconds := range []float64{0.0015, 0.9, 1, 42, 3600, 86400} {
		var h histogram
		h.add(int64(seconds * 1e6))
		if got := h.seconds(0.5); !near(got, seconds, 0.01) {
			t.Errorf("%v became %v", seconds, got)
		}
	}
}

func FuzzScanAgreesWithEncodingJSON(f *testing.F) {
	for _, text := range append(append([]string(nil), bad...), odd...) {
		f.Add([]byte(text))
	}
	f.Add(bytes.TrimSpace(synthetic(1, 0, 3)))
	f.Fuzz(func(t *testing.T, b []byte) {
		var quick, slow line
		if !quick.scan(b) {
			return
		}
		if !slow.parse(b) {
			t.Fatalf("%q: only the fast way takes it", b)
		}
		if quick.escaped {
			quick.task, quick.escaped = []byte((&Brief{l: quick}).Task()), false
		}
		quick.normal()
		slow.normal()
		if !reflect.DeepEqual(quick, slow) {
			t.Fatalf("%q:\nfast %+v\nslow %+v", b, quick, slow)
		}
	})
}

// normal makes an empty text and a missing one the same, as all readers of a line do.
func (l *line) normal() {
	for _, p := range []*[]byte{&l.taskType, &l.decision, &l.status, &l.model, &l.why, &l.reason, &l.task} {
		if len(*p) == 0 {
			*p = nil
		}
	}
}
