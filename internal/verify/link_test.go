//go:build unix

package verify

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"localllm/delegate"
)

// A project is often opened through a link, and a walk does not follow one by itself.
func TestFolderBehindALink(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "project")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	f := in(t, link)
	empty := f.Fingerprint(t.Context())
	o := run(t, f, delegate.Command{Shell: "echo 1 > new; echo " + link + "/new", Timeout: time.Minute})
	if !slices.Equal(o.Changed, []string{"new"}) || o.Output != "new\n" {
		t.Errorf("changed %q, printed %q", o.Changed, o.Output)
	}
	if f.Fingerprint(t.Context()) == empty {
		t.Error("a new file does not change the fingerprint")
	}
}
