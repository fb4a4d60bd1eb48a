package delegate

import (
	"path"
	"regexp"
	"strings"
)

var (
	labelled   = regexp.MustCompile(`(?i)^(?:(?:new|updated|modified|output|full|complete|final|the)\s+)*(?:file ?name|file ?path|file|path)\s*[:=]\s*`)
	labelWord  = regexp.MustCompile(`(?i)^(?:(?:new|updated|modified|the)\s+)*(?:file|create|update|modify|write)\s+(\S+)$`)
	listMark   = regexp.MustCompile(`^(?:[-*+]|\d+[.)])\s+`)
	attribute  = regexp.MustCompile(`(?i)^(?:title|file|filename|path|name|src)\s*[=:]\s*`)
	trailing   = regexp.MustCompile(`\s*[(\[][^()\[\]]{0,60}[)\]]\s*:?$`)
	looksPath  = regexp.MustCompile(`^[\w@.+~-]*(?:[/\\][\w@.+~()\[\]-]+)*\.[A-Za-z][\w-]{0,11}$|^[\w@.+-]+(?:/[\w@.+-]+)+$`)
	commentOpn = regexp.MustCompile(`^(?://+|#+|--|;+|%+|/\*+|<!--|"""|'''|\{#|\(\*)[ \t]*`)
	commentEnd = regexp.MustCompile(`[ \t]*(?:\*+/|-->|"""|'''|#\}|\*\))[ \t]*$`)
	drive      = regexp.MustCompile(`^[A-Za-z]:/`)
)

// placeholders are folder names that models put before a path when they make one up.
var placeholders = map[string]bool{"path": true, "to": true, "your": true, "my": true, "the": true, "project": true, "your-project": true, "your_project": true,
	"my-project": true, "my_project": true, "repo": true, "repository": true, "workspace": true, "root": true, "project-root": true, "project_root": true,
	"folder": true, "directory": true, "a": true, "b": true, ".": true, "some": true, "name": true, "tmp": true, "home": true, "user": true}

// resolve says which declared output a path in an answer means. Leniency ends where another file could be meant:
// only made-up folders, absolute forms and a bare file name are forgiven.
func (p *parser) resolve(given string) (declared string, ok bool) {
	given = slashed(given)
	if given == "" {
		return "", false
	}
	for _, o := range p.outputs {
		if slashed(o.Path) == given {
			return o.Path, true
		}
	}
	found := ""
	for _, o := range p.outputs {
		want := slashed(o.Path)
		if prefix, is := strings.CutSuffix(given, "/"+want); is && madeUp(prefix) || !strings.Contains(given, "/") && path.Base(want) == given {
			if found != "" {
				return "", false
			}
			found = o.Path
		}
	}
	return found, found != ""
}

func madeUp(prefix string) bool {
	if prefix == "" || strings.HasPrefix(prefix, "/") || strings.HasPrefix(prefix, "~") || drive.MatchString(prefix+"/") {
		return true
	}
	for _, part := range strings.Split(prefix, "/") {
		if part = strings.ToLower(strings.Trim(part, "<>[]{}")); !placeholders[part] {
			return false
		}
	}
	return true
}

