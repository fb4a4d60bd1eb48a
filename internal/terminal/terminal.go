// Package terminal shows progress and colours where a person looks on, and plain lines elsewhere. It never writes to
// standard output: results are printed by those who make them.
package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// Colour reports whether f is a terminal whose user wants colours.
func Colour(f *os.File) bool {
	return Is(f) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// Is reports whether f is a terminal.
func Is(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Width is f's width in columns, 80 where it has none.
func Width(f *os.File) int {
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 20 {
		return w
	}
	return 80
}

// Step is one thing that goes on.
type Step struct {
	Phase       string
	Done, Total int64
	Unit        string
	Detail      string
}

// Progress shows steps: one line that changes on a terminal, a line for each new phase and then one every 10 s
// elsewhere. Close takes the changing line away.
type Progress struct {
	mu      sync.Mutex
	w       io.Writer
	live    bool
	width   int
	begun   time.Time
	phase   string
	since   time.Time
	printed time.Time
	drawn   bool
	now     func() time.Time
}

// NewProgress writes to f, which is standard error as a rule.
func NewProgress(f *os.File) *Progress {
	now := time.Now()
	return &Progress{w: f, live: Is(f) && os.Getenv("TERM") != "dumb", width: Width(f), begun: now, since: now, now: time.Now}
}

const (
	redraw = 100 * time.Millisecond
	repeat = 10 * time.Second
)

// Show reports a step. It may be called from any goroutine.
func (p *Progress) Show(s Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	fresh := s.Phase != p.phase
	if fresh {
		p.phase, p.since = s.Phase, now
	}
	pause := repeat
	if p.live {
		pause = redraw
	}
	if !fresh && now.Sub(p.printed) < pause {
		return
	}
	p.printed = now
	text := Describe(s, now.Sub(p.since))
	if !p.live {
		fmt.Fprintf(p.w, "%s\n", text)
		return
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s", clip(text, p.width-1))
	p.drawn = true
}

// Close removes the changing line.
func (p *Progress) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drawn {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.drawn = false
	}
}

// Describe is a step in words: «loading 41 % (12 s)».
func Describe(s Step, elapsed time.Duration) string {
	var b strings.Builder
	b.WriteString(s.Phase)
	switch {
	case s.Total > 0 && s.Unit == "bytes":
		fmt.Fprintf(&b, " %d %% of %s", s.Done*100/s.Total, Bytes(s.Total))
	case s.Total > 0 && s.Unit == "percent":
		fmt.Fprintf(&b, " %d %%", s.Done*100/s.Total)
	case s.Total > 0:
		fmt.Fprintf(&b, " %d of %d %s", s.Done, s.Total, s.Unit)
	case s.Done == 1:
		fmt.Fprintf(&b, " 1 %s", strings.TrimSuffix(s.Unit, "s"))
	case s.Done > 0:
		fmt.Fprintf(&b, " %d %s", s.Done, s.Unit)
	}
	if s.Detail != "" {
		b.WriteString(" · " + s.Detail)
	}
	if elapsed >= time.Second {
		fmt.Fprintf(&b, " (%d s)", int(elapsed.Seconds()))
	}
	return b.String()
}

// Bytes is n in the unit that reads best, binary.
func Bytes(n int64) string {
	const kib = 1 << 10
	switch {
	case n >= kib*kib*kib:
		return fmt.Sprintf("%.1f GiB", float64(n)/(kib*kib*kib))
	case n >= kib*kib:
		return fmt.Sprintf("%.0f MiB", float64(n)/(kib*kib))
	case n >= kib:
		return fmt.Sprintf("%.0f KiB", float64(n)/kib)
	}
	return fmt.Sprintf("%d B", n)
}

// Wrap breaks text at spaces into lines of at most so many characters; a longer word has a line of its own.
func Wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}

func clip(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:max(width-1, 0)]) + "…"
}
