package workspace

import (
	"testing"

	"github.com/rogpeppe/go-internal/diff"
)

// Lines of SQL and Lua comments look like the head of a diff once they are removed.
func TestCountTakesCommentsForLines(t *testing.T) {
	old, now := "-- old\n-- second\nselect 1;\nkept\n", "select 2;\n++ i\nkept\n"
	added, removed := count(diff.Diff("a", []byte(old), "b", []byte(now)))
	if added != 2 || removed != 3 {
		t.Errorf("+%d −%d, want +2 −3", added, removed)
	}
}
