//go:build unix

package agents

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A project's definitions go into a prompt: a link could carry any file of the user there, a pipe could keep us waiting.
func TestHostileFiles(t *testing.T) {
	work, outside := t.TempDir(), t.TempDir()
	lay(t, outside, map[string]string{"key": "hidden", "skill/SKILL.md": "hidden"})
	lay(t, work, map[string]string{".claude/agents/ok.md": "x"})
	at := func(rel string) string { return filepath.Join(work, rel) }
	for _, err := range []error{
		os.Symlink(filepath.Join(outside, "key"), at(".claude/agents/link.md")),
		os.Symlink(filepath.Join(work, "nowhere"), at(".claude/agents/dangling.md")),
		os.Mkdir(at(".claude/skills"), 0o755),
		os.Symlink(filepath.Join(outside, "skill"), at(".claude/skills/folder")),
		os.Symlink("/dev/zero", at(".claude/agents/device.md")),
		syscall.Mkfifo(at(".claude/agents/pipe.md"), 0o644),
		os.Mkdir(at(".claude/agents/dir.md"), 0o755),
		os.Mkdir(at(".opencode"), 0o755),
		syscall.Mkfifo(at(".opencode/agent"), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"link", "dangling", "folder", "device", "pipe", "dir"} {
		if d, err := Find(Places{Workdir: work}, name); err == nil || strings.Contains(d.Body, "hidden") {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if list := List(Places{Workdir: work}); len(list) != 7 {
		t.Errorf("%+v", list)
	}
	// In the user's own home a link is how many keep such files.
	home := t.TempDir()
	lay(t, home, map[string]string{".claude/agents/own.md": "x"})
	if err := os.Symlink(filepath.Join(outside, "key"), filepath.Join(home, ".claude/agents/mine.md")); err != nil {
		t.Fatal(err)
	}
	if d, err := Find(Places{Workdir: work, Home: home}, "mine"); err != nil || d.Body != "hidden" {
		t.Errorf("%+v %v", d, err)
	}
}
