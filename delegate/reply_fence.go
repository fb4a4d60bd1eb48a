package delegate

import "strings"

// fence is one line that opens or closes a block.
type fence struct {
	from, to int // the line, to being after its newline
	indent   string
	char     byte
	n        int
	info     string
}

func (f fence) bare() bool { return f.info == "" }

// nextLine is the line at from, and where the next one begins.
func nextLine(text string, from int) (line string, next int) {
	if i := strings.IndexByte(text[from:], '\n'); i >= 0 {
		return text[from : from+i], from + i + 1
	}
	return text[from:], len(text)
}

func readFence(line string) (f fence, ok bool) {
	trimmed := strings.TrimLeft(line, " \t")
	if len(trimmed) < 3 || trimmed[0] != '`' && trimmed[0] != '~' {
		return f, false
	}
	f.char, f.indent = trimmed[0], line[:len(line)-len(trimmed)]
	for f.n < len(trimmed) && trimmed[f.n] == f.char {
		f.n++
	}
	f.info = strings.TrimSpace(trimmed[f.n:])
	if f.n < 3 || f.char == '`' && strings.Contains(f.info, "`") || len(f.info) > 300 {
		return f, false
	}
	return f, true
}

// findFences lists the fence lines outside of search/replace blocks. It reports false where there are too many.
func (p *parser) findFences() bool {
	masked := p.masked
	for at := 0; at < len(p.text); {
		line, next := nextLine(p.text, at)
		for len(masked) > 0 && masked[0].to <= at {
			masked = masked[1:]
		}
		hidden := len(masked) > 0 && masked[0].from <= at
		if f, ok := readFence(line); ok && !hidden {
			f.from, f.to = at, next
			if p.fences = append(p.fences, f); len(p.fences) > maxFences {
				p.reply.Problem = &Rejection{Kind: RejectTooLong, Reason: "it holds too many fences to be an answer", Ask: askWhole}
				return false
			}
		}
		at = next
	}
	return true
}

// readBlocks walks over the fenced blocks in their order.
func (p *parser) readBlocks() {
	outside := 0 // where the text since the last block begins
	starts := p.fileStarts()
	for i := 0; i < len(p.fences); {
		open := p.fences[i]
		path, lang := p.nameOf(i, outside)
		if path == "" && isMarkdown(lang, "") && !p.wantsMarkdown() && starts.after(i) < len(p.fences) {
			outside, i = open.to, i+1 // the whole answer stands in a block of its own
			continue
		}
		closing, end, after := p.closeOf(i, starts.after(i), isMarkdown(lang, path))
		p.take(open, lang, path, p.text[open.to:max(open.to, end)], end)
		outside, i = after, closing+1
		if p.reply.Problem != nil {
			return
		}
	}
}

// startIndex holds, by fence, whether it surely opens a file: its name is a declared output.
type startIndex []int

// after is the first sure start after fence i, or the number of fences.
func (s startIndex) after(i int) int { return s[i] }

func (p *parser) fileStarts() startIndex {
	next := make(startIndex, len(p.fences))
	following := len(p.fences)
	for i := len(p.fences) - 1; i >= 0; i-- {
		next[i] = following
		previous := 0
		if i > 0 {
			previous = p.fences[i-1].to
		}
		if p.surelyStarts(i, previous) {
			following = i
		}
	}
	return next
}

// surelyStarts: a path line of the strict form directly above, or a path in the info string.
func (p *parser) surelyStarts(i, previous int) bool {
	f := p.fences[i]
	if name, _ := p.infoPath(f.info); name != "" {
		_, ok := p.resolve(name)
		return ok
	}
	above, _ := p.lineAbove(f.from, previous)
	name, strict := headerPath(above, p.outputs)
	if !strict {
		return false
	}
	_, ok := p.resolve(name)
	return ok
}

