package page

import (
	"os"
	"path/filepath"
	"testing"
)

func TestOnlyTheGeneratedPartIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.md")
	const marked = "<!-- generated:a -->\none\n<!-- /generated:a -->\n"
	for _, c := range []struct{ name, before, text, after string }{
		{"no document yet", "", "one\n", marked},
		{"no marks", "# Results\n", "one\n", "# Results\n\n" + marked},
		{"the same again", "# Results\n\n" + marked, "one\n", "# Results\n\n" + marked},
		{"another text", "before\n<!-- generated:a -->\nold\ntext\n<!-- /generated:a -->\nafter\n", "one\n", "before\n" + marked + "after\n"},
		{"another name", "<!-- generated:b -->\nb\n<!-- /generated:b -->\n", "one\n", "<!-- generated:b -->\nb\n<!-- /generated:b -->\n\n" + marked},
	} {
		if c.before != "" {
			write(t, path, c.before)
		}
		if err := Put(path, "a", c.text); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := read(t, path); got != c.after {
			t.Errorf("%s: %q, want %q", c.name, got, c.after)
		}
	}
	const cut = "<!-- generated:a --> cut off"
	write(t, path, cut)
	if err := Put(path, "a", "one\n"); err == nil || read(t, path) != cut {
		t.Errorf("a document that was cut off is written over: %v, %q", err, read(t, path))
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
