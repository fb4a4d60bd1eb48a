package statsview

import (
	"bytes"
	"encoding/csv"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"localllm/internal/replay"
	"localllm/scoring"
	"localllm/stats"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is\n%s\nupdate it by: go test ./internal/statsview -run %s -update", name, got, t.Name())
	}
}

// fits checks what every terminal page has to keep to.
func fits(t *testing.T, text string, width int) {
	t.Helper()
	for _, line := range strings.Split(text, "\n") {
		if n := utf8.RuneCountInString(line); n > width {
			t.Errorf("%d characters in a line of %d: %q", n, width, line)
		}
		if strings.HasSuffix(line, " ") {
			t.Errorf("space at the end of %q", line)
		}
	}
}

func TestPage(t *testing.T) {
	s := sample(t)
	for name, width := range map[string]int{"page.txt": 80, "narrow.txt": 56, "wide.txt": 120} {
		var b bytes.Buffer
		if err := Page(&b, s, Options{Width: width}); err != nil {
			t.Fatal(err)
		}
		fits(t, b.String(), width)
		golden(t, name, b.Bytes())
	}
}

func TestPageByEachGrouping(t *testing.T) {
	s := sample(t)
	for by, want := range map[stats.By][2]string{
		stats.ByModel: {"By model", "By type"}, stats.ByStatus: {"By status", "By model"}, stats.ByDay: {"By day", "By type"}, stats.ByTaskType: {"By type", "By status"},
	} {
		s.GroupBy = by
		s.Groups = s.Types
		var b bytes.Buffer
		if err := Page(&b, s, Options{}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), want[0]) || strings.Contains(b.String(), want[1]) {
			t.Errorf("by %s: has no %q, or has %q", by, want[0], want[1])
		}
	}
}

func TestEmptyPages(t *testing.T) {
	s := summarize(t, nil, "")
	var b bytes.Buffer
	if err := Page(&b, s, Options{Color: true}); err != nil || !strings.Contains(b.String(), "Nothing was delegated") {
		t.Errorf("%s %v", b.String(), err)
	}
	b.Reset()
	if err := HTML(&b, s); err != nil || !strings.Contains(b.String(), "Nothing was delegated") || strings.Contains(b.String(), "<svg") {
		t.Errorf("%s %v", b.String(), err)
	}
	b.Reset()
	if err := Ledger(&b, nil, Options{}); err != nil || !strings.Contains(b.String(), "Nothing was delegated") {
		t.Errorf("%s %v", b.String(), err)
	}
	b.Reset()
	if err := Replay(&b, replay.Report{Log: "x"}, Options{}); err != nil || !strings.Contains(b.String(), "0 delegations") {
		t.Errorf("%s %v", b.String(), err)
	}
}

// What is in a log comes from models and other writers: it must not drive the terminal or the page.
func TestHostileTexts(t *testing.T) {
	evil := "\x1b]0;owned\x07\u202e<img src=x onerror=alert(1)>"
	log := `{"timestamp":"2026-01-01T00:00:00Z","status":"failed","model":"\u001b]0;owned\u0007\u202e<img src=x onerror=alert(1)>","task_type":"=1+1","cause":"\u001b[31m\"><script>"}` + "\n"
	s := summarize(t, []byte(log), stats.ByTaskType)
	var page, html, table, ledger bytes.Buffer
	for _, err := range []error{Page(&page, s, Options{}), HTML(&html, s), CSV(&table, s),
		Ledger(&ledger, []stats.Record{{Task: evil, Model: evil, Status: "failed", Cause: evil, TaskType: evil}}, Options{Width: 140})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"page": page.String(), "html": html.String(), "ledger": ledger.String()} {
		if strings.ContainsAny(text, "\x1b\x07") || name != "html" && strings.ContainsRune(text, 0x202e) {
			t.Errorf("%s has control characters: %q", name, text)
		}
	}
	for _, tag := range []string{"<img", "<script"} {
		if strings.Contains(html.String(), tag) {
			t.Errorf("the page has %s from the log", tag)
		}
	}
	if !strings.Contains(table.String(), "'=1+1") {
		t.Errorf("a spreadsheet would compute %q", table.String())
	}
}

func TestCSVHasTheGroups(t *testing.T) {
	s := sample(t)
	var b bytes.Buffer
	if err := CSV(&b, s); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != len(s.Groups)+1 || rows[0][0] != "task_type" || rows[1][0] != s.Groups[0].Key || rows[1][1] != exact(s.Groups[0].Delegations) || rows[1][4] != exact(s.Groups[0].SuccessRate) {
		t.Errorf("%q %v", rows, err)
	}
}

