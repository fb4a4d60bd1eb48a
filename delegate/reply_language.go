package delegate

import (
	"path"
	"regexp"
	"strings"
)

// languages are the words after a fence, by the file endings (or names) that they stand for.
var languages = map[string][]string{
	"go": {"go"}, "golang": {"go"},
	"python": {"py", "pyi"}, "py": {"py", "pyi"}, "python3": {"py", "pyi"},
	"javascript": {"js", "mjs", "cjs", "jsx"}, "js": {"js", "mjs", "cjs", "jsx"}, "jsx": {"jsx", "js"}, "mjs": {"mjs", "js"}, "node": {"js", "mjs"},
	"typescript": {"ts", "tsx", "mts", "cts"}, "ts": {"ts", "tsx", "mts", "cts"}, "tsx": {"tsx", "ts"},
	"json": {"json", "json5", "webmanifest"}, "jsonc": {"json", "jsonc"}, "yaml": {"yaml", "yml"}, "yml": {"yaml", "yml"}, "toml": {"toml"},
	"ini": {"ini", "cfg", "conf"}, "xml": {"xml", "svg"}, "html": {"html", "htm", "tmpl", "vue"}, "css": {"css"}, "scss": {"scss"},
	"bash": {"sh", "bash"}, "sh": {"sh", "bash"}, "shell": {"sh", "bash"}, "zsh": {"zsh", "sh"}, "console": {}, "terminal": {}, "powershell": {"ps1"},
	"sql": {"sql"}, "rust": {"rs"}, "rs": {"rs"}, "c": {"c", "h"}, "cpp": {"cpp", "cc", "cxx", "hpp", "h"}, "c++": {"cpp", "cc", "cxx", "hpp", "h"},
	"java": {"java"}, "kotlin": {"kt", "kts"}, "swift": {"swift"}, "ruby": {"rb"}, "rb": {"rb"}, "php": {"php"}, "csharp": {"cs"}, "cs": {"cs"},
	"markdown": {"md", "markdown", "mdx"}, "md": {"md", "markdown", "mdx"}, "text": {"txt", ""}, "txt": {"txt", ""}, "plaintext": {"txt", ""},
	"dockerfile": {"dockerfile"}, "docker": {"dockerfile"}, "makefile": {"makefile", "mk"}, "make": {"makefile", "mk"}, "proto": {"proto"}, "lua": {"lua"},
	"diff": {"diff", "patch"}, "patch": {"diff", "patch"}, "vue": {"vue"}, "svelte": {"svelte"}, "graphql": {"graphql", "gql"}, "hcl": {"tf", "hcl"}, "csv": {"csv"},
}

// endings are all of languages' file endings.
var endings = func() map[string]bool {
	all := map[string]bool{"mod": true, "sum": true, "lock": true, "log": true, "env": true, "conf": true, "gradle": true}
	for _, list := range languages {
		for _, e := range list {
			all[e] = e != ""
		}
	}
	return all
}()

func knownLanguage(word string) bool {
	_, ok := languages[strings.ToLower(word)]
	return ok
}

// sameLanguage reports whether a block in lang may be the file, and whether lang is known at all.
func sameLanguage(lang, name string) (known, same bool) {
	endings, ok := languages[strings.ToLower(lang)]
	if !ok {
		return false, strings.EqualFold(lang, languageOf(name))
	}
	ending := languageOf(name)
	if ending == "" {
		ending = strings.ToLower(path.Base(name))
	}
	for _, e := range endings {
		if e == ending || e == "" && path.Ext(name) == "" {
			return true, true
		}
	}
	return true, false
}

func isMarkdown(lang, name string) bool {
	switch languageOf(name) {
	case "md", "markdown", "mdx":
		return true
	case "":
		return lang == "md" || lang == "markdown" || lang == "mdx"
	}
	return false
}

func (p *parser) wantsMarkdown() bool {
	for _, o := range p.outputs {
		if isMarkdown("", o.Path) {
			return true
		}
	}
	return false
}

var hunk = regexp.MustCompile(`^@@ .*@@|^@@$|^@@ -\d`)

// isDiff reports whether a block is a diff and not a file.
func isDiff(lang, body string) bool {
	if lang == "diff" || lang == "patch" || lang == "udiff" {
		return true
	}
	body = strings.TrimLeft(body, " \t\n")
	first, next := nextLine(body, 0)
	second := ""
	if next < len(body) {
		second, _ = nextLine(body, next)
	}
	return strings.HasPrefix(first, "diff --git ") || strings.HasPrefix(first, "*** Begin Patch") || hunk.MatchString(first) ||
		strings.HasPrefix(first, "--- ") && strings.HasPrefix(second, "+++ ")
}
