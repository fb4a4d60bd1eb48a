//go:build unix

package contextfiles

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// Everything that is not a plain file with one name inside of the folder is refused by name and skipped by a walk.
func TestPathsThatLeadElsewhere(t *testing.T) {
	dir := tree(t, map[string]string{"a.txt": "a", "sub/b.txt": "b"})
	outside := tree(t, map[string]string{"secret.txt": "outside", "sub/x.txt": "x"})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	must(os.Symlink(filepath.Join(outside, "secret.txt"), at("out")))
	must(os.Symlink(filepath.Join(outside, "none"), at("dangling")))
	must(os.Symlink("nowhere", at("nowhere-link")))
	must(os.Symlink(outside, at("outdir")))
	must(os.Symlink(at("a.txt"), at("absolute-inside")))
	must(os.Link(filepath.Join(outside, "secret.txt"), at("hard")))
	must(syscall.Mkfifo(at("fifo"), 0o600))
	must(os.Symlink("fifo", at("to-fifo")))
	must(os.Symlink("a.txt", at("inside")))
	must(os.Symlink("loop", at("loop")))
	for name, reason := range map[string]string{
		"out": "outside", "dangling": "outside", "nowhere-link": "symbolic link to nothing", "outdir": "outside", "outdir/secret.txt": "outside",
		"absolute-inside": "outside", "hard": "hard links", "fifo": "FIFO", "to-fifo": "FIFO",
	} {
		_, err := Expand(t.Context(), Options{Root: dir}, []string{name})
		var refused *Refused
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v, want a refusal with %q", name, err, reason)
		}
	}
	if _, err := Expand(t.Context(), Options{Root: dir}, []string{"loop"}); err == nil {
		t.Error("a link to itself was read")
	}
	if set, err := Expand(t.Context(), Options{Root: dir}, []string{"inside"}); err != nil || set.Files[0].Body != "a" {
		t.Errorf("a relative link inside: %v %v", set, err)
	}
	set, err := Expand(t.Context(), Options{Root: dir}, []string{"**/*"})
	if err != nil || paths(set) != "a.txt sub/b.txt" {
		t.Errorf("walk: %q %v", paths(set), err)
	}
}

// A link by a harmless name used to show a file of secrets to the model.
func TestALinkToASecretIsOne(t *testing.T) {
	dir := tree(t, map[string]string{".env": "KEY=1", ".aws/credentials": "x", "cert/ca.pem": "public", "a.txt": "a"})
	for link, to := range map[string]string{"notes.txt": ".env", "folder": ".aws"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"notes.txt", "folder/credentials"} {
		if set, err := Expand(t.Context(), Options{Root: dir}, []string{name}); err == nil || !strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, %v", name, set, err)
		}
	}
	if set, err := Expand(t.Context(), Options{Root: dir}, []string{"cert/ca.pem"}); err != nil || len(set.Files) != 1 {
		t.Errorf("a public certificate: %v", err)
	}
}

// git itself says which files a folder comes to.
func TestIgnoreAsGitDoes(t *testing.T) {
	files := map[string]string{
		".gitignore":     "*.o\n/top.txt\nbuild/\ndocs/*.html\n!docs/keep.html\n**/cache/**\nfoo?bar\n[ab].tmp\n{x}.txt\nlib/sub\ntrailing   \n\\#hash\n\\!bang\n*.log\n!important.log\nabc/**\nq/*/z\n# a comment\n\nsp\\ ace\n",
		"src/.gitignore": "!*.o\nlocal\n/only-here\n", "src/deep/.gitignore": "*.go\n!main.go\n",
	}
	for _, name := range []string{"a.o", "src/a.o", "src/deep/b.o", "top.txt", "sub/top.txt", "build/x", "sub/build/y", "buildx", "docs/a.html", "docs/keep.html", "docs/in/b.html",
		"cache/x", "a/cache/b/c", "fooXbar", "foobar", "a.tmp", "c.tmp", "{x}.txt", "x.txt", "lib/sub/f", "x/lib/sub/f", "trailing", "#hash", "!bang", "a.log", "important.log",
		"s/important.log", "abc/d/e", "abc2/d", "q/1/z", "q/1/2/z", "src/local", "src/only-here", "src/deep/only-here", "src/deep/x.go", "src/deep/main.go", "sp ace"} {
		files[name] = "x"
	}
	dir := tree(t, files)
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return string(out)
	}
	git("init", "-q")
	if err := os.WriteFile(filepath.Join(dir, ".git", "info", "exclude"), []byte("fooXbar\nx.txt\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(git("ls-files", "--others", "--exclude-standard", "-z"), "\x00"), "\x00")
	set, err := Expand(t.Context(), Options{Root: dir}, []string{"."})
	if err != nil {
		t.Fatal(err)
	}
	got := make([]string, len(set.Files))
	for i, f := range set.Files {
		got[i] = f.Path
	}
	slices.Sort(got)
	slices.Sort(want)
	for _, name := range want {
		if !slices.Contains(got, name) {
			t.Errorf("git lists %s, this does not", name)
		}
	}
	for _, name := range got {
		if !slices.Contains(want, name) {
			t.Errorf("this lists %s, git does not", name)
		}
	}
}
