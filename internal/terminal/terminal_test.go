package terminal

import (
	"strings"
	"testing"
	"time"
)

func TestPlainLinesComeAtAPhaseAndThenEveryTenSeconds(t *testing.T) {
	var out strings.Builder
	now := time.Unix(0, 0)
	p := &Progress{w: &out, width: 80, since: now, now: func() time.Time { return now }}
	for range 25 { // one step a second
		p.Show(Step{Phase: "loading", Done: 1, Total: 2, Unit: "percent"})
		now = now.Add(time.Second)
	}
	p.Show(Step{Phase: "warming"})
	p.Close()
	want := "loading 50 %\nloading 50 % (10 s)\nloading 50 % (20 s)\nwarming\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestTheLiveLineStaysWithinTheTerminalAndGoesAway(t *testing.T) {
	var out strings.Builder
	p := &Progress{w: &out, width: 20, live: true, now: time.Now}
	p.Show(Step{Phase: "loading", Detail: strings.Repeat("ä", 50)})
	p.Close()
	parts := strings.Split(out.String(), "\r\x1b[K")
	if len(parts) != 3 || parts[2] != "" {
		t.Fatalf("got %q", out.String())
	}
	if n := len([]rune(parts[1])); n != 19 {
		t.Errorf("%d columns of 20 used: %q", n, parts[1])
	}
}

func TestDescribe(t *testing.T) {
	for want, s := range map[string]Step{
		"pulling 50 % of 2.0 GiB":  {Phase: "pulling", Done: 1 << 30, Total: 2 << 30, Unit: "bytes"},
		"prefill 10 of 40 tokens":  {Phase: "prefill", Done: 10, Total: 40, Unit: "tokens"},
		"generating 17 tokens · x": {Phase: "generating", Done: 17, Unit: "tokens", Detail: "x"},
	} {
		if got := Describe(s, 0); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for n, want := range map[int64]string{5: "5 B", 2048: "2 KiB", 3 << 20: "3 MiB", 5 << 29: "2.5 GiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestWrap(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		"one two  three":          "one two|three",
		"größer ≤ klein":          "größer|≤ klein",
		"a-word-that-is-long b c": "a-word-that-is-long|b c",
	} {
		if got := strings.Join(Wrap(text, 7), "|"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
