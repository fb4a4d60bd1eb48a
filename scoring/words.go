package scoring

import (
	"strings"
	"unicode"
)

// token is one word as it stands, with the pieces of an identifier that it may be.
type token struct {
	text   string   // as written
	lower  string   // whole, lower case
	pieces []string // lower case: «OAuth2Service» has o, auth, service
	ends   bool     // a clause ends after it
}

type tokens []token

// longest bounds the work on a text that somebody pasted a file into.
const longest = 64 << 10

// read splits a text at everything that is no letter, digit or apostrophe.
func read(text string) tokens {
	if len(text) > longest {
		text = text[:longest]
	}
	var out tokens
	start := -1
	flush := func(end int) {
		if start >= 0 {
			out = append(out, newToken(text[start:end]))
			start = -1
		}
	}
	for i, r := range text {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			if start < 0 {
				start = i
			}
		case (r == '\'' || r == '’') && start >= 0:
			// stays inside: don't, CRUD's
		default:
			flush(i)
			if len(out) > 0 && endsClause(text[i:], r) {
				out[len(out)-1].ends = true
			}
		}
	}
	flush(len(text))
	return out
}

// endsClause leaves the dot of «user.spec.ts» inside its clause.
func endsClause(rest string, r rune) bool {
	switch r {
	case ',', ';', ':', '!', '?', '\n', '(', ')', '—', '–':
		return true
	case '.':
		return len(rest) == 1 || strings.ContainsRune(" \n\t\r\"»)", rune(rest[1]))
	}
	return false
}

func newToken(s string) token {
	s = strings.ReplaceAll(strings.TrimRight(s, "'’"), "’", "'")
	lower := strings.ToLower(s)
	lower = strings.TrimSuffix(lower, "'s")
	return token{text: s, lower: lower, pieces: pieces(s)}
}

// pieces cuts an identifier where its case or its kind of character changes: TestParser, JSONTest, auth0.
// A plain word has none, for it is already whole.
func pieces(s string) []string {
	runes := []rune(s)
	var out []string
	from := 0
	for i := 1; i < len(runes); i++ {
		a, b := runes[i-1], runes[i]
		lowUp := unicode.IsLower(a) && unicode.IsUpper(b)
		endOfAcronym := unicode.IsUpper(a) && unicode.IsUpper(b) && i+1 < len(runes) && unicode.IsLower(runes[i+1])
		if lowUp || endOfAcronym || unicode.IsDigit(a) != unicode.IsDigit(b) {
			out = append(out, strings.ToLower(string(runes[from:i])))
			from = i
		}
	}
	if from == 0 {
		return nil
	}
	return append(out, strings.ToLower(string(runes[from:])))
}

// find gives the first word, as written, that has one of the forms and is not negated.
func (ts tokens) find(forms map[string]bool) string {
	for i, t := range ts {
		if t.has(forms) && !ts.negated(i) {
			return t.text
		}
	}
	return ""
}

func (t token) has(forms map[string]bool) bool {
	if forms[t.lower] {
		return true
	}
	for _, p := range t.pieces {
		if forms[p] {
			return true
		}
	}
	return false
}

var (
	// These negate whatever follows them in their clause.
	negators = words(`no without skip skips skipping omit omits omitting exclude excludes excluding except
		avoid avoids avoiding neither nor needn't`)
	// These negate only work that is named next: «don't touch auth» is not about auth, «don't leak the auth token» is.
	forbidders = words(`not don't dont shouldn't mustn't won't never`)
	work       = words(`write add touch change modify generate create include need require update use do bother worry
		implement produce edit rewrite run make want the any a`)
	// A negator before one of these turns round again: «do not skip the tests», «not only tests».
	restorers = words(`forget forgetting skip skipping omit omitting avoid only just miss exclude neglect lose`)
	dismissed = words(`unnecessary unneeded unwanted`)
	dispenser = words(`needed required necessary wanted expected desired`)
)

// reach is how many words before a signal may negate it: «no need for any tests» has three between.
const reach = 4

// negated looks back through the clause for a negation, and forward for «… are not needed».
func (ts tokens) negated(i int) bool {
	for j := i - 1; j >= 0 && j >= i-reach && !ts[j].ends; j-- {
		w := ts[j].lower
		switch {
		case negators[w]:
			return !ts.takenBack(j, i)
		case forbidders[w] && ts.forbids(j, i):
			return !ts.takenBack(j, i)
		case j > 0 && (w == "of" && ts[j-1].lower == "instead" || w == "than" && ts[j-1].lower == "rather"):
			return true
		}
	}
	return ts.dismissedAfter(i)
}

// forbids tells «do not design» and «not the tests» from the state «is not encrypted».
func (ts tokens) forbids(at, signal int) bool {
	if ts[at].lower == "not" && at > 0 && !ts[at-1].ends {
		switch ts[at-1].lower {
		case "do", "should", "must", "but", "and", "need", "please":
		default:
			return false
		}
	}
	return at+1 == signal || work[ts[at+1].lower]
}

// takenBack says whether what stands between, or a second negation just before, takes the negation back.
func (ts tokens) takenBack(negator, signal int) bool {
	for j := negator + 1; j < signal; j++ {
		if restorers[ts[j].lower] {
			return true
		}
	}
	if negator == 0 || ts[negator-1].ends {
		return false
	}
	before := ts[negator-1].lower
	return restorers[ts[negator].lower] && (negators[before] || forbidders[before])
}

func (ts tokens) dismissedAfter(i int) bool {
	negative := false
	for j := i + 1; j < len(ts) && j <= i+4 && !ts[j-1].ends; j++ {
		w := ts[j].lower
		switch {
		case dismissed[w]:
			return true
		case w == "not" || w == "isn't" || w == "aren't" || w == "isnt" || w == "arent":
			negative = true
		case negative && dispenser[w]:
			return true
		}
	}
	return false
}
