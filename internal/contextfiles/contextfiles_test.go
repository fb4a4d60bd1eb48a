package contextfiles

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"localllm/internal/hint"
)

// tree writes files and returns their folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, body := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func paths(s Set) string {
	var names []string
	for _, f := range s.Files {
		names = append(names, f.Path)
	}
	return strings.Join(names, " ")
}

func TestExpand(t *testing.T) {
	dir := tree(t, map[string]string{
		"b.go": "package b\r\n", "a.go": "package a\n", "sub/c.go": "package c\n", "sub/deep/d.go": "package d\n", "sub/note.md": "n\n",
		".gitignore": "/dist/\n*.log\n!keep.log\n", "dist/x.go": "x", "a.log": "l", "keep.log": "k", "sub/.gitignore": "note.md\n",
		"blob.bin": "a\x00b", "latin.txt": "caf\xe9", ".env": "KEY=1", "sub/.env.example": "KEY=", "[x].go": "package x\n",
		".git/config": "[core]", "with space.txt": "s\n", "key.pem": "k",
	})
	for _, c := range []struct {
		patterns string // separated by |
		want     string
	}{
		{"b.go|a.go", "b.go a.go"},
		{"a.go|a.go|./a.go", "a.go"},
		{"*.go", "[x].go a.go b.go"},
		{"**/*.go", "[x].go a.go b.go sub/c.go sub/deep/d.go"},
		{"sub/**/d.go", "sub/deep/d.go"},
		{"sub", "sub/.env.example sub/.gitignore sub/c.go sub/deep/d.go"},
		{"sub/", "sub/.env.example sub/.gitignore sub/c.go sub/deep/d.go"},
		{"b.go|*.go", "b.go [x].go a.go"},
		{"[x].go", "[x].go"},
		{"*.log", "keep.log"},
		{"dist/x.go", "dist/x.go"}, // named by itself
		{"with space.txt", "with space.txt"},
		{"{a,b}.go", "a.go b.go"},
		{"{.env,a.go}", "a.go"},
		{"*.{bin,txt}", "with space.txt"},
	} {
		set, err := Expand(t.Context(), Options{Root: dir}, strings.Split(c.patterns, "|"))
		if err != nil || paths(set) != c.want {
			t.Errorf("%s: %q %v, want %q", c.patterns, paths(set), err, c.want)
		}
	}
	set, _ := Expand(t.Context(), Options{Root: dir}, []string{"b.go"})
	if set.Files[0].Body != "package b\n" {
		t.Errorf("CRLF stayed: %q", set.Files[0].Body)
	}
	set, _ = Expand(t.Context(), Options{Root: dir}, []string{"."})
	var skipped []string
	for _, s := range set.Skipped {
		skipped = append(skipped, s.Path)
	}
	if got := strings.Join(skipped, " "); got != ".env blob.bin key.pem latin.txt" {
		t.Errorf("skipped %q", got)
	}
}

// Each delegation makes the log longer: a folder that holds it would never be the same prompt twice.
func TestTheDelegationLogIsGivenOnlyWhereItIsMeant(t *testing.T) {
	dir := tree(t, map[string]string{
		"a.go": "a", ".claude/workflow/delegation-log.jsonl": "{}", ".claude/workflow/delegation-log.1.jsonl": "{}", ".claude/workflow/plan.md": "p",
		"sub/.claude/workflow/delegation-log.jsonl": "{}", "delegation-log.md": "mine",
	})
	for pattern, want := range map[string]string{
		".":                                     ".claude/workflow/plan.md a.go delegation-log.md",
		".claude":                               ".claude/workflow/plan.md",
		"**/*.jsonl":                            "",
		".claude/workflow/*.jsonl":              ".claude/workflow/delegation-log.1.jsonl .claude/workflow/delegation-log.jsonl",
		".claude/workflow/delegation-log.jsonl": ".claude/workflow/delegation-log.jsonl",
	} {
		if set, _ := Expand(t.Context(), Options{Root: dir}, []string{pattern}); paths(set) != want {
			t.Errorf("%s: %q, want %q", pattern, paths(set), want)
		}
	}
}

