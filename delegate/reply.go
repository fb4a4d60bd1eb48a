package delegate

import (
	"fmt"
	"slices"
	"strings"
)

// MaxReplyBytes bounds an answer. A window of a million tokens holds no more; an adapter that streams an answer stops
// there and passes on what it has, which the gate then refuses.
const MaxReplyBytes = 4 << 20

// Overlong reports whether so many bytes of an answer, its thinking and calls among them, are more than is ever read.
// An adapter ends the stream then, and says FinishLength.
func Overlong(bytes int) bool { return bytes > MaxReplyBytes }

// maxFences bounds what is remembered of a reply that is nothing but fences.
const maxFences = 20000

// maxNamed bounds the lists of what was odd.
const maxNamed = 20

// Reply is what an answer holds, before any judgement. Bodies have LF line ends.
type Reply struct {
	Files    []File // declared outputs given whole, each once
	Edits    []Edit
	Extra    []string // paths that nobody asked for; their content is dropped
	Loose    int      // code blocks that could not be assigned to a path
	Text     string   // all of it without the thinking
	Warnings []string

	// Problem is set where the answer contradicts itself or has a form that is refused whatever else it holds.
	Problem *Rejection
}

func (r *Reply) file(path string) (File, bool) {
	for _, f := range r.Files {
		if f.Path == path {
			return f, true
		}
	}
	return File{}, false
}

func (r *Reply) edits(path string) []Edit {
	var found []Edit
	for _, e := range r.Edits {
		if e.Path == path {
			found = append(found, e)
		}
	}
	return found
}

func (r *Reply) warn(format string, args ...any) {
	w := fmt.Sprintf(format, args...)
	if len(r.Warnings) < maxNamed && !slices.Contains(r.Warnings, w) {
		r.Warnings = append(r.Warnings, w)
	}
}

func tooLong() *Rejection {
	return &Rejection{Kind: RejectTooLong, Reason: fmt.Sprintf("it is longer than %d MiB", MaxReplyBytes>>20), Ask: askShort}
}

// Parse finds the declared outputs in an answer, in any of the forms that models use. It never fails: what it could
// not make out is left for the gate to name.
func Parse(text string, outputs []Output) Reply {
	if len(text) > MaxReplyBytes {
		return Reply{Problem: tooLong()}
	}
	text, _ = dropThinking(text)
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.TrimPrefix(text, "\ufeff")
	p := parser{text: text, outputs: outputs, reply: Reply{Text: text}}
	if slices.ContainsFunc(outputs, func(o Output) bool { return o.Edit }) {
		p.findEdits()
	}
	if p.reply.Problem == nil && p.findFences() {
		p.readBlocks()
		p.assignLoose()
		p.settleDiffs()
	}
	return p.reply
}

// OneBlock is the body of the one code block in an answer, whatever its language or name. It reports false where there
// is none, or more than one.
func OneBlock(text string) (body string, ok bool) {
	named := Parse(text, nil).Extra
	if len(named) > 1 {
		return "", false
	}
	outputs := []Output{{Path: strings.Join(named, "")}}
	p := parser{text: Parse(text, nil).Text, outputs: outputs[:len(named)]}
	if !p.findFences() {
		return "", false
	}
	p.readBlocks()
	for _, f := range p.reply.Files {
		p.loose = append(p.loose, block{body: f.Body})
	}
	if len(p.loose) != 1 || len(p.diffs) > 0 || p.reply.Problem != nil {
		return "", false
	}
	return p.loose[0].body, true
}

// parser is one pass over one reply; offsets are into text.
type parser struct {
	text    string
	outputs []Output
	reply   Reply
	fences  []fence
	masked  []span // search/replace blocks, in which fences are content
	loose   []block
	diffs   []string // declared outputs that came as a diff; empty string: without a path
}

type span struct{ from, to int }

// block is one fenced block that nothing names.
type block struct {
	lang string
	body string
}

// add takes a block for a declared output.
func (p *parser) add(path, body string) {
	i := slices.IndexFunc(p.reply.Files, func(f File) bool { return f.Path == path })
	if i < 0 {
		p.reply.Files = append(p.reply.Files, File{Path: path, Body: body})
		return
	}
	before := p.reply.Files[i].Body
	if before == body {
		return
	}
	if 2*len(body) < len(before) {
		p.reply.Problem = &Rejection{Kind: RejectAmbiguous, Path: path,
			Reason: path + " is given twice, differently, and the second time much shorter", Ask: "Give it once, whole. " + askWhole}
		return
	}
	p.reply.warn("%s was given twice; the last one counts", path)
	p.reply.Files[i].Body = body
}

func (p *parser) extra(path string) {
	path = clip(path, 120)
	if len(p.reply.Extra) < maxNamed && !slices.Contains(p.reply.Extra, path) {
		p.reply.Extra = append(p.reply.Extra, path)
		p.reply.warn("%s was given though nobody asked for it; it is not written", path)
	}
}

// assignLoose gives blocks without a path to outputs without a block, where there is only one way to do it.
func (p *parser) assignLoose() {
	var missing []Output
	for _, o := range p.outputs {
		if _, ok := p.reply.file(o.Path); !ok && len(p.reply.edits(o.Path)) == 0 {
			missing = append(missing, o)
		}
	}
	used := make([]bool, len(p.loose))
	for _, o := range missing {
		match := -1
		for i, b := range p.loose {
			if !p.suits(b, o, len(missing)) {
				continue
			}
			if match >= 0 {
				match = -2
				break
			}
			match = i
		}
		if match >= 0 && !p.sharedBy(p.loose[match], missing) {
			used[match] = true
			p.add(o.Path, p.loose[match].body)
		}
	}
	for _, u := range used {
		if !u {
			p.reply.Loose++
		}
	}
}

// suits reports whether a block without a path may be o. A block without a language may be anything, if it is alone.
func (p *parser) suits(b block, o Output, missing int) bool {
	if b.lang == "" {
		return missing == 1 && len(p.loose) == 1
	}
	known, same := sameLanguage(b.lang, o.Path)
	if !known {
		return missing == 1 && len(p.loose) == 1
	}
	return same
}

// sharedBy reports whether the block would suit more than one missing output.
func (p *parser) sharedBy(b block, missing []Output) bool {
	n := 0
	for _, o := range missing {
		if p.suits(b, o, len(missing)) {
			n++
		}
	}
	return n > 1
}

// settleDiffs refuses a diff, unless the same file came whole as well.
func (p *parser) settleDiffs() {
	for _, path := range p.diffs {
		if path == "" {
			if len(p.reply.Files) == len(p.outputs) {
				continue
			}
			path = p.outputs[0].Path
		}
		if _, ok := p.reply.file(path); ok || p.reply.Problem != nil {
			continue
		}
		p.reply.Problem = &Rejection{Kind: RejectDiff, Path: path,
			Reason: "it gives a diff in place of " + path, Ask: "Do not answer with a diff. " + askWhole}
	}
}
