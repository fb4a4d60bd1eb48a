package contextfiles

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// Whatever a .gitignore says: a rule that is taken can be matched, and a plain line means the file of that name.
func FuzzRule(f *testing.F) {
	for _, line := range []string{"*.log", "!keep.log", "/build/", "a/**/b", "[", "\\", "{a,b}", "!", "/", "**", "trailing \\ ", "[a-", "# note", "\r"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		r, ok := parseRule(line)
		if !ok {
			return
		}
		for _, path := range []string{"a", "a/b", "a.log", "build/x", ""} {
			doublestar.MatchUnvalidated(r.glob, path) // must not panic; its validation trips over good patterns
		}
		if strings.ContainsAny(line, "*?[]\\!/ \r") || !utf8.ValidString(line) {
			return
		}
		if !doublestar.MatchUnvalidated(r.glob, line) || doublestar.MatchUnvalidated(r.glob, line+"x") {
			t.Errorf("the plain line %q became %q", line, r.glob)
		}
	})
}
