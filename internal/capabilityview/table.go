package capabilityview

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

type cell struct{ text, color string }

const (
	columnGap     = 2
	longestFirst  = 44 // columns of a table's first column, where the width allows
	shortestFirst = 20 // and where it doesn't, before the last columns are cut
)

// table lines up columns. Where they don't fit, the first one is shortened; a line that is still too long loses its end.
func (p *page) table(head []string, rows [][]cell) {
	if len(rows) == 0 {
		p.line(faint, "none")
		return
	}
	widths := make([]int, len(rows[0]))
	for i, h := range head {
		widths[i] = runes(h)
	}
	for r := range rows {
		for i := range rows[r] {
			limit := p.width
			if i == 0 {
				limit = min(longestFirst, p.width/2)
			}
			rows[r][i].text = cutName(clean(rows[r][i].text), limit)
			widths[i] = max(widths[i], runes(rows[r][i].text))
		}
	}
	all := (len(widths) - 1) * columnGap
	for _, w := range widths {
		all += w
	}
	if over := all - (p.width - 2); over > 0 && widths[0] > shortestFirst {
		widths[0] = max(shortestFirst, widths[0]-over)
		for r := range rows {
			rows[r][0].text = cutName(rows[r][0].text, widths[0])
		}
	}
	if head != nil {
		cells := make([]cell, len(head))
		for i, h := range head {
			cells[i] = cell{h, faint}
		}
		p.row(cells, widths)
	}
	for _, row := range rows {
		p.row(row, widths)
	}
}

func (p *page) row(cells []cell, widths []int) {
	left := p.width - 2
	var b strings.Builder
	for len(cells) > 0 && cells[len(cells)-1].text == "" {
		cells = cells[:len(cells)-1]
	}
	for i, c := range cells {
		if left <= 0 {
			break
		}
		s := cut(c.text, left)
		b.WriteString(p.paint(c.color, s))
		left -= runes(s)
		if i < len(cells)-1 {
			gap := min(widths[i]-runes(s)+columnGap, left)
			if left -= gap; left > 0 {
				b.WriteString(strings.Repeat(" ", max(0, gap)))
			}
		}
	}
	p.text.WriteString("  " + b.String() + "\n")
}

// clean takes out what would move a terminal's cursor: names come from foreign files.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError || unicode.Is(unicode.Cf, r) {
			return '?'
		}
		return r
	}, s)
}

func runes(s string) int { return utf8.RuneCountInString(s) }

func cut(s string, width int) string {
	if runes(s) <= width {
		return s
	}
	if width < 1 {
		return ""
	}
	return string([]rune(s)[:width-1]) + "…"
}

// cutName keeps of a path its end, which tells it from others.
func cutName(s string, width int) string {
	if all := []rune(s); strings.HasPrefix(s, "/") && len(all) > width && width > 0 {
		return "…" + string(all[len(all)-width+1:])
	}
	return cut(s, width)
}

func pad(s string, width int) string { return s + strings.Repeat(" ", max(0, width-runes(s))) }
