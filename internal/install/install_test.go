package install

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/BurntSushi/toml"
	"github.com/tailscale/hujson"

	"localllm/internal/hint"
)

var marketplace = fstest.MapFS{
	".claude-plugin/marketplace.json": {Data: []byte(`{"name":"localllm"}`)},
	"workflow/.mcp.json":              {Data: []byte("{\n  \"mcpServers\": {\n    \"local_llm\": {\n      \"command\": \"localllm\",\n      \"args\": [\"mcp\"]\n    }\n  }\n}\n")},
	"workflow/hooks/hooks.json":       {Data: []byte(`{"command": "localllm hook session-end", "timeout": 10}`)},
}

// fixture is a home or project folder before anything is installed.
type fixture struct {
	name    string
	client  string
	scope   string
	files   map[string]string // by path under the home folder; "-> target" is a link, "read-only: text" says itself
	refused string            // what the error says; nothing may have changed then
	edit    [2]string         // what the user changes afterwards: file and what is put at its end
}

const (
	claudeSettings = ".claude/settings.json"
	claudePolicy   = ".claude/CLAUDE.md"
	openCode       = ".config/opencode/opencode.json"
)

var fixtures = []fixture{
	{name: "nothing there", client: ClaudeCode},
	{name: "empty file", client: ClaudeCode, files: map[string]string{claudeSettings: "", claudePolicy: ""}},
	{name: "white space only", client: OpenCode, files: map[string]string{openCode: "\n\n  "}},
	{name: "empty object", client: Cursor, files: map[string]string{".cursor/mcp.json": "{}"}},
	{name: "other servers and unknown keys", client: Cursor, files: map[string]string{".cursor/mcp.json": `{
	"mcpServers": {
		"other": {"command": "x", "unknown": [1, 2.50, 1e3]}
	},
	"theme": "dark"
}
`}},
	{name: "comments and trailing commas", client: OpenCode, files: map[string]string{".config/opencode/opencode.jsonc": `// mine
{
  /* the model */
  "model": "a/b", // favourite
  "mcp": {
    // my server
    "mine": { "type": "local", "command": ["x"], }, // keep
    // the end
  },
}
// after
`}},
	{name: "one line", client: VSCode, files: map[string]string{".config/Code/User/mcp.json": `{"servers":{"a":{"command":"b"}},"inputs":[]}`}},
	{name: "CRLF", client: ClaudeCode, files: map[string]string{claudeSettings: "{\r\n    \"model\": \"opus\"\r\n}\r\n", claudePolicy: "# Mine\r\n\r\nBe brief.\r\n"}},
	{name: "byte order mark", client: VSCode, files: map[string]string{".config/Code/User/mcp.json": "\xef\xbb\xbf{\n  \"servers\": {}\n}"}},
	{name: "a comment behind the last member", client: OpenCode, files: map[string]string{openCode: "{\n  \"a\": 1 // one\n  // two\n}\n"}},
	{name: "policy without a line end", client: ClaudeCode, files: map[string]string{claudePolicy: "no line end"}, edit: [2]string{claudePolicy, "\nmore of mine"}},
	{name: "another tool's block", client: ClaudeCode, files: map[string]string{claudePolicy: "<!-- other:begin v3 -->\ntheirs\n<!-- other:end -->\n"},
		edit: [2]string{claudePolicy, "<!-- other:begin -->\nmore\n<!-- other:end -->\n"}},
	{name: "codex with tables and comments", client: Codex, files: map[string]string{".codex/config.toml": "model = \"x\" # fast\n\n[mcp_servers.other]\ncommand = \"y\"\n", ".codex/AGENTS.md": "# Rules\n"},
		edit: [2]string{".codex/config.toml", "\n[projects.\"/x\"]\ntrust_level = \"trusted\"\n"}},
	{name: "codex without a line end", client: Codex, files: map[string]string{".codex/config.toml": "model = 'x'"}},
	{name: "codex with CRLF", client: Codex, files: map[string]string{".codex/config.toml": "model = 'x'\r\n"}},
	{name: "a link to a dotfiles folder", client: Cursor, files: map[string]string{"dotfiles/mcp.json": "{\n}\n", ".cursor/mcp.json": "-> ../dotfiles/mcp.json"}},
	{name: "a project", client: ClaudeCode, scope: Project, files: map[string]string{"p/CLAUDE.md": "Use tabs.\n"}},
	{name: "a project for codex", client: Codex, scope: Project, files: map[string]string{"p/AGENTS.md": "Use tabs.\n\n"}},

	{name: "broken JSON", client: Cursor, files: map[string]string{".cursor/mcp.json": `{"mcpServers": {`}, refused: "unexpected EOF"},
	{name: "broken JSON beside a good policy", client: ClaudeCode, files: map[string]string{claudeSettings: `{"a": }`, claudePolicy: "mine"}, refused: "settings.json"},
	{name: "not an object", client: Cursor, files: map[string]string{".cursor/mcp.json": `{"mcpServers": ["x"]}`}, refused: "mcpServers is no object"},
	{name: "a key that is there twice", client: Cursor, files: map[string]string{".cursor/mcp.json": `{"mcpServers": {}, "mcpServers": {}}`}, refused: "twice"},
	{name: "broken TOML", client: Codex, files: map[string]string{".codex/config.toml": "model = \n"}, refused: "not valid TOML"},
	{name: "a server by hand", client: Codex, files: map[string]string{".codex/config.toml": "[mcp_servers.local_llm]\ncommand = 'mine'\n"}, refused: "somebody else's making"},
	{name: "an inline table", client: Codex, files: map[string]string{".codex/config.toml": "mcp_servers = { a = { command = 'b' } }\n"}, refused: "can't take another table"},
	{name: "half a marker pair", client: ClaudeCode, files: map[string]string{claudePolicy: "x\n<!-- localllm:begin v1 n1 -->\ny\n"}, refused: "markers are damaged"},
	{name: "read-only", client: Cursor, files: map[string]string{".cursor/mcp.json": "read-only: {}"}, refused: "read-only"},
	{name: "a link to nowhere", client: Cursor, files: map[string]string{".cursor/mcp.json": "-> /no/such/file"}, refused: "leads nowhere"},
	{name: "a folder in its place", client: Cursor, files: map[string]string{".cursor/mcp.json/x": ""}, refused: "no ordinary file"},
	{name: "a link out of the project", client: ClaudeCode, scope: Project, files: map[string]string{"secret": "x", "p/CLAUDE.md": "-> ../secret"}, refused: "leads out of the project"},
	{name: "a linked folder out of the project", client: Cursor, scope: Project, files: map[string]string{"elsewhere/x": "", "p/.cursor": "-> ../elsewhere", "p/README": ""}, refused: "leads out of the project"},
	{name: "a folder where the backup goes", client: Cursor, files: map[string]string{".cursor/mcp.json": "{}", ".cursor/mcp.json.localllm-backup/x": ""}, refused: "no ordinary file"},
}

