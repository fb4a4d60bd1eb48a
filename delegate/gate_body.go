package delegate

import (
	"fmt"
	"regexp"
	"strings"
)

// body is an output's new content with the line ends that the file has.
func (g Gate) body(o Output, reply Reply) (string, *Rejection) {
	was := normalLines(o.Body)
	f, whole := reply.file(o.Path)
	body := f.Body
	if !whole {
		if !o.Edit {
			return "", &Rejection{Kind: RejectEdit, Path: o.Path, Reason: "it gives search/replace blocks for " + o.Path + ", which is to be given whole", Ask: askWhole}
		}
		var err error
		if body, err = ApplyEdits(o.Path, strings.TrimPrefix(was, "\ufeff"), reply.edits(o.Path)); err != nil {
			return "", err.(*Rejection)
		}
	}
	if !o.Exists || o.Body == "" {
		return body, nil
	}
	if strings.HasPrefix(was, "\ufeff") && !strings.HasPrefix(body, "\ufeff") {
		body = "\ufeff" + body
	}
	if whole && !strings.HasSuffix(was, "\n") {
		body = strings.TrimSuffix(body, "\n")
	}
	if crlf := strings.Count(o.Body, "\r\n"); 2*crlf > strings.Count(o.Body, "\n") {
		body = strings.ReplaceAll(body, "\n", "\r\n")
	}
	return body, nil
}

// sound judges one new content against what was there.
func (g Gate) sound(o Output, body string) *Rejection {
	if line := newElision(o, body); line != "" {
		return &Rejection{Kind: RejectElision, Path: o.Path, Reason: fmt.Sprintf("%s leaves code out: %q", o.Path, clip(line, 100)),
			Ask: "Write everything out; nothing may be left out or referred to. " + askWhole}
	}
	if was, is := weight(o.Body), weight(body); o.Exists && !g.AllowShrink && was >= minShrink && 2*is < was {
		return &Rejection{Kind: RejectShrink, Path: o.Path,
			Reason: fmt.Sprintf("%s would shrink from %d to %d bytes, to under half", o.Path, len(o.Body), len(body)),
			Ask:    "Keep all that the task does not tell you to remove. " + askWhole}
	}
	if g.Parses != nil {
		if err := g.Parses(o.Path, []byte(body)); err != nil {
			return &Rejection{Kind: RejectUnparsed, Path: o.Path, Reason: fmt.Sprintf("%s does not parse: %s", o.Path, clip(err.Error(), 300)),
				Ask: "Mend the syntax. " + askWhole}
		}
	}
	return nil
}

// minShrink is the size from which a loss of half means something, in bytes without white space.
const minShrink = 160

// weight is a text's size without white space, so that another indentation is no shrinking.
func weight(s string) int {
	n := 0
	for i := 0; i < len(s); i++ {
		if s[i] > ' ' {
			n++
		}
	}
	return n
}

const commentMark = `(?://+|#+|--+\s|;+|%+|/\*+|\*|<!--|\{/\*|\{#)`

var (
	elisionWords = `(?i:rest|remain\w*|unchanged|existing|same|previous\w*|other|others|omitted|as before|as above|your|keep|more|etc|similar\w*|additional|original|continue\w*|implementation|here|truncated|snip\w*|code)`
	// A comment that begins with dots and goes on with one of the words, or is dots alone; or one that says which part is
	// meant and ends with dots. «// Load the existing file...» is an honest comment: the verb tells them apart.
	elisionDots = regexp.MustCompile(`^\s*` + commentMark + `\s*(?:(?:\.\.\.|…)\W*$|(?:\.\.\.|…).*\b` + elisionWords + `\b` +
		`|(?i:(?:keep |include |insert |your )?(?:the |all )*(?:rest of|remaining|existing|other|previous|original|same|unchanged) (?:\w+ ){0,3}\w*\W*(?:\.\.\.|…)\W*$)` +
		`|(?i:unchanged|omitted|same as (?:before|above)|your code|(?:implementation|code) (?:goes )?here)\W*(?:\.\.\.|…)\W*$)`)
	// In brackets the dots stand apart: "[...rest, x]" and "(...args)" are code.
	elisionBracket = regexp.MustCompile(`^\s*[(\[<]\s*(?:(?:\.\.\.|…)[)\]>]\s*$|(?:\.\.\.|…)\s.*\b` + elisionWords + `\b)`)
	elisionPlain   = regexp.MustCompile(`^\s*(?:\.\.\.|…)(?:(?:\s+[(\[]?|[(\[])(?i:the )?(?:` + elisionWords + `)\b|(?:` + elisionWords + `)\s+\w.*(?:\.\.\.|…)\W*$)`)
	// Without dots, only wordings that mean nothing else.
	elisionSaid = regexp.MustCompile(`(?i)^\s*(?://+|#+|--+\s|;+|%+|/\*+|\*|<!--|\{/\*|\(|\[)\s*[(\[]?(?:the )?(?:(?:rest|remainder|remaining (?:part|code|functions|methods)) of (?:the |this |your )?(?:\w+ ){0,2}(?:is |are |remains? |stays? |goes |unchanged|the same|here|as before|omitted)` +
		`|(?:other|existing|previous|remaining|all other) (?:\w+ ){0,2}(?:remain|stay|are|is|go)(?:s|es)? (?:unchanged|the same|here|as before|as is|omitted)|(?:other|existing|previous|remaining|all other) (?:\w+ ){1,2}(?:unchanged|omitted|as before|as is)\W*$|(?:no changes|unchanged)(?: below| above| from here)?\W*$|(?:existing|previous|original) (?:code|implementation|content)s?(?: here)?\W*$)`)
)

// newElision is a line that stands for left-out code and that the file did not have before. Only lines of that shape
// count: dots in a string, in prose or in a variadic call are code.
func newElision(o Output, body string) string {
	markdown := isMarkdown("", o.Path)
	var had map[string]bool
	for at := 0; at < len(body); {
		line, next := nextLine(body, at)
		at = next
		if len(line) > 300 || !elides(line, markdown) {
			continue
		}
		if had == nil {
			had = linesOf(o.Body)
		}
		if line = strings.TrimSpace(line); !had[line] {
			return line
		}
	}
	return ""
}

// elides: in Markdown, "#" is a heading and dots are prose, so only a bracketed or hidden note counts.
func elides(line string, markdown bool) bool {
	if !strings.Contains(line, "...") && !strings.Contains(line, "…") {
		return !markdown && elisionSaid.MatchString(line)
	}
	if markdown {
		trimmed := strings.TrimSpace(line)
		return strings.HasPrefix(trimmed, "<!--") && elisionDots.MatchString(line) || !strings.Contains(trimmed, "](") && elisionBracket.MatchString(line)
	}
	return elisionDots.MatchString(line) || elisionBracket.MatchString(line) || elisionPlain.MatchString(line) || elisionSaid.MatchString(line)
}

func linesOf(s string) map[string]bool {
	lines := map[string]bool{}
	for at := 0; at < len(s); {
		line, next := nextLine(s, at)
		lines[strings.TrimSpace(line)] = true
		at = next
	}
	return lines
}