// closeOf finds the end of the block that fence i opens: the closing fence's index, where the content ends and where
// the text goes on. limit is the fence that surely opens another file.
func (p *parser) closeOf(i, limit int, markdown bool) (closing, end, after int) {
	open := p.fences[i]
	if open.n > 3 || open.char == '~' {
		// A longer fence means what it says, even around what looks like another file.
		for j := i + 1; j < len(p.fences); j++ {
			if f := p.fences[j]; f.bare() && f.char == open.char && f.n >= open.n {
				return j, f.from, f.to
			}
		}
	}
	j, paired := p.nestedClose(i, limit, markdown)
	if j > 0 {
		return j, p.fences[j].from, p.fences[j].to
	}
	if markdown && paired {
		return p.unclosed(i, limit)
	}
	for j := i + 1; j < limit; j++ { // nesting made no sense: the first bare fence
		if f := p.fences[j]; f.bare() {
			return j, f.from, f.to
		}
	}
	return p.unclosed(i, limit)
}

// nestedClose pairs fences with an info string with the bare ones that follow. In Markdown a bare fence may open a
// block too: it does where the next fence is bare as well. paired: there is no end, but all that opens inside closes.
func (p *parser) nestedClose(i, limit int, markdown bool) (closing int, paired bool) {
	depth := 0
	for j := i + 1; j < limit; j++ {
		f := p.fences[j]
		switch {
		case f.char != p.fences[i].char && depth == 0 && !markdown:
			continue
		case !f.bare():
			depth++
		case depth > 0:
			depth--
		case markdown && j+1 < limit && p.fences[j+1].bare():
			depth++
		default:
			return j, true
		}
	}
	return 0, depth == 0
}

// unclosed is a block without its closing fence: it ends at the next file's path line or with the answer.
func (p *parser) unclosed(i, limit int) (closing, end, after int) {
	end, closing = len(p.text), len(p.fences)-1
	if limit < len(p.fences) {
		_, end = p.lineAbove(p.fences[limit].from, p.fences[i].to)
		closing = limit - 1
	}
	body := strings.TrimRight(p.text[p.fences[i].to:max(end, p.fences[i].to)], " \t\n")
	if glued := strings.TrimSuffix(body, strings.Repeat(string(p.fences[i].char), p.fences[i].n)); glued != body && glued != "" {
		return closing, p.fences[i].to + len(glued), end // the fence stands at the end of the last line
	}
	p.reply.warn("a code block was not closed")
	return closing, max(end, p.fences[i].to), max(end, p.fences[i].to)
}

// take files one block under its path, or among the loose ones.
func (p *parser) take(open fence, lang, path, body string, end int) {
	for _, m := range p.masked {
		if m.from < end && m.to > open.to {
			return // its content is search/replace blocks
		}
	}
	body = dedent(body, open.indent)
	commented := ""
	body, commented = p.commentPath(body, path)
	if path == "" {
		path = commented
	}
	declared, ok := p.resolve(path)
	switch {
	case isDiff(lang, body) && !strings.HasSuffix(path, ".diff") && !strings.HasSuffix(path, ".patch"):
		if ok || path == "" {
			p.diffs = append(p.diffs, declared)
		}
	case startsWithEdit(body) && (ok || path == ""):
		p.reply.Problem = &Rejection{Kind: RejectEdit, Path: declared,
			Reason: "it gives search/replace blocks for a file that is to be given whole", Ask: askWhole}
	case ok:
		if note := p.renamed(path, declared); note != "" {
			p.reply.warn("%s", note)
		}
		p.add(declared, finish(body))
	case path != "":
		p.extra(path)
	default:
		p.loose = append(p.loose, block{lang: lang, body: finish(body)})
	}
}

// finish ends a body with exactly the newline that the closing fence hides, or none where it is empty.
func finish(body string) string {
	if strings.TrimSpace(body) == "" {
		return ""
	}
	if !strings.HasSuffix(body, "\n") {
		body += "\n"
	}
	return body
}

// dedent removes the indent of the opening fence, in a list for instance, if all lines have it.
func dedent(body, indent string) string {
	if indent == "" {
		return body
	}
	var w strings.Builder
	for at := 0; at < len(body); {
		line, next := nextLine(body, at)
		cut, ok := strings.CutPrefix(line, indent)
		if !ok && strings.TrimSpace(line) != "" {
			return body
		}
		w.WriteString(cut)
		w.WriteString(body[at+len(line) : next])
		at = next
	}
	return w.String()
}
