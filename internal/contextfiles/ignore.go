package contextfiles

import (
	"os"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// ignores answers by the .gitignore files from the folder's top down to a path, read as the walk gets there.
// The patterns are git's; they are matched by doublestar, since the Go libraries for this format get "?", anchoring
// and nested negation wrong. ignore_test.go holds it against git itself.
type ignores struct {
	root *os.Root
	dirs map[string][]rule
}

// rule is one line of a .gitignore.
type rule struct {
	glob    string // relative to the file's folder
	negate  bool
	dirOnly bool
}

// maxIgnoreBytes bounds a .gitignore; what is longer is no list that a person keeps.
const maxIgnoreBytes = 1 << 20

// match reports whether the path itself is excluded. Its parents are asked about on the way down.
func (g *ignores) match(name string, isDir bool) bool {
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		rel := name
		if dir != "." {
			rel = strings.TrimPrefix(name, dir+"/")
		}
		rules := g.rules(dir)
		for i := len(rules) - 1; i >= 0; i-- { // the last rule that matches counts, the deepest file first
			r := rules[i]
			if r.dirOnly && !isDir {
				continue
			}
			if doublestar.MatchUnvalidated(r.glob, rel) {
				return !r.negate
			}
		}
		if dir == "." {
			return false
		}
	}
}

func (g *ignores) rules(dir string) []rule {
	if rules, ok := g.dirs[dir]; ok {
		return rules
	}
	if g.dirs == nil {
		g.dirs = map[string][]rule{}
	}
	var rules []rule
	if dir == "." {
		rules = g.read(".git/info/exclude")
	}
	rules = append(rules, g.read(path.Join(dir, ".gitignore"))...)
	g.dirs[dir] = rules
	return rules
}

func (g *ignores) read(name string) []rule {
	data, reason, err := readFile(g.root, name, maxIgnoreBytes)
	if err != nil || reason != "" {
		return nil
	}
	var rules []rule
	for _, line := range strings.Split(string(data), "\n") {
		if r, ok := parseRule(line); ok {
			rules = append(rules, r)
		}
	}
	return rules
}

func parseRule(line string) (r rule, ok bool) {
	line = strings.TrimSuffix(line, "\r")
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	if line == "" || line[0] == '#' {
		return r, false
	}
	if line[0] == '!' {
		r.negate, line = true, line[1:]
	}
	if strings.HasSuffix(line, "/") {
		r.dirOnly, line = true, strings.TrimRight(line, "/")
	}
	if line == "" {
		return r, false
	}
	anchored := strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	line = plainBraces(line)
	if !anchored {
		line = "**/" + line
	}
	if inside, is := strings.CutSuffix(line, "/**"); is {
		line = inside + "/**/*" // what is inside, not the folder itself
	}
	r.glob = line
	return r, doublestar.ValidatePattern(line)
}

// plainBraces escapes braces, which are plain characters in git, where they are not escaped already.
func plainBraces(glob string) string {
	var out strings.Builder
	for i := 0; i < len(glob); i++ {
		switch {
		case glob[i] == '\\' && i+1 < len(glob):
			out.WriteByte(glob[i])
			i++
		case glob[i] == '{' || glob[i] == '}':
			out.WriteByte('\\')
		}
		out.WriteByte(glob[i])
	}
	return out.String()
}
