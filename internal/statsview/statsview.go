// Package statsview shows what the delegation log says: on a terminal, as CSV, and as one HTML page that needs no
// network. It computes no figure of its own and reads no log.
package statsview

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"localllm/stats"
)

// Options say how a terminal page looks.
type Options struct {
	Width int  // of the terminal; 0 is 80
	Color bool // escape codes for colours
}

func (o Options) width() int {
	if o.Width <= 0 {
		return 80
	}
	return min(max(o.Width, 40), 140)
}

// page writes lines and remembers the first error.
type page struct {
	w   io.Writer
	o   Options
	err error
}

func (p *page) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, strings.TrimRight(fmt.Sprintf(format, args...), " "))
	}
}

func (p *page) heading(text string) {
	p.line("")
	p.line("%s", p.paint(bold, text))
}

type paint string

const (
	bold   paint = "1"
	dim    paint = "2"
	red    paint = "31"
	green  paint = "32"
	yellow paint = "33"
)

func (p *page) paint(c paint, text string) string {
	if !p.o.Color || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// bar is a fraction of width cells, in eighths.
func bar(fraction float64, width int) string {
	if math.IsNaN(fraction) {
		fraction = 0
	}
	eighths := int(math.Round(min(max(fraction, 0), 1) * float64(width) * 8))
	if eighths == 0 && fraction > 0 {
		eighths = 1
	}
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return text
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}

func clip(text string, width int) string {
	text = printable(text)
	if width <= 0 {
		return ""
	}
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
}

// clipName keeps of a path its end, which tells one model from another.
func clipName(text string, width int) string {
	text = printable(text)
	if all := []rune(text); strings.HasPrefix(text, "/") && width > 0 && len(all) > width {
		return "…" + string(all[len(all)-width+1:])
	}
	return clip(text, width)
}

// printable takes out what could drive a terminal: a log's texts come from models and other writers.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
			return -1
		}
		return r
	}, text)
}

func percent(x float64) string {
	switch {
	case x > 0 && x < 0.005:
		return "<1 %"
	case x < 1 && x > 0.995:
		return ">99 %"
	}
	return strconv.Itoa(int(math.Round(x*100))) + " %"
}

// percentOf is a dash where there was nothing to take a share of.
func percentOf(x float64, n int) string {
	if n == 0 {
		return "–"
	}
	return percent(x)
}

// whole writes a number with thousands apart.
func whole(n int) string {
	text := strconv.Itoa(n)
	sign := ""
	if text[0] == '-' {
		sign, text = "−", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return sign + text
}

// short writes a big number in three digits.
func short(n int) string {
	x, abs := float64(n), math.Abs(float64(n))
	for _, unit := range []struct {
		size float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e4, "k"}} {
		if abs >= unit.size {
			scale := unit.size
			if unit.name == "k" {
				scale = 1e3
			}
			return strings.Replace(strconv.FormatFloat(x/scale, 'f', max(0, 2-int(math.Log10(abs/scale))), 64), "-", "−", 1) + unit.name
		}
	}
	return whole(n)
}

func seconds(s float64) string {
	switch {
	case s == 0:
		return "–"
	case s < 10:
		return strconv.FormatFloat(s, 'f', 1, 64) + " s"
	case s < 120:
		return strconv.Itoa(int(math.Round(s))) + " s"
	case s < 7200:
		return strconv.Itoa(int(math.Round(s/60))) + " min"
	}
	return strconv.FormatFloat(s/3600, 'f', 1, 64) + " h"
}

func span(s stats.Summary) string {
	if s.From == nil || s.To == nil {
		return "no lines yet"
	}
	from, to := s.From.Format(time.DateOnly), s.To.Format(time.DateOnly)
	if from == to {
		return from
	}
	return from + " to " + to
}

// plural gives «1 line», «2 lines».
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return whole(n) + " " + what + "s"
}

// CSV writes the groups, one a row, under the names of the JSON.
func CSV(w io.Writer, s stats.Summary) error {
	c := csv.NewWriter(w)
	rows := [][]string{{string(s.GroupBy), "delegations", "accomplished", "proven", "success_rate", "proven_rate", "first_try_rate",
		"tokens_generated", "kept_out_of_context", "seconds_p50", "seconds_p90"}}
	number := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	for _, g := range s.Groups {
		rows = append(rows, []string{harmless(g.Key), strconv.Itoa(g.Delegations), strconv.Itoa(g.Accomplished), strconv.Itoa(g.Proven),
			number(g.SuccessRate), number(g.ProvenRate), number(g.FirstTryRate), strconv.Itoa(g.TokensGenerated),
			strconv.Itoa(g.KeptOut), number(g.Seconds.P50), number(g.Seconds.P90)})
	}
	if err := c.WriteAll(rows); err != nil {
		return fmt.Errorf("writing CSV: %w", err)
	}
	return nil
}

// harmless keeps a spreadsheet from taking a key that some writer chose for a formula.
func harmless(key string) string {
	if key != "" && strings.ContainsRune("=+-@\t\r", rune(key[0])) {
		return "'" + key
	}
	return key
}