func TestRefused(t *testing.T) {
	dir := tree(t, map[string]string{"a.go": "a", "blob": "a\x00b", ".env": "K", "key.txt": "-----BEGIN RSA PRIVATE KEY-----\n", "big.txt": strings.Repeat("x", 3000),
		".gitignore": "dist\n", "dist/a.js": "x"})
	outside := tree(t, map[string]string{"secret.txt": "outside", "sub/x.txt": "x"})
	for _, c := range []struct{ pattern, reason string }{
		{"", "empty"}, {"none.go", "does not exist"}, {"no*.go", "matches no file"}, {"none/**", "matches no file"}, {"[a", "does not exist|valid glob"},
		{"../a.go", "outside"}, {"x/../../a.go", "outside"}, {"sub/../a.go", "outside"}, {filepath.Join(outside, "secret.txt"), "outside of the project"},
		{"a\x00.go", "NUL"}, {"blob", "binary"}, {".env", "secret"}, {"key.txt", "private key"}, {"big.txt", "too large: 3 KiB, at most 2"},
		{"dist/*.js", ".gitignore excludes"}, {dir + "-sibling/a.go", "outside of the project"},
	} {
		_, err := Expand(t.Context(), Options{Root: dir, MaxFileBytes: 2048}, []string{"a.go", c.pattern})
		var refused *Refused
		if !errors.As(err, &refused) || !slices.ContainsFunc(strings.Split(c.reason, "|"), func(r string) bool { return strings.Contains(err.Error(), r) }) {
			t.Errorf("%q: %v, want a refusal with %q", c.pattern, err, c.reason)
		}
	}
}

func TestTooMany(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "many"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 50_000 {
		if err := os.WriteFile(filepath.Join(dir, "many", fmt.Sprintf("f%05d.txt", i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, err := Expand(t.Context(), Options{Root: dir}, []string{"**/*.txt"})
	if err == nil || !strings.Contains(err.Error(), "more than 500 files") || len(hint.Of(err)) != 1 {
		t.Errorf("50,000 files: %v %v", err, hint.Of(err))
	}
	_, err = Expand(t.Context(), Options{Root: dir, MaxBytes: 5}, []string{"many/f00000.txt", "many"})
	if err == nil || !strings.Contains(err.Error(), "more than 500") {
		t.Errorf("empty files: %v", err)
	}
	big := tree(t, map[string]string{"a": "12345", "b": "12345"})
	if _, err = Expand(t.Context(), Options{Root: big, MaxBytes: 9}, []string{"*"}); err == nil || !strings.Contains(err.Error(), "together") {
		t.Errorf("total: %v", err)
	}
}

func TestReadRoots(t *testing.T) {
	dir := tree(t, map[string]string{"a.go": "a"})
	base := t.TempDir()
	lib := filepath.Join(base, "lib")
	if err := os.MkdirAll(filepath.Join(lib, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(lib, "x", "y.go"), []byte("y"), 0o644); err != nil {
		t.Fatal(err)
	}
	o := Options{Root: dir, ReadRoots: []string{lib}}
	for pattern, want := range map[string]string{filepath.Join(lib, "x", "y.go"): "lib/x/y.go", filepath.Join(lib, "**", "*.go"): "lib/x/y.go", lib: "lib/x/y.go", filepath.Join(dir, "a.go"): "a.go"} {
		set, err := Expand(t.Context(), o, []string{pattern})
		if err != nil || paths(set) != want {
			t.Errorf("%s: %q %v, want %q", pattern, paths(set), err, want)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "lib"), 0o755); err != nil { // the name is taken in the project
		t.Fatal(err)
	}
	if set, err := Expand(t.Context(), o, []string{lib}); err != nil || paths(set) != "lib-2/x/y.go" {
		t.Errorf("%q %v", paths(set), err)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Expand(ctx, Options{Root: tree(t, map[string]string{"a": "a"})}, []string{"."}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestRead(t *testing.T) {
	dir := tree(t, map[string]string{"a.txt": "a\r\n", "sub/b": "b"})
	if body, ok, err := Read(dir, "a.txt"); body != "a\r\n" || !ok || err != nil {
		t.Errorf("%q %v %v: an output's bytes are as they are", body, ok, err)
	}
	if _, ok, err := Read(dir, "none"); ok || err != nil {
		t.Errorf("none: %v %v", ok, err)
	}
	for _, name := range []string{"sub", "../x", "/etc/passwd", ""} {
		var refused *Refused
		if _, _, err := Read(dir, name); !errors.As(err, &refused) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
