package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestWriteReplacesALinkAndNotWhatItPointsTo(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(dir, "outside")
	target := filepath.Join(dir, "target")
	if err := os.WriteFile(outside, []byte("keep"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, target); err != nil {
		t.Fatal(err)
	}
	if err := Write(target, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(outside); string(got) != "keep" {
		t.Errorf("the link's target was overwritten: %q", got)
	}
	info, err := os.Lstat(target)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != 0o600 {
		t.Errorf("mode %v, want a plain file with 0600", info.Mode())
	}
}

func TestAFailedWriteLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "folder")
	if err := os.Mkdir(target, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(target, []byte("x"), 0o600); err == nil {
		t.Fatal("writing over a folder worked")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestJSONRoundTripAndMissingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	type doc struct{ Version int }
	if err := WriteJSON(path, doc{3}); err != nil {
		t.Fatal(err)
	}
	var got doc
	if err := ReadJSON(path, &got); err != nil || got.Version != 3 {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := ReadJSON(path+".none", &got); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}
