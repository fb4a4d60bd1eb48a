//go:build unix

package treefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

func open(t *testing.T) (*Root, string) {
	t.Helper()
	dir := t.TempDir()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r, dir
}

func TestReplace(t *testing.T) {
	r, dir := open(t)
	at := time.Unix(1_400_000_000, 7)
	if err := r.Replace("a", ".t", []byte("one"), Form{Mode: 0o640, Time: at}); err != nil {
		t.Fatal(err)
	}
	data, info, err := r.Read("a", 10)
	if err != nil || string(data) != "one" || info.Mode() != 0o640 || !info.ModTime().Equal(at) {
		t.Errorf("%q %v %v", data, info, err)
	}
	if err := r.Replace("run", ".t", []byte("#!/bin/sh\n"), Form{}); err != nil {
		t.Fatal(err)
	}
	if info, _ := r.Stat("run"); info.Mode()&0o100 == 0 {
		t.Errorf("a new script can't be run: %v", info.Mode())
	}
	if err := r.Restamp("a", Form{Mode: 0o600, Time: at.Add(1)}); err != nil {
		t.Fatal(err)
	}
	if info, _ := r.Stat("a"); info.Mode() != 0o600 || !info.ModTime().Equal(at.Add(1)) {
		t.Errorf("%v", info)
	}
	left, _ := os.ReadDir(dir)
	if len(left) != 2 {
		t.Errorf("left: %v", left)
	}
}

// A hard link or a symbolic link at the target is replaced itself; what it leads to stays.
func TestLinksAreReplacedNotFollowed(t *testing.T) {
	r, dir := open(t)
	victim := filepath.Join(t.TempDir(), "victim")
	err := errors.Join(os.WriteFile(victim, []byte("v"), 0o644), os.Link(victim, filepath.Join(dir, "hard")), os.Symlink(victim, filepath.Join(dir, "soft")),
		r.Replace("hard", ".t", []byte("x"), Form{}), r.Replace("soft", ".t", []byte("x"), Form{}))
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := os.ReadFile(victim); string(body) != "v" {
		t.Errorf("the victim holds %q", body)
	}
}

func TestWhatIsNotRead(t *testing.T) {
	r, dir := open(t)
	err := errors.Join(os.Symlink("/etc", filepath.Join(dir, "etc")), os.Symlink("file", filepath.Join(dir, "soft")), syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600),
		os.WriteFile(filepath.Join(dir, "file"), []byte("12345"), 0o600), os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	if err != nil {
		t.Fatal(err)
	}
	for rel, want := range map[string]error{"etc/passwd": ErrLink, "soft": ErrLink, "pipe": ErrNotFile, "folder": ErrNotFile, "file": ErrTooBig, "file/x": fs.ErrNotExist, "none": fs.ErrNotExist, "../x": fs.ErrInvalid, "/etc/passwd": fs.ErrInvalid, ".": fs.ErrInvalid} {
		if _, _, err := r.Read(rel, 4); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", rel, err, want)
		}
		if rel != "file" && rel != "soft" && rel != "pipe" && rel != "none" {
			if err := r.Replace(rel, ".t", nil, Form{}); err == nil {
				t.Errorf("%s was written", rel)
			}
		}
	}
	if err := r.Restamp("soft", Form{Mode: 0o777}); !errors.Is(err, ErrNotFile) {
		t.Errorf("restamping a link: %v", err)
	}
}

func TestFolders(t *testing.T) {
	r, dir := open(t)
	missing, err := r.Missing("a/b/c.txt")
	if err != nil || !slices.Equal(missing, []string{"a", "a/b"}) {
		t.Errorf("%q %v", missing, err)
	}
	for _, d := range missing {
		if err := errors.Join(r.MakeFolder(d), r.MakeFolder(d)); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(r.Writable("a/b/c.txt"), r.Writable("x/y/z")); err != nil {
		t.Error(err)
	}
	if err := r.Replace("a/b/c.txt", ".t", []byte("x"), Form{}); err != nil {
		t.Error(err)
	}
	if err := r.Remove("a/b"); err == nil {
		t.Error("a folder with a file in it was removed")
	}
	if err := errors.Join(r.Remove("a/b/c.txt"), r.Remove("a/b"), r.Remove("a"), r.Remove("a"), r.Remove("no/where")); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "plain"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Missing("plain/x"); !errors.Is(err, ErrNotFile) {
		t.Errorf("below a file: %v", err)
	}
	if info, err := r.Stat("."); err != nil || !info.IsDir() || Links(info) == 0 || r.Name() != dir {
		t.Errorf("%v %v", info, err)
	}
}
