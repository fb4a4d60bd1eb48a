package contextfiles

import (
	"testing"

	"github.com/bmatcuk/doublestar/v4"
)

// Whatever a .gitignore says: a rule that is taken can be matched.
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
			if _, err := doublestar.Match(r.glob, path); err != nil {
				t.Errorf("%q became %q: %v", line, r.glob, err)
			}
		}
	})
}
