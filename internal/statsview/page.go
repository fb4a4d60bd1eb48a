package statsview

import (
	"fmt"
	"io"
	"strings"
	"time"

	"localllm/internal/terminal"
	"localllm/stats"
)

// Page writes the summary for a terminal.
func Page(w io.Writer, s stats.Summary, o Options) error {
	p := &page{w: w, o: o}
	p.line("%s", p.paint(bold, "Delegations, "+span(s)))
	p.line("%s", p.paint(dim, clip(s.Log, o.width())))
	p.line("%s", plural(s.Delegations, "delegation")+", "+plural(s.Analyzed, "task")+" analyzed")
	if s.SkippedLines > 0 {
		p.line("%s", p.paint(yellow, plural(s.SkippedLines, "unreadable line")+" skipped"))
	}
	if s.Delegations == 0 {
		p.line("")
		p.line("Nothing was delegated here in that time.")
		return p.err
	}
	p.rates(s)
	switch s.GroupBy {
	case stats.ByStatus:
		p.groups("By status", s.Groups)
	case stats.ByModel:
		p.groups("By model", s.Models)
	case stats.ByDay:
	default:
		p.groups("By type", s.Types)
		p.groups("By model", s.Models)
	}
	p.days(s.Days)
	p.calibration(s.Calibration)
	p.failures(s.Failures)
	return p.err
}

func (p *page) rates(s stats.Summary) {
	width := min(24, p.o.width()-34)
	p.line("")
	for _, r := range []struct {
		name string
		rate float64
		of   int
		note string
	}{
		{"succeeded", s.SuccessRate, s.Delegations, ""},
		{"proven", s.ProvenRate, s.Delegations, "verify red before, green after"},
		{"first try", s.FirstTryRate, s.Delegations, ""},
		{"cache hits", s.CacheHitRate, s.Tokens.Prompt, "of prompt tokens"},
	} {
		note := r.note
		if p.o.width() < 72 {
			note = ""
		}
		p.line("  %s%6s  %s %s", pad(r.name, 11), percentOf(r.rate, r.of), p.paint(green, bar(r.rate, width))+pad("", width-len([]rune(bar(r.rate, width)))), p.paint(dim, note))
	}
	p.line("")
	p.named("time", fmt.Sprintf("%s or less in half of the cases, %s in nine of ten", seconds(s.Seconds.P50), seconds(s.Seconds.P90)))
	p.named("tokens", fmt.Sprintf("%s generated, %.4g a second; %s read, %s of them from the cache",
		short(s.Tokens.Generated), s.TokensPerSecond, short(s.Tokens.Prompt), short(s.Tokens.Cached)))
	if s.Tokens.CountedOn == 0 {
		p.named("kept out", "not counted: no line has the numbers")
		return
	}
	p.named("kept out", fmt.Sprintf("%s tokens of the caller's context, counted on %s of %s: what the local model read and wrote, minus request and result",
		short(s.Tokens.KeptOut), whole(s.Tokens.CountedOn), plural(s.Delegations, "delegation")))
}

// named writes a text beside its name, in as many lines as it takes.
func (p *page) named(name, text string) {
	for _, line := range terminal.Wrap(printable(text), p.o.width()-13) {
		p.line("  %s%s", pad(name, 11), line)
		name = ""
	}
}

func (p *page) groups(title string, groups []stats.Group) {
	if len(groups) == 0 {
		return
	}
	const columns = 9 + 11 + 8 + 11
	wide := p.o.width() >= 76
	name := min(26, p.o.width()-columns-2)
	if wide {
		name = min(26, p.o.width()-columns-2-18)
	}
	p.heading(title)
	head := pad("", name+2) + "    count  succeeded  proven  first try"
	if wide {
		head += "      p50      p90"
	}
	p.line("%s", p.paint(dim, head))
	for _, g := range groups {
		times := ""
		if wide {
			times = lead(seconds(g.Seconds.P50), 9) + lead(seconds(g.Seconds.P90), 9)
		}
		p.line("  %s%9s%11s%8s%11s%s", pad(clipName(g.Key, name), name), whole(g.Delegations),
			percent(g.SuccessRate), percent(g.ProvenRate), percent(g.FirstTryRate), times)
	}
}

// lead pads on the left by characters: «–» is one and has three bytes.
func lead(text string, width int) string {
	return pad("", width-len([]rune(text))) + text
}

// mostDays is how many days a page shows; the JSON has all.
const mostDays = 28

func (p *page) days(groups []stats.Group) {
	days := lastDays(groups, mostDays)
	if len(days) == 0 {
		return
	}
	top := 0
	for _, d := range days {
		top = max(top, d.Delegations)
	}
	p.heading("By day (UTC)")
	width := p.o.width() - 36
	for _, d := range days {
		if d.Delegations == 0 {
			p.line("  %s  %s", d.Key, p.paint(dim, "·"))
			continue
		}
		good := bar(float64(d.Accomplished)/float64(top), width)
		all := bar(float64(d.Delegations)/float64(top), width)
		bad := max(0, len([]rune(all))-len([]rune(good)))
		if bad == 0 && d.Accomplished < d.Delegations {
			bad = 1
		}
		p.line("  %s  %s%s %s", d.Key, p.paint(green, good), p.paint(red, strings.Repeat("░", bad)),
			plural(d.Delegations, "task")+", "+whole(d.Accomplished)+" well")
	}
}

// lastDays fills the days between with empty ones, back from the last.
func lastDays(groups []stats.Group, n int) []stats.Group {
	by := map[string]stats.Group{}
	first, last := "", ""
	for _, g := range groups {
		if _, err := time.Parse(time.DateOnly, g.Key); err != nil {
			continue
		}
		by[g.Key] = g
		if first == "" {
			first = g.Key
		}
		last = g.Key
	}
	if last == "" {
		return nil
	}
	end, _ := time.Parse(time.DateOnly, last)
	var days []stats.Group
	for i := n - 1; i >= 0; i-- {
		key := end.AddDate(0, 0, -i).Format(time.DateOnly)
		if key < first {
			continue
		}
		g := by[key]
		g.Key = key
		days = append(days, g)
	}
	return days
}

func (p *page) calibration(buckets []stats.Bucket) {
	if len(buckets) > 0 {
		p.heading("The score against what came")
		p.buckets(buckets)
	}
}

// buckets is a calibration table, with a bar for what came.
func (p *page) buckets(buckets []stats.Bucket) {
	p.line("%s", p.paint(dim, "  score      count  foretold  came"))
	width := min(30, p.o.width()-42)
	for _, b := range buckets {
		p.line("  %s%8s%10s%6s  %s", pad(b.Bucket, 8), whole(b.N), percent(b.Predicted), percent(b.Observed), p.paint(green, bar(b.Observed, width)))
	}
}

func (p *page) failures(failures []stats.Failure) {
	if len(failures) == 0 {
		return
	}
	p.heading("What failed most, and why")
	for _, f := range failures {
		p.line("  %7s  %s %s", whole(f.N), p.paint(red, pad(clip(f.Status, 10), 10)), clip(why(f), p.o.width()-23))
	}
}

func why(f stats.Failure) string {
	if f.Cause == "" {
		return "no cause logged"
	}
	return f.Cause
}