func slashed(s string) string {
	s = strings.TrimSpace(strings.ReplaceAll(s, `\`, "/"))
	for strings.HasPrefix(s, "./") {
		s = s[2:]
	}
	return s
}

func (p *parser) renamed(given, declared string) string {
	if slashed(given) == slashed(declared) {
		return ""
	}
	return given + " was taken for " + declared
}

// nameOf is the path that belongs to the block at fence i, as the answer words it, and its language.
func (p *parser) nameOf(i, previous int) (name, lang string) {
	f := p.fences[i]
	name, lang = p.infoPath(f.info)
	if name != "" {
		return name, lang
	}
	above, at := p.lineAbove(f.from, previous)
	if name, strict := headerPath(above, p.outputs); name != "" {
		if _, ok := p.resolve(name); ok || strict {
			return name, lang
		}
	}
	if name := p.mentioned(above); name != "" {
		return name, lang
	}
	// A path line may stand a few lines higher, with a sentence between; there only its strict form counts.
	for n := 0; n < 4 && at > previous; n++ {
		above, at = p.lineAbove(at, previous)
		if name, strict := headerPath(above, p.outputs); strict {
			if _, ok := p.resolve(name); ok {
				return name, lang
			}
		}
	}
	return "", lang
}

// lineAbove is the nearest line with text that ends before at, and where it begins; not before floor.
func (p *parser) lineAbove(at, floor int) (line string, from int) {
	for at > floor {
		end := at
		if p.text[end-1] == '\n' {
			end--
		}
		from = max(floor, strings.LastIndexByte(p.text[:end], '\n')+1)
		if line = p.text[from:end]; strings.TrimSpace(line) != "" {
			return line, from
		}
		at = from
	}
	return "", at
}

// headerPath reads a line that is nothing but a path: plain, labelled, in bold, in backticks, in a heading, in a list.
// strict tells a line that can be nothing else from one that merely looks like a file name.
func headerPath(line string, outputs []Output) (name string, strict bool) {
	s := strings.TrimSpace(line)
	if s == "" || len(s) > 400 {
		return "", false
	}
	plain := s
	s = strings.Trim(strings.TrimLeft(s, "> "), "= ")
	s = strings.TrimLeft(s, "#")
	heading := s != strings.TrimSpace(line)
	s = listMark.ReplaceAllString(strings.TrimSpace(s), "")
	s = unmark(s)
	if cut := labelled.ReplaceAllString(s, ""); cut != s {
		s, heading = cut, true
	} else if m := labelWord.FindStringSubmatch(s); m != nil {
		s, heading = m[1], true
	}
	s = unmark(s)
	if isDeclared(s, outputs) {
		return s, true
	}
	if cut := unmark(trailing.ReplaceAllString(s, "")); cut != s && cut != "" {
		s = cut
		if isDeclared(s, outputs) {
			return s, true
		}
	}
	if strings.ContainsAny(s, " \t`*<>|\"'") || !looksPath.MatchString(s) || !strings.ContainsAny(s, `/\`) && !fileEnding(s, outputs) {
		return "", false
	}
	marked := heading || strings.ContainsAny(plain, "`*") || strings.Contains(s, "/") || strings.HasSuffix(plain, ":")
	return s, marked
}

// fileEnding tells main.go from fmt.Println, which may stand above an example just as well.
func fileEnding(name string, outputs []Output) bool {
	ending := languageOf(name)
	for _, o := range outputs {
		if languageOf(o.Path) == ending {
			return true
		}
	}
	return endings[ending]
}

// unmark removes emphasis, quotes and the colon around a path.
func unmark(s string) string {
	for {
		cut := strings.TrimSpace(s)
		cut = strings.TrimSuffix(cut, ":")
		for _, m := range []string{"**", "__", "`", "\"", "'", "*"} {
			if inner, ok := strings.CutPrefix(cut, m); ok {
				if inner, ok = strings.CutSuffix(inner, m); ok && inner != "" {
					cut = inner
				}
			}
		}
		if cut == s {
			return s
		}
		s = cut
	}
}

func isDeclared(s string, outputs []Output) bool {
	for _, o := range outputs {
		if slashed(s) == slashed(o.Path) {
			return true
		}
	}
	return false
}

// mentioned is the one declared output that a sentence names, if it names just one.
func (p *parser) mentioned(line string) string {
	if line == "" || len(line) > 1000 {
		return ""
	}
	found := ""
	for _, word := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t`*\"'()[]<>,", r) }) {
		word = strings.TrimRight(word, ".:;!?")
		if d, ok := p.resolve(word); ok && strings.ContainsAny(word, "./") || ok && word == d {
			if found != "" && found != d {
				return ""
			}
			found = d
		}
	}
	return found
}

// infoPath splits an info string into language and path.
func (p *parser) infoPath(info string) (name, lang string) {
	if info == "" {
		return "", ""
	}
	if isDeclared(info, p.outputs) && !knownLanguage(info) {
		return info, ""
	}
	fields := strings.FieldsFunc(info, func(r rune) bool { return strings.ContainsRune(" \t{},", r) })
	for i, field := range fields {
		s := strings.Trim(attribute.ReplaceAllString(field, ""), `"'`)
		if i == 0 {
			if before, after, ok := strings.Cut(s, ":"); ok && after != "" && s == field && !strings.ContainsAny(before, "./\\") {
				lang, s = strings.ToLower(before), after
			} else if s == field && (knownLanguage(s) || !strings.ContainsAny(s, "./")) {
				lang = strings.ToLower(strings.TrimPrefix(s, "."))
				continue
			}
		}
		if _, ok := p.resolve(s); ok {
			return s, lang
		}
		if looksPath.MatchString(s) && (strings.Contains(s, "/") || s != field) {
			name = s
		}
	}
	return name, lang
}

// commentPath reads a path on the first line of a body. The line goes if it is the answer's own mark and not a line
// that the file had before.
func (p *parser) commentPath(body, known string) (rest, name string) {
	start := 0
	line, next := nextLine(body, 0)
	for strings.TrimSpace(line) == "" && next < len(body) {
		start = next
		line, next = nextLine(body, next)
	}
	s := strings.TrimSpace(line)
	if s == "" || len(s) > 400 || strings.HasPrefix(s, "#!") {
		return body, ""
	}
	inner := commentEnd.ReplaceAllString(commentOpn.ReplaceAllString(s, ""), "")
	comment := inner != s
	bare := labelled.ReplaceAllString(inner, "")
	label := bare != inner
	bare = unmark(trailing.ReplaceAllString(bare, ""))
	declared, ok := p.resolve(bare)
	switch {
	case !ok && known == "" && comment && label && looksPath.MatchString(bare):
		return body, bare // names a file that nobody asked for
	case !ok, !comment && !isDeclared(bare, p.outputs), strings.ContainsAny(bare, " \t"):
		return body, ""
	}
	if known != "" {
		if same, is := p.resolve(known); !is || same != declared {
			return body, ""
		}
		if comment && !label && !p.noComments(declared) {
			return body, declared // the path line above named it; this is a comment of the file
		}
	}
	if p.hadFirst(declared, line) {
		return body, declared
	}
	return body[:start] + strings.TrimPrefix(body[next:], "\n"), declared
}

// noComments: a format in which a path line can't be content.
func (p *parser) noComments(name string) bool {
	switch languageOf(name) {
	case "json", "csv", "txt":
		return true
	}
	return false
}

func (p *parser) hadFirst(name, line string) bool {
	for _, o := range p.outputs {
		if o.Path == name && o.Exists {
			first, _ := nextLine(strings.TrimPrefix(normalLines(o.Body), "\ufeff"), 0)
			return strings.TrimSpace(first) == strings.TrimSpace(line)
		}
	}
	return false
}