func TestLedger(t *testing.T) {
	at := time.Date(2026, 1, 21, 15, 30, 0, 0, time.UTC)
	records := []stats.Record{
		{Timestamp: at, Task: "Generate CRUD routes for the\nUser model", TaskType: "generate", Status: "proven", Model: "qwen3-coder:30b", TokensGenerated: 847, TimeSeconds: 42},
		{Timestamp: at.Add(time.Hour), Task: "Fix the parser " + strings.Repeat("at length ", 30), TaskType: "fix", Status: "failed", Cause: "verify red", Model: "hf.co/unsloth/Qwen3-Coder-30B", TokensGenerated: 123456, TimeSeconds: 4000},
		{Timestamp: at.Add(2 * time.Hour), Task: "Design auth", TaskType: "generate", Decision: "keep"},
	}
	for name, width := range map[string]int{"ledger.txt": 120, "ledger-narrow.txt": 80} {
		var b bytes.Buffer
		if err := Ledger(&b, records, Options{Width: width}); err != nil {
			t.Fatal(err)
		}
		fits(t, b.String(), width)
		golden(t, name, b.Bytes())
	}
}

func TestAdvice(t *testing.T) {
	task := scoring.Task{Text: "Generate Express CRUD routes for User model", Type: "generate", Model: "qwen3-coder:30b", Outputs: 1}
	h := scoring.History{Similar: scoring.Tally{Tried: 12, Succeeded: 3}, Alike: scoring.Tally{Tried: 4, Succeeded: 1}}
	var b bytes.Buffer
	if err := Advice(&b, scoring.Score(task, h, scoring.Fit(task, scoring.Size{PromptBytes: 9000, Context: 32768})), Options{}); err != nil {
		t.Fatal(err)
	}
	fits(t, b.String(), 80)
	golden(t, "advice.txt", b.Bytes())
}

func TestReplayPage(t *testing.T) {
	bucket := []stats.Bucket{{Bucket: "0.4-0.5", Predicted: 0.48, Observed: 0.75, N: 1200}}
	r := replay.Report{Log: "log.jsonl", Outcomes: 1200, Successes: 900, Unjudged: 40, Skipped: 3,
		Prior: replay.Quality{AUC: 0.5, Brier: 0.25, Calibration: bucket}, Learned: replay.Quality{AUC: 0.83, Brier: 0.14, Calibration: bucket}}
	var b bytes.Buffer
	if err := Replay(&b, r, Options{}); err != nil {
		t.Fatal(err)
	}
	fits(t, b.String(), 80)
	golden(t, "replay.txt", b.Bytes())
}

func TestColorOnlyWhenAsked(t *testing.T) {
	var plain, colored bytes.Buffer
	if err := errors.Join(Page(&plain, sample(t), Options{}), Page(&colored, sample(t), Options{Color: true})); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(plain.String(), "\x1b") || !strings.Contains(colored.String(), "\x1b[32m") {
		t.Error("colours are where they should not be, or not where they should")
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("pipe gone") }

func TestWriteErrorsComeThrough(t *testing.T) {
	s := sample(t)
	for name, err := range map[string]error{
		"page": Page(broken{}, s, Options{}), "html": HTML(broken{}, s), "csv": CSV(broken{}, s),
		"ledger": Ledger(broken{}, []stats.Record{{}}, Options{}), "advice": Advice(broken{}, scoring.Advice{}, Options{}),
	} {
		if err == nil || !strings.Contains(err.Error(), "pipe gone") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNumbersAsPeopleReadThem(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 9999: "9,999", 12345: "12.3k", 100000: "100k", 2710000: "2.71M", -45678: "−45.7k", 3_000_000_000: "3.00G"} {
		if got := short(n); got != want {
			t.Errorf("short(%d) = %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int]string{-1234567: "−1,234,567", 100: "100", 1000: "1,000", -100: "−100"} {
		if got := whole(n); got != want {
			t.Errorf("whole(%d) = %s, want %s", n, got, want)
		}
	}
	for x, want := range map[float64]string{0: "0 %", 0.001: "<1 %", 0.999: ">99 %", 1: "100 %", 0.125: "13 %"} {
		if got := percent(x); got != want {
			t.Errorf("percent(%v) = %s, want %s", x, got, want)
		}
	}
	for x, want := range map[float64]string{0: "–", 0.25: "0.2 s", 42: "42 s", 600: "10 min", 9000: "2.5 h"} {
		if got := seconds(x); got != want {
			t.Errorf("seconds(%v) = %s, want %s", x, got, want)
		}
	}
	for x, want := range map[float64]string{0: "", 0.0001: "▏", 0.5: "█████", 1: "██████████", 2: "██████████", 0.55: "█████▌"} {
		if got := bar(x, 10); got != want {
			t.Errorf("bar(%v) = %s, want %s", x, got, want)
		}
	}
}

func TestAPathKeepsItsEnd(t *testing.T) {
	for in, want := range map[string]string{"/models/a/practice.gguf": "…a/practice.gguf", "a-model-of-some-length:30b": "a-model-of-some…", "/short.gguf": "/short.gguf"} {
		if got := clipName(in, 16); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}
