// Package capabilityview draws the capability report as a page for people. It decides nothing and asks nobody.
package capabilityview

import (
	"fmt"
	"io"
	"os"
	"strings"

	"localllm/capability"
	"localllm/internal/terminal"
)

// Style is how a page is drawn.
type Style struct {
	Width int  // columns; 0: 100
	Color bool // escape sequences for colours
}

const (
	usualWidth    = 100
	smallestWidth = 40
	// Columns of a device's name and of its bar, on wide pages and on narrow ones.
	wideFrom               = 90
	wideLabel, wideBar     = 32, 24
	narrowLabel, narrowBar = 20, 8
)

// StyleFor fits a page to where it goes: colours only on a terminal, and not where NO_COLOR is set.
func StyleFor(out *os.File) Style {
	if !terminal.Is(out) {
		return Style{}
	}
	return Style{Width: terminal.Width(out), Color: terminal.Colour(out)}
}

// Write draws the page.
func Write(w io.Writer, r capability.Report, style Style) error {
	if style.Width <= 0 {
		style.Width = usualWidth
	}
	p := &page{style: style, width: max(style.Width, smallestWidth)}
	p.machine(r.Hardware)
	p.engines(r.Engines)
	p.models(r)
	p.recommendation(r)
	p.agents(r.Agents)
	p.footer(r)
	_, err := io.WriteString(w, p.text.String())
	return err
}

type page struct {
	style Style
	width int
	text  strings.Builder
}

// Colours by what they say.
const (
	plain = ""
	bold  = "1"
	faint = "2"
	red   = "31"
	green = "32"
	amber = "33"
)

func (p *page) paint(color, s string) string {
	if !p.style.Color || color == plain {
		return s
	}
	return "\x1b[" + color + "m" + s + "\x1b[0m"
}

func (p *page) heading(s string) {
	if p.text.Len() > 0 {
		p.text.WriteByte('\n')
	}
	p.text.WriteString(p.paint(bold, s) + "\n")
}

// line writes one line, indented, cut at the page's width.
func (p *page) line(color, format string, args ...any) {
	s := cut(clean(fmt.Sprintf(format, args...)), p.width-2)
	p.text.WriteString("  " + p.paint(color, s) + "\n")
}

// paragraph writes text that may take several lines.
func (p *page) paragraph(color, mark, s string) {
	indent := strings.Repeat(" ", runes(mark))
	for i, line := range terminal.Wrap(clean(s), p.width-2-runes(mark)) {
		if i == 0 {
			p.line(color, "%s%s", mark, line)
			continue
		}
		p.line(color, "%s%s", indent, line)
	}
}

func (p *page) machine(m capability.Machine) {
	p.heading("Machine")
	name := m.CPU.Name
	if name == "" {
		name = "processor not known"
	}
	p.line(plain, "%s/%s, %s, %d cores", m.OS, m.Arch, name, m.CPU.Cores)
	p.usage("main memory", m.Memory.TotalBytes, m.Memory.AvailableBytes, "available")
	for _, g := range m.GPUs {
		label := fmt.Sprintf("%d %s", g.Index, g.Name)
		if g.MemoryKind != capability.Dedicated {
			label += " (" + string(g.MemoryKind) + ")"
		}
		p.usage(label, g.TotalBytes, g.FreeBytes, "free")
		for _, h := range g.Processes {
			p.line(faint, "    %s", holder(h))
		}
	}
	if len(m.GPUs) == 0 {
		p.line(faint, "no GPU was found")
	}
}

func holder(h capability.Process) string {
	name := h.Name
	if name == "" {
		name = "not visible"
	}
	if h.UsedBytes == nil {
		return fmt.Sprintf("%s (pid %d), memory not known", name, h.PID)
	}
	return fmt.Sprintf("%s (pid %d), %s", name, h.PID, capability.GiB(*h.UsedBytes))
}

// usage draws a bar of what is used and what is free. What is not known is no bar.
func (p *page) usage(label string, total, free *int64, word string) {
	labelWidth, barWidth := wideLabel, wideBar
	if p.width < wideFrom {
		labelWidth, barWidth = narrowLabel, narrowBar
	}
	label = pad(cut(clean(label), labelWidth), labelWidth)
	switch {
	case total == nil && free == nil:
		p.line(plain, "%s memory not known", label)
	case total == nil || *total <= 0:
		p.line(plain, "%s %s %s of an unknown total", label, capability.GiB(*free), word)
	case free == nil:
		p.line(plain, "%s %s, how much is %s is not known", label, capability.GiB(*total), word)
	default:
		used := max(0, min(*total, *total-*free))
		bar, color := Bar(used, *total, barWidth), green
		switch {
		case used*10 >= *total*9:
			color = red
		case used*2 >= *total:
			color = amber
		}
		p.text.WriteString(fmt.Sprintf("  %s %s %s\n", label, p.paint(color, bar),
			cut(fmt.Sprintf("%9s of %9s %s", capability.GiB(*free), capability.GiB(*total), word), max(1, p.width-4-labelWidth-barWidth))))
	}
}

// Bar draws used of total in so many columns. Any use at all shows, and a bar is full only when all is used.
func Bar(used, total int64, columns int) string {
	n := 0
	if total > 0 {
		n = int(float64(used) / float64(total) * float64(columns))
	}
	if used > 0 {
		n = max(n, 1)
	}
	if used < total {
		n = min(n, columns-1)
	}
	n = min(max(n, 0), columns)
	return strings.Repeat("█", n) + strings.Repeat("░", columns-n)
}