func (f fixture) options(t *testing.T) (Options, string) {
	t.Helper()
	home := t.TempDir()
	for name, text := range f.files {
		path := filepath.Join(home, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if link, ok := strings.CutPrefix(text, "-> "); ok {
			if err := os.Symlink(link, path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		text, readOnly := strings.CutPrefix(text, "read-only: ")
		mode := os.FileMode(0o640)
		if readOnly {
			mode = 0o440
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(home, "p"), 0o755); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"OLLAMA_HOST": "127.0.0.1:11500"}
	return Options{Clients: []string{f.client}, Scope: f.scope, Binary: "/opt/local llm/localllm", Home: home, Project: filepath.Join(home, "p"),
		State: filepath.Join(home, "state"), Plugin: marketplace, Getenv: func(k string) string { return env[k] }}, home
}

// tree is every file, link and mode under dir; folders don't count.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		if link, err := os.Readlink(path); err == nil {
			files[name] = "-> " + link
			return nil
		}
		data, err := os.ReadFile(path)
		files[name] = info.Mode().String() + " " + string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestInstallAndUninstallLeaveNoTrace(t *testing.T) {
	for _, f := range fixtures {
		t.Run(f.name, func(t *testing.T) {
			o, home := f.options(t)
			before := tree(t, home)
			dry := o
			dry.DryRun = true
			if _, err := Install(dry); (err != nil) != (f.refused != "") || !maps.Equal(tree(t, home), before) {
				t.Errorf("a dry run: %v, or it changed something", err)
			}
			changes, err := Install(o)
			if f.refused != "" {
				if err == nil || !strings.Contains(err.Error(), f.refused) || len(hint.Of(err)) == 0 {
					t.Errorf("error %v, want one with %q and a hint", err, f.refused)
				}
				if after := tree(t, home); !maps.Equal(after, before) {
					t.Errorf("refused, and yet changed: %q", after)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			check(t, o, changes)
			installed := tree(t, home)
			again, err := Install(o)
			if err != nil || !maps.Equal(tree(t, home), installed) {
				t.Errorf("the second time changed something: %v", err)
			}
			for _, c := range again {
				if c.Action != "unchanged" && c.Action != "skipped" {
					t.Errorf("the second time: %+v", c)
				}
			}
			if f.edit[0] != "" {
				edited(t, f, o, home)
				return
			}
			if _, err := Uninstall(o); err != nil {
				t.Fatal(err)
			}
			after := tree(t, home)
			if f.scope == Project { // other projects may use the plugin
				maps.DeleteFunc(after, func(name, _ string) bool { return strings.HasPrefix(name, "state") })
			}
			if !maps.Equal(after, before) {
				t.Errorf("left behind:\n%q\nbefore:\n%q", after, before)
			}
			if gone, err := Uninstall(o); err != nil || slices.ContainsFunc(gone, func(c Change) bool { return c.Action != "unchanged" }) {
				t.Errorf("uninstalling twice: %+v, %v", gone, err)
			}
		})
	}
}

// edited checks that what the user has written since survives an uninstall.
func edited(t *testing.T, f fixture, o Options, home string) {
	path := filepath.Join(home, f.edit[0])
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(text, f.edit[1]...), 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := Uninstall(o); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != f.files[f.edit[0]]+f.edit[1] {
		t.Errorf("after an edit and uninstall: %q, %v", got, err)
	}
}

// check reads the written files with a parser of their own.
func check(t *testing.T, o Options, changes []Change) {
	t.Helper()
	seen := map[string]bool{}
	for _, c := range changes {
		seen[c.What] = true
		if c.Action == "skipped" {
			continue
		}
		if c.What == "plugin" {
			raw, err := os.ReadFile(filepath.Join(c.Path, "workflow", "hooks", "hooks.json"))
			if err != nil || !strings.Contains(string(raw), `"'/opt/local llm/localllm' hook session-end"`) {
				t.Errorf("the hook: %s, %v", raw, err)
			}
			continue
		}
		text, err := os.ReadFile(c.Path)
		if err != nil {
			t.Fatal(err)
		}
		if string(text) != c.After {
			t.Errorf("%s: the change says %q", c.Path, c.After)
		}
		if bytes.Contains(text, []byte("\r\n")) && bytes.Count(text, []byte("\r\n")) != bytes.Count(text, []byte("\n")) {
			t.Errorf("%s: mixed line ends: %q", c.Path, text)
		}
		if c.What == "policy" {
			continue
		}
		var config map[string]any
		if strings.HasSuffix(c.Path, ".toml") {
			err = toml.Unmarshal(text, &config)
		} else {
			var plain []byte
			if plain, err = hujson.Standardize(bytes.TrimPrefix(text, byteOrderMark)); err == nil {
				err = json.Unmarshal(plain, &config)
			}
		}
		if err != nil {
			t.Errorf("%s: %v in\n%s", c.Path, err, text)
		}
		flat := string(marshal(config))
		if !strings.Contains(flat, "/opt/local llm/localllm") && !strings.Contains(flat, o.State) {
			t.Errorf("%s does not name us: %s", c.Path, flat)
		}
	}
	if !seen["server"] || !seen["policy"] {
		t.Errorf("changes: %+v", changes)
	}
}
