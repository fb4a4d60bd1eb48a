package agents

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func lay(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheFirstPlaceCounts(t *testing.T) {
	work, home := t.TempDir(), t.TempDir()
	p := Places{Workdir: work, Project: work, Home: home}
	// From the last to the first that counts: each new file goes before all that were there.
	order := []string{
		"H/.agents/skills/x/SKILL.md", "H/.codex/agents/x.toml", "H/.config/opencode/agent/x.md", "H/.claude/skills/x/SKILL.md", "H/.claude/agents/x.md",
		"W/.agents/skills/x/SKILL.md", "W/.codex/agents/x.toml", "W/.opencode/agent/x.md", "W/.claude/skills/x/SKILL.md", "W/.claude/agents/x.md",
	}
	for i, name := range order {
		dir, rel := home, name[2:]
		if name[0] == 'W' {
			dir = work
		}
		body := "---\ndescription: from " + name + "\n---\nDo it.\n"
		if strings.HasSuffix(name, ".toml") {
			body = "description = \"from " + name + "\"\ndeveloper_instructions = \"Do it.\"\n"
		}
		lay(t, dir, map[string]string{rel: body})
		d, err := Find(p, "x")
		if err != nil || d.Description != "from "+name || d.Body != "Do it." || d.Source != filepath.Join(dir, rel) {
			t.Errorf("%s: %+v %v", name, d, err)
		}
		if list := List(p); len(list) != 1 || len(list[0].Shadows) != i {
			t.Errorf("%s: %+v", name, list)
		}
	}
}

func TestWhatADefinitionSays(t *testing.T) {
	rows := []struct {
		name, text, description, model, body string
		may                                  map[string]bool
		problem                              string
	}{
		{name: "none at all", text: "Just do it.\n", body: "Just do it.", may: map[string]bool{"read": true, "bash": true}},
		{name: "a list", text: "---\nname: other\ndescription: >\n  Writes\n  tests.\nmodel: haiku\ntools: Read, Grep, Bash(git:*)\n---\n\n# Tests\nWrite them.\n", description: "Writes tests.", model: "haiku", body: "# Tests\nWrite them.",
			may: map[string]bool{"read": true, "bash": true, "write": false}},
		{name: "a sequence", text: "---\ntools: [Read, Edit]\n---\nx", body: "x", may: map[string]bool{"edit": true, "bash": false}},
		{name: "OpenCode's map", text: "---\ntools:\n  bash: false\n  write: true\n---\nx", body: "x", may: map[string]bool{"bash": false, "write": true, "read": true}},
		{name: "a skill's", text: "---\nallowed-tools: Read\n---\nx", body: "x", may: map[string]bool{"read": true, "write": false}},
		{name: "not YAML, but usual", text: "---\ndescription: Use when: it rains\nmodel: opus\n---\nx", description: "Use when: it rains", model: "opus", body: "x"},
		{name: "CRLF and a mark", text: "\ufeff---\r\ndescription: d\r\n---\r\nx\r\ny", description: "d", body: "x\ny"},
		{name: "empty front matter", text: "---\n---\nx", body: "x"},
		{name: "a rule, no front matter", text: "x\n---\ny\n---\n", body: "x\n---\ny\n---"},
		{name: "numbers for words", text: "---\ndescription: 3\nmodel: [a]\n---\nx", description: "3", model: "[a]", body: "x"},
		{name: "no end", text: "---\ndescription: d\nx", problem: "no end"},
		{name: "nothing", text: "", problem: "no instructions"},
		{name: "only front matter", text: "---\ndescription: d\n---\n", problem: "no instructions"},
		{name: "binary", text: "a\x00b", problem: "UTF-8"},
		{name: "not UTF-8", text: "a\xffb", problem: "UTF-8"},
		{name: "aliases", text: "---\na: &a [x,x]\nb: &b [*a,*a]\ndescription: *b\n---\nx", problem: "aliases"},
		{name: "long front matter", text: "---\ndescription: " + strings.Repeat("x", maxFront) + "\n---\nx", problem: "longer"},
		{name: "large", text: strings.Repeat("x", MaxFile+1), problem: "larger"},
	}
	for _, r := range rows {
		dir := t.TempDir()
		lay(t, dir, map[string]string{".claude/agents/a.md": r.text})
		d, err := Find(Places{Workdir: dir}, "a")
		if r.problem != "" {
			if err == nil || !strings.Contains(err.Error(), r.problem) || d.Problem == "" || len(List(Places{Workdir: dir})) != 1 {
				t.Errorf("%s: %v", r.name, err)
			}
			continue
		}
		if err != nil || d.Description != r.description || d.Model != r.model || d.Body != r.body {
			t.Errorf("%s: %+v %v", r.name, d, err)
		}
		for tool, want := range r.may {
			if d.May(tool) != want {
				t.Errorf("%s: may %s: %v of %v", r.name, tool, !want, d.Tools)
			}
		}
	}
}

func TestANameIsNoPath(t *testing.T) {
	dir := t.TempDir()
	lay(t, dir, map[string]string{"secret.md": "x", ".claude/agents/good.md": "x", ".claude/agents/sub/deep.md": "x"})
	for _, name := range []string{"", ".", "..", "../../secret", "sub/deep", `sub\deep`, "/etc/passwd", "a\x00b", ".hidden", "a..b", strings.Repeat("a", 65), "NAME/x", "ü"} {
		if d, err := Find(Places{Workdir: dir}, name); err == nil || errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %+v %v", name, d, err)
		}
	}
	if _, err := Find(Places{Workdir: dir}, "other"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if list := List(Places{Workdir: dir}); len(list) != 1 || list[0].Name != "good" {
		t.Errorf("%+v", list)
	}
}

func TestAnUnusableOneIsNotPassedOver(t *testing.T) {
	work, home := t.TempDir(), t.TempDir()
	lay(t, work, map[string]string{".claude/agents/a.md": ""})
	lay(t, home, map[string]string{".claude/agents/a.md": "x"})
	if _, err := Find(Places{Workdir: work, Home: home}, "a"); err == nil {
		t.Error("the one behind it was taken")
	}
}

func TestListOrder(t *testing.T) {
	work := t.TempDir()
	lay(t, work, map[string]string{".claude/agents/b.md": "x", ".claude/skills/a/SKILL.md": "x", ".codex/agents/c.toml": `developer_instructions = "x"`, ".codex/agents/d.toml": "= ="})
	var names []string
	for _, d := range List(Places{Workdir: work}) {
		names = append(names, d.Name+" "+d.Kind)
	}
	if want := []string{"a claude skill", "b claude agent", "c codex agent", "d codex agent"}; !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
}

func FuzzDefinition(f *testing.F) {
	for _, s := range []string{"x", "---\ndescription: d\ntools: [a]\n---\nx", "---\na: &a\n---\n", "---\ntools: {a: false}\n---\nx", "---\n- - - -\n---\nx", "---\n? :\n---\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) > MaxFile {
			return
		}
		for _, parse := range []func([]byte, *Definition) error{markdown, codex} {
			var d Definition
			ended := make(chan error, 1)
			go func() { ended <- parse(raw, &d) }()
			select {
			case err := <-ended:
				if err == nil && d.Body == "" {
					t.Error("no instructions and no error")
				}
			case <-time.After(20 * time.Second):
				t.Fatal("it never ends")
			}
			if len(d.Description) > maxDescription+4 || len(d.Model) > maxDescription+4 {
				t.Errorf("description of %d bytes", len(d.Description))
			}
		}
	})
}
