package statsview

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"localllm/stats"
	"localllm/test/chromium"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func browser(t *testing.T) *chromium.Browser {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	t.Cleanup(cancel)
	path, err := chromium.Provide(ctx)
	if err != nil {
		t.Fatal(err)
	}
	b, err := chromium.Start(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func writePage(t *testing.T, s stats.Summary) string {
	t.Helper()
	var page bytes.Buffer
	if err := HTML(&page, s); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "stats.html")
	if err := os.WriteFile(path, page.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// The page in a real browser. LOCALLLM_SCREENSHOTS=folder keeps what it looked like.
func TestPageInChromium(t *testing.T) {
	b := browser(t)
	s := sample(t)
	page := writePage(t, s)
	if err := b.Open(page); err != nil {
		t.Fatal(err)
	}
	t.Run("asks for nothing and says nothing", func(t *testing.T) {
		for _, r := range b.Requests() {
			if r != page && !strings.HasPrefix(r, "data:") {
				t.Errorf("it asked for %s", r)
			}
		}
		if len(b.Requests()) == 0 {
			t.Error("not even the page was asked for: the test sees no requests")
		}
		if said := b.Console(); len(said) != 0 {
			t.Errorf("the console says %q", said)
		}
		var scripts int
		if err := b.Eval(`document.querySelectorAll("script, iframe, object, link[rel=stylesheet]").length`, &scripts); err != nil || scripts != 0 {
			t.Errorf("%d scripts and the like, %v", scripts, err)
		}
	})
	t.Run("has the charts", func(t *testing.T) { charts(t, b, s) })
	t.Run("has the numbers of the JSON", func(t *testing.T) { numbers(t, b, s) })
	t.Run("fits its widths", func(t *testing.T) { looks(t, b) })
}

func charts(t *testing.T, b *chromium.Browser, s stats.Summary) {
	var got map[string]struct{ Bars, Dots, Drawn, Rows int }
	err := b.Eval(`Object.fromEntries([...document.querySelectorAll("section")].map(s => [s.id, {
		bars: s.querySelectorAll("svg g").length, dots: s.querySelectorAll("svg circle").length,
		drawn: [...s.querySelectorAll("svg rect, svg circle")].filter(e => e.getBoundingClientRect().width > 0).length,
		rows: s.querySelectorAll("details tbody tr").length }]))`, &got)
	if err != nil {
		t.Fatal(err)
	}
	for id, rows := range map[string]int{
		"chart-day": len(s.Days), "chart-status": len(s.ByStatus), "chart-task_type": len(s.Types), "chart-model": len(s.Models),
		"chart-calibration": len(s.Calibration), "chart-failures": len(s.Failures),
	} {
		c, ok := got[id]
		if !ok || c.Bars+c.Dots == 0 || c.Drawn == 0 || c.Rows != rows {
			t.Errorf("%s: %+v, want %d rows in its table", id, c, rows)
		}
	}
	if got["chart-calibration"].Dots != len(s.Calibration) || got["chart-day"].Bars != min(len(lastDays(s.Days, chartDays)), chartDays) {
		t.Errorf("%+v", got)
	}
}

// numbers compares what the page holds with the JSON, not with the summary that both came from.
func numbers(t *testing.T, b *chromium.Browser, s stats.Summary) {
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var j map[string]any
	if err := json.Unmarshal(raw, &j); err != nil {
		t.Fatal(err)
	}
	var figures map[string]string
	if err := b.Eval(`Object.fromEntries([...document.querySelectorAll("data[id]")].map(d => [d.id, d.value]))`, &figures); err != nil {
		t.Fatal(err)
	}
	tokens, seconds := j["tokens"].(map[string]any), j["seconds"].(map[string]any)
	for id, want := range map[string]any{
		"delegations": j["delegations"], "analyzed": j["analyzed"], "skipped_lines": j["skipped_lines"], "success_rate": j["success_rate"],
		"proven_rate": j["proven_rate"], "first_try_rate": j["first_try_rate"], "cache_hit_rate": j["cache_hit_rate"],
		"seconds_p50": seconds["p50"], "tokens_generated": tokens["generated"], "kept_out_of_context": tokens["kept_out_of_context"],
	} {
		if got, err := strconv.ParseFloat(figures[id], 64); err != nil || got != want.(float64) || math.IsNaN(got) {
			t.Errorf("%s: the page has %q, the JSON %v", id, figures[id], want)
		}
	}
	var tables map[string]map[string]map[string]string
	err = b.Eval(`Object.fromEntries([...document.querySelectorAll("section")].map(s => [s.id, Object.fromEntries(
		[...s.querySelectorAll("tbody tr")].map(r => [r.dataset.key, Object.fromEntries([...r.querySelectorAll("[data-f]")].map(c => [c.dataset.f, c.dataset.v]))]))]))`, &tables)
	if err != nil {
		t.Fatal(err)
	}
	same := func(table, key, field string, want any) {
		t.Helper()
		if got, err := strconv.ParseFloat(tables[table][key][field], 64); err != nil || got != want.(float64) {
			t.Errorf("%s, %s: %s is %q in the page, %v in the JSON", table, key, field, tables[table][key][field], want)
		}
	}
	for _, g := range j["groups"].([]any) {
		m := g.(map[string]any)
		for _, f := range []string{"delegations", "success_rate", "proven_rate", "first_try_rate", "tokens_generated"} {
			same("chart-task_type", m["key"].(string), f, m[f])
		}
		same("chart-task_type", m["key"].(string), "p90", m["seconds"].(map[string]any)["p90"])
	}
	for _, c := range j["calibration"].([]any) {
		m := c.(map[string]any)
		for _, f := range []string{"n", "predicted", "observed"} {
			same("chart-calibration", m["bucket"].(string), f, m[f])
		}
	}
	for status, n := range j["by_status"].(map[string]any) {
		same("chart-status", status, "n", n)
	}
}

// looks checks every width and colour scheme, with the tables open too: nothing may stick out, no text be too faint.
func looks(t *testing.T, b *chromium.Browser) {
	folder := os.Getenv("LOCALLLM_SCREENSHOTS")
	papers := map[string]string{}
	for _, width := range []int{1280, 400} {
		for _, scheme := range []string{"light", "dark"} {
			name := strconv.Itoa(width) + "-" + scheme
			if err := b.Look(width, scheme, "screen"); err != nil {
				t.Fatal(err)
			}
			for _, open := range []bool{false, true} {
				var out struct {
					Over  int
					Paper string
					Faint float64
					Small float64
				}
				if err := b.Eval(lookScript(open), &out); err != nil {
					t.Fatal(err)
				}
				papers[scheme] = out.Paper
				if out.Over > 0 || out.Faint < 4.5 || out.Small < 9.5 {
					t.Errorf("%s, tables open %v: sticks out by %d px, the faintest text has contrast %.1f, the smallest %.1f px", name, open, out.Over, out.Faint, out.Small)
				}
			}
			if err := b.Eval(lookScript(false), nil); err != nil {
				t.Fatal(err)
			}
			png, err := b.Screenshot()
			if err != nil || len(png) < 10_000 {
				t.Fatalf("%d bytes of screenshot, %v", len(png), err)
			}
			if folder != "" {
				if err := os.WriteFile(filepath.Join(folder, name+".png"), png, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if papers["light"] == papers["dark"] {
		t.Errorf("light and dark have the same paper, %s", papers["light"])
	}
	if err := b.Look(1280, "dark", "print"); err != nil {
		t.Fatal(err)
	}
	var printed struct {
		Paper  string
		Tables int
	}
	err := b.Eval(`({paper: getComputedStyle(document.body).backgroundColor, tables: [...document.querySelectorAll("details table")].filter(e => e.checkVisibility({contentVisibilityAuto: true}) && e.getBoundingClientRect().height > 20).length})`, &printed)
	if err != nil || printed.Paper != "rgb(255, 255, 255)" || printed.Tables == 0 {
		t.Errorf("in print: %+v, %v", printed, err)
	}
	if folder != "" {
		png, err := b.Screenshot()
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, "print.png"), png, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// lookScript opens or closes the tables and measures: how far the page is too wide, the contrast of the faintest
// text against the card, and the smallest text as drawn.
func lookScript(open bool) string {
	return `(() => {
	document.querySelectorAll("details").forEach(d => d.open = ` + strconv.FormatBool(open) + `);
	const rgb = c => c.match(/[\d.]+/g).slice(0, 3).map(x => x / 255).map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
	const light = c => { const [r, g, b] = rgb(c); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const card = light(getComputedStyle(document.querySelector("section")).backgroundColor);
	const contrast = c => { const l = light(c); return (Math.max(l, card) + 0.05) / (Math.min(l, card) + 0.05); };
	let faint = 99, small = 99;
	for (const e of document.querySelectorAll("h1, h2, p, dt, dd, li, td, th, summary, svg text, .note")) {
		const s = getComputedStyle(e), svg = e.closest("svg");
		faint = Math.min(faint, contrast(svg ? s.fill : s.color));
		const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
		small = Math.min(small, parseFloat(s.fontSize) * scale);
	}
	return {over: document.documentElement.scrollWidth - innerWidth, paper: getComputedStyle(document.body).backgroundColor, faint, small};
})()`
}
