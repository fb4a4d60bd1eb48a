package syntax

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name, body string
		wrong      string // part of the error; empty: it parses or is not known
	}{
		{"a.go", "package a\n\nfunc F() {}\n", ""},
		{"a.go", "package a\n\nfunc F() {\n", "line 3"},
		{"a.go", "```go\npackage a\n```\n", "line 1"},
		{"a.go", "", "expected 'package'"},
		{"a.json", `{"a": 1}`, ""},
		{"a.json", "\ufeff{}", ""},
		{"a.json", "{\n\"a\": 1,\n}", "line 3"},
		{"a.json", "{}{}", "line 1"},
		{"tsconfig.json", "{\n// why\n\"a\": 1,\n}", ""},
		{"tsconfig.json", "{\"a\" 1}", "invalid"},
		{"a.jsonl", "{}\n[1]\n\n", ""},
		{"a.jsonl", "{}\n[1\n", "line 2"},
		{"a.toml", "[a]\nb = 1\n", ""},
		{"a.toml", "[a]\nb = \n", "line 2"},
		{"Cargo.lock", "[a\n", "line 2"},
		{"a.yaml", "a: 1\nb:\n  - c\n", ""},
		{"a.yml", "a: [1\n", "["},
		{"a.yaml", "I will now write the file for you.\n", "sentence"},
		{"a.yaml", "a: {{ .Values.a }}\n  {{- if x }}\n", ""},
		{"a.yaml", "", ""},
		{"a.xml", "<a><b/></a>", ""},
		{"a.xml", "<a><b></a>", "b"},
		{"a.svg", "no element", "no element"},
		{"run.sh", "#!/bin/sh\nif true; then echo; fi\n", ""},
		{"run.sh", "#!/bin/sh\nif true; then echo\n", "if"},
		{"run.sh", "#!/usr/bin/env bash\ndiff <(a) <(b)\n", ""},
		{"run.sh", "#!/usr/bin/zsh\nif true { echo }\n", ""},
		{"a.unknown", "(((", ""},
		{"Makefile", "(((", ""},
		{"go.mod", "(((", ""},
	} {
		err := Check(c.name, []byte(c.body))
		switch {
		case c.wrong == "" && err != nil:
			t.Errorf("%s %q: %v", c.name, c.body, err)
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%s %q: error %v, want one with %q", c.name, c.body, err, c.wrong)
		}
	}
}

func TestUnknownLanguageIsSaid(t *testing.T) {
	if v := Of("a.rs", []byte("fn(")); v.Language != "" || v.Err != nil {
		t.Errorf("a.rs: %+v", v)
	}
	if v := Of("a.go", []byte("package a")); v.Language != "go" {
		t.Errorf("a.go: %+v", v)
	}
}

func TestParserPanicIsAnError(t *testing.T) {
	err := guarded(func(string, []byte) error { panic("deep") }, "a", nil)
	if err == nil || !strings.Contains(err.Error(), "deep") {
		t.Errorf("error %v", err)
	}
}

func FuzzCheck(f *testing.F) {
	for _, name := range []string{"a.go", "a.json", "tsconfig.json", "a.toml", "a.yaml", "a.xml", "a.sh", "a.jsonl"} {
		f.Add(name, "{\"a\": [1, 2]}\n")
		f.Add(name, "a: &b [*b]\n")
	}
	f.Fuzz(func(t *testing.T, name, body string) {
		if len(body) > 4096 {
			return
		}
		if v := Of(name, []byte(body)); v.Language == "" && v.Err != nil {
			t.Errorf("an unknown language was judged: %v", v.Err)
		}
	})
}
