package delegate

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// What is packed of a failed verify: a small model gets lost in more.
const (
	packedBytes = 3 << 10
	packedFirst = 1800 // of them for the first error, the rest for the end
	blockLines  = 25
)

// A line that begins an error in the tools that people verify with: compilers, test runners, tracebacks.
var errorLine = regexp.MustCompile(`(?i)^\S*:\d+(:\d+)?:|^\s*--- FAIL|^\s*error(\[\w+\])?:|^\s*(fatal|panic):|^Traceback \(|^E\s{2,}|\bAssertionError\b|\berror TS\d+|^\s*● |^not ok\b|^FAIL(ED)?\b|^thread '.*' panicked|^\s*\d+:\d+\s+error\b`)

// Volatile parts would make two packings of one error differ.
var volatile = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]"), ""},
	{regexp.MustCompile(`\b0x[0-9a-fA-F]{6,16}\b`), "0x…"},
	{regexp.MustCompile(`\(\d+\.\d+s\)`), "(…s)"},
	{regexp.MustCompile(`(?m)^((?:ok|FAIL)\s+\S+\s+)\d+\.\d+s`), "${1}…s"},
	{regexp.MustCompile(`(?m)\bin \d+\.\d+ ?s(econds)?\b`), "in …s"},
	{regexp.MustCompile(`goroutine \d+ \[`), "goroutine N ["},
}

// Pack makes of a verify's output what a repair needs: its first block of errors and its end, bounded, and the same
// text for the same error. Paths must be relative already.
func Pack(output string) string {
	output = strings.ToValidUTF8(strings.ReplaceAll(output, "\r\n", "\n"), "?")
	for _, v := range volatile {
		output = v.pattern.ReplaceAllString(output, v.with)
	}
	output = squeeze(strings.Trim(output, "\n"))
	if len(output) <= packedBytes {
		return output
	}
	first, end := firstBlock(output)
	room := packedBytes - len(first)
	tail := lastBytes(output, room)
	if first == "" || end >= len(output)-len(tail) {
		return "[…]\n" + tail
	}
	return first + "\n[…]\n" + tail
}

// firstBlock is the first run of lines that begins with an error, and where it ends in output.
func firstBlock(output string) (block string, end int) {
	at := 0
	for line := range strings.Lines(output) {
		if errorLine.MatchString(line) {
			break
		}
		at += len(line)
	}
	if at >= len(output) {
		return "", 0
	}
	size, count := 0, 0
	for line := range strings.Lines(output[at:]) {
		count++
		if count > blockLines || size+len(line) > packedFirst || count > 1 && strings.TrimSpace(line) == "" {
			break
		}
		size += len(line)
	}
	if size == 0 { // one endless line
		size = len(prefix(output[at:], packedFirst))
	}
	return strings.TrimRight(output[at:at+size], "\n"), at + size
}

// squeeze replaces runs of the same line by one and a count: a loop that prints fills everything else out.
func squeeze(s string) string {
	lines := strings.Split(s, "\n")
	out := lines[:0]
	for i := 0; i < len(lines); {
		n := 1
		for i+n < len(lines) && lines[i+n] == lines[i] {
			n++
		}
		out = append(out, lines[i])
		if n > 3 {
			out = append(out, "[the same line again and again]")
		} else {
			for range n - 1 {
				out = append(out, lines[i])
			}
		}
		i += n
	}
	return strings.Join(out, "\n")
}

// lastBytes is the end of s, from the beginning of a line where there is one in reach.
func lastBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	for len(s) > 0 && !utf8.RuneStart(s[0]) {
		s = s[1:]
	}
	if i := strings.IndexByte(s, '\n'); i >= 0 && i < len(s)/2 {
		s = s[i+1:]
	}
	return s
}

func prefix(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// bounded is s cut to n bytes, with a word about it.
func bounded(s string, n int, note string) string {
	if len(s) <= n {
		return s
	}
	return prefix(s, n-len(note)) + note
}

func list(paths []string) string { return strings.Join(paths, ", ") }
