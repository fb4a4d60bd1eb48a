package delegate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Edit replaces lines of an existing file. Both parts have LF line ends.
type Edit struct {
	Path    string
	Search  string
	Replace string
}

var (
	editStart  = regexp.MustCompile(`^[ \t]*<{5,9} ?(?i:search|original|old)?[ \t]*$`)
	editMiddle = regexp.MustCompile(`^[ \t]*={5,9}[ \t]*$`)
	editEnd    = regexp.MustCompile(`^[ \t]*>{5,9} ?(?i:replace|updated|new)?[ \t]*$`)
)

// A look for the marks themselves first: an answer has many lines, and an expression costs memory for each.
func startsEdit(line string) bool {
	return strings.Contains(line, "<<<<<") && editStart.MatchString(line)
}
func parts(line string) bool    { return strings.Contains(line, "=====") && editMiddle.MatchString(line) }
func endsEdit(line string) bool { return strings.Contains(line, ">>>>>") && editEnd.MatchString(line) }

func startsWithEdit(body string) bool {
	line, _ := nextLine(strings.TrimLeft(body, "\n"), 0)
	return startsEdit(line)
}

// findEdits reads search/replace blocks anywhere in the answer, in a fence or not. The path is that of the nearest
// path line or info string above it, or that of the block before.
func (p *parser) findEdits() {
	current, from, floor := "", -1, 0
	var search, replace span
	state := 0 // 0 outside, 1 in the search part, 2 in the replace part
	for at := 0; at < len(p.text); {
		line, next := nextLine(p.text, at)
		switch {
		case state == 0 && startsEdit(line):
			state, from, search.from = 1, at, next
			if name := p.pathOfEdit(at, floor); name != "" {
				current = name
			}
		case state == 1 && parts(line):
			state, search.to, replace.from = 2, at, next
		case state == 2 && endsEdit(line):
			state, replace.to = 0, at
			p.masked, floor = append(p.masked, span{from, next}), next
			p.addEdit(current, p.text[search.from:search.to], p.text[replace.from:replace.to])
		case startsEdit(line) && strings.Contains(strings.ToLower(line), "search"):
			p.badEdit(current, "a search/replace block begins inside another")
			return
		}
		if len(p.masked) > maxFences {
			p.badEdit(current, "it holds too many search/replace blocks")
			return
		}
		at = next
	}
	if state != 0 {
		p.badEdit(current, "a search/replace block is not ended")
	}
}

func (p *parser) badEdit(path, reason string) {
	p.reply.Problem = &Rejection{Kind: RejectEdit, Path: path, Reason: reason, Ask: askEdits}
}

// pathOfEdit looks for a path line in the few lines above a block.
func (p *parser) pathOfEdit(at, floor int) string {
	for range 8 {
		line, from := p.lineAbove(at, floor)
		if line == "" {
			break
		}
		if name := p.editPath(line); name != "" {
			return name
		}
		at = from
	}
	return ""
}

// editPath is the path that a line outside of the blocks names.
func (p *parser) editPath(line string) string {
	if f, ok := readFence(line); ok {
		name, _ := p.infoPath(f.info)
		return name
	}
	name, strict := headerPath(line, p.outputs)
	if _, ok := p.resolve(name); ok || strict {
		return name
	}
	return ""
}

func (p *parser) addEdit(name, search, replace string) {
	declared, ok := p.resolve(name)
	if !ok && name == "" && len(p.outputs) == 1 {
		declared, ok = p.outputs[0].Path, true
	}
	switch {
	case ok:
		p.reply.Edits = append(p.reply.Edits, Edit{Path: declared, Search: search, Replace: replace})
	case name != "":
		p.extra(name)
	default:
		p.reply.Loose++
	}
}

const askEdits = "Give search/replace blocks whose SEARCH part is copied from the file character by character, whole lines, and occurs there only once."

// ApplyEdits replaces each Search, which must be whole lines that occur exactly once in body, all of them looked up in
// body as it was. Nothing is guessed: a block that is nearly right is refused. The error is a *Rejection.
func ApplyEdits(path, body string, edits []Edit) (string, error) {
	type place struct {
		span
		with string
	}
	var places []place
	for i, e := range edits {
		bad := func(format string, args ...any) error {
			return &Rejection{Kind: RejectEdit, Path: path, Ask: askEdits,
				Reason: fmt.Sprintf("search/replace block %d of %s ", i+1, path) + fmt.Sprintf(format, args...)}
		}
		if strings.TrimSpace(e.Search) == "" {
			return "", bad("searches for nothing")
		}
		at, n := findLines(body, e.Search)
		switch {
		case n == 0:
			first, _ := nextLine(strings.TrimLeft(e.Search, "\n"), 0)
			return "", bad("is not in the file as written (it begins with %q)", clip(strings.TrimSpace(first), 80))
		case n > 1:
			return "", bad("occurs %d times in the file", n)
		}
		places = append(places, place{span{at, min(len(body), at+len(e.Search))}, e.Replace})
	}
	slices.SortFunc(places, func(a, b place) int { return a.from - b.from })
	var w strings.Builder
	at := 0
	for _, p := range places {
		if p.from < at {
			return "", &Rejection{Kind: RejectEdit, Path: path, Reason: "search/replace blocks of " + path + " overlap", Ask: askEdits}
		}
		w.WriteString(body[at:p.from])
		w.WriteString(p.with)
		at = p.to
	}
	w.WriteString(body[at:])
	return w.String(), nil
}

// findLines counts the places where search stands as whole lines, and gives the first. Search ends with a newline;
// the file's last line may lack it.
func findLines(body, search string) (at, n int) {
	if !strings.HasSuffix(body, "\n") {
		body += "\n"
	}
	at = -1
	for from := 0; from < len(body); {
		i := strings.Index(body[from:], search)
		if i < 0 {
			break
		}
		i += from
		if i == 0 || body[i-1] == '\n' {
			if n++; n == 1 {
				at = i
			}
		}
		from = i + 1
	}
	return at, n
}

// clip shortens text for a message, at a character's border.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return prefix(s, n) + "…"
}
