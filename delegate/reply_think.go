package delegate

import (
	"regexp"
	"strings"
)

var (
	thinkOpen     = regexp.MustCompile(`(?i)^\s*<(think|thinking|thought|reasoning)>`)
	thinkClose    = regexp.MustCompile(`(?im)</(think|thinking|thought|reasoning)>[ \t]*$`)
	thinkAnyClose = regexp.MustCompile(`(?i)</(think|thinking)>`)
	thinkInner    = regexp.MustCompile(`(?im)^[ \t]*<(think|thinking)>[ \t]*$`)
)

// dropThinking removes a model's thinking from its answer and says how many bytes that were. Thinking stands at the
// start; its opening tag may be missing (some chat templates write it into the prompt), and so may its closing one.
// A tag inside a fenced block is content.
func dropThinking(text string) (answer string, dropped int) {
	for {
		m := thinkOpen.FindStringIndex(text)
		if m == nil {
			break
		}
		end := closeOfThinking(text)
		if end == nil {
			answer, more := unclosedThinking(text, m[1])
			return answer, dropped + more
		}
		text, dropped = text[end[1]:], dropped+end[1]
	}
	if !strings.Contains(text, "<") {
		return text, dropped
	}
	if m := thinkInner.FindStringIndex(text); m != nil && balanced(text[:m[0]]) {
		if end := thinkClose.FindStringIndex(text[m[1]:]); end != nil {
			return text[:m[0]] + text[m[1]+end[1]:], dropped + end[1] + m[1] - m[0]
		}
		return text[:m[0]], dropped + len(text) - m[0]
	}
	// No opening tag: the closing one counts only outside of a block.
	if end := thinkClose.FindStringIndex(text); end != nil && balanced(text[:end[0]]) {
		return text[end[1]:], dropped + end[1]
	}
	return text, dropped
}

// closeOfThinking prefers a tag that ends its line to one inside a sentence.
func closeOfThinking(text string) []int {
	if end := thinkClose.FindStringIndex(text); end != nil {
		return end
	}
	return thinkAnyClose.FindStringIndex(text)
}

// unclosedThinking: a model that never closed the tag may still have written its answer below. What begins with a
// path line and a fence is kept; thoughts without one are dropped whole.
func unclosedThinking(text string, from int) (string, int) {
	rest := text[from:]
	at := answerStart.FindStringIndex(rest)
	if at == nil || !balanced(rest[at[0]:]) {
		return "", len(text)
	}
	return rest[at[0]:], from + at[0]
}

// answerStart is the form that the prompt asks for.
var answerStart = regexp.MustCompile("(?m)^#{1,6} (?i:file): *\\S[^\\n]*\\n\\s*```")

// balanced reports whether every fence before this point is closed.
func balanced(text string) bool {
	open := false
	for len(text) > 0 {
		line := text
		if i := strings.IndexByte(text, '\n'); i >= 0 {
			line, text = text[:i], text[i+1:]
		} else {
			text = ""
		}
		if line = strings.TrimLeft(line, " \t"); strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
			open = !open
		}
	}
	return !open
}

var intention = regexp.MustCompile(`(?i)^(\W*(sure|okay|ok|certainly|of course|great|absolutely|alright|understood|got it|done)\b[^\n]{0,40}?[\s,.!:—-]+)?` +
	`((now|next|first|then),? +)?(i will|i'll|i’ll|i am going to|i'm going to|i’m going to|i shall|i need to|i am about to|i'm about to|let me|let's|let’s|we will|we'll|going to)\b`)

// announces reports whether a short text only says what will be done.
func announces(text string) bool {
	text = strings.TrimSpace(text)
	if len(text) > 600 || strings.Contains(text, "```") || strings.HasPrefix(strings.ToLower(text), "let me know") {
		return false
	}
	return intention.MatchString(text) && strings.Count(text, "\n\n") <= 1
}

var sentenceEnd = regexp.MustCompile(`[.!?:;]\s+\S`)

// onlyAnnounces is for answers in text: «Let me explain: it returns 1» begins like an announcement and is an answer,
// so here it must be one sentence, behind an opening word at most.
func onlyAnnounces(text string) bool {
	m := intention.FindStringSubmatch(text)
	if m == nil || !announces(text) {
		return false
	}
	return len(sentenceEnd.FindAllString(text[len(m[1]):], 1)) == 0
}
