package install

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUpgradeKeepsWhatTheUserAdded(t *testing.T) {
	f := fixture{client: Cursor, files: map[string]string{".cursor/mcp.json": `{
  "mcpServers": {
    // ours
    "local_llm": {
      "command": "/old/localllm", // moved
      "args": ["mcp"],
      "disabled": false,
      "env": {"MINE": "1", "OLLAMA_HOST": "old"}
    }
  }
}
`}}
	o, home := f.options(t)
	if _, err := Install(o); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(home, ".cursor/mcp.json"))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer(`"/old/localllm"`, `"/opt/local llm/localllm"`, `"old"`, `"127.0.0.1:11500"`).Replace(f.files[".cursor/mcp.json"])
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestPolicyOfAnOlderVersionIsReplacedInItsPlace(t *testing.T) {
	old := "# Mine\n\n<!-- localllm:begin v0 n1 -->\nold words\n<!-- localllm:end -->\n\n# Also mine\n"
	got, err := setBlock([]byte(old), markdown, "new words")
	want := "# Mine\n\n<!-- localllm:begin v1 n1 -->\nnew words\n<!-- localllm:end -->\n\n# Also mine\n"
	if err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
	bare, err := removeBlock(got)
	if err != nil || string(bare) != "# Mine\n\n# Also mine\n" {
		t.Errorf("%q, %v", bare, err)
	}
}

func TestASharedPolicyStaysWhileSomebodyReadsIt(t *testing.T) {
	o, home := fixture{scope: Project}.options(t)
	o.Clients = []string{Codex, Cursor}
	if _, err := Install(o); err != nil {
		t.Fatal(err)
	}
	agents := filepath.Join(home, "p", "AGENTS.md")
	o.Clients = []string{Codex}
	if _, err := Uninstall(o); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(agents); err != nil {
		t.Errorf("the policy went while cursor is still installed: %v", err)
	}
	o.Clients = []string{Cursor}
	if _, err := Uninstall(o); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(agents); err == nil {
		t.Error("the policy is still there")
	}
	// Nothing was in this project before. Its folder once went with its last file.
	if _, err := os.Stat(filepath.Join(home, "p")); err != nil {
		t.Errorf("the project's own folder: %v", err)
	}
}

func TestAllMeansWhatIsOnThisMachine(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	o, _ := fixture{client: "all", files: map[string]string{".cursor/x": ""}}.options(t)
	changes, err := Install(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		if (c.Client == Cursor) != (c.What != "") {
			t.Errorf("%+v", c)
		}
	}
	if _, err := Install(Options{Clients: []string{"emacs"}, Binary: "/x"}); err == nil || !strings.Contains(err.Error(), `no client "emacs"`) {
		t.Errorf("an unknown client: %v", err)
	}
	if _, err := Install(Options{Binary: "localllm"}); err == nil || !strings.Contains(err.Error(), "absolute") {
		t.Errorf("a relative program: %v", err)
	}
}

func TestStatusSaysWhatIsWhereAndWhetherItAnswers(t *testing.T) {
	o, home := fixture{client: Cursor, scope: Project, files: map[string]string{".cursor/x": ""}}.options(t)
	server := filepath.Join(home, "localllm")
	script := "#!/bin/sh\nread line; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"serverInfo\":{\"name\":\"local_llm\"}}}'\n"
	if err := os.WriteFile(server, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	o.Binary = server
	status := func() State {
		t.Helper()
		states, err := Status(t.Context(), o)
		if err != nil || len(states) != 1 {
			t.Fatalf("%+v, %v", states, err)
		}
		return states[0]
	}
	if s := status(); s.Server != "missing" || s.Policy != "missing" || s.Answers != nil || !s.Found {
		t.Errorf("before: %+v", s)
	}
	if _, err := Install(o); err != nil {
		t.Fatal(err)
	}
	if s := status(); s.Server != "installed" || s.Policy != "installed" || s.Answers == nil || !*s.Answers || s.Detail != "" {
		t.Errorf("after: %+v", s)
	}
	if err := os.WriteFile(server, []byte("#!/bin/sh\necho hello\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if s := status(); s.Answers == nil || *s.Answers || !strings.Contains(s.Detail, "did not answer as it should: hello") {
		t.Errorf("with a server that babbles: %+v", s)
	}
	o.Binary = filepath.Join(home, "elsewhere")
	if s := status(); s.Server != "outdated" || s.Answers != nil {
		t.Errorf("with another program: %+v", s)
	}
	if err := os.WriteFile(filepath.Join(home, "p/.cursor/mcp.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if s := status(); s.Server != "unreadable" || !strings.Contains(s.Detail, "mcp.json") {
		t.Errorf("with a broken file: %+v", s)
	}
}

func TestPrintShowsEveryFile(t *testing.T) {
	o, home := fixture{client: "all"}.options(t)
	text, err := Print(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# claude-code: " + home + "/.claude/settings.json", "[mcp_servers.local_llm]", `"workflow@localllm": true`, "# vscode: ", "## Local model"} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %q:\n%s", want, text)
		}
	}
}

func TestAnswersGivesUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Answers(ctx, "/bin/cat", nil); err == nil {
		t.Error("a cancelled look succeeded")
	}
	if err := Answers(t.Context(), "/no/such/program", nil); err == nil || !strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("%v", err)
	}
}

func FuzzJSONEdit(f *testing.F) {
	for _, s := range []string{`{}`, `{"mcpServers":{"a":1,},}`, "{\n  // c\n  \"a\": 1 // d\n}\n", "{\r\n\t\"mcpServers\": {\r\n\t}\r\n}", `{"mcpServers":{"local_llm":{"command":"x"}}}`, "{/*a*/}", ""} {
		f.Add(s)
	}
	e := jsonEdit("x", []entry{{[]string{"mcpServers", serverName}, plainServer("", Options{Binary: "/b", Getenv: func(string) string { return "" }})}})
	f.Fuzz(func(t *testing.T, s string) {
		made, err := e.set([]byte(s))
		if err != nil {
			return
		}
		if again, err := e.set(made); err != nil || string(again) != string(made) {
			t.Fatalf("%q became %q and then %q, %v", s, made, again, err)
		}
		if valueAt(trimMark(made), "mcpServers", serverName, "command") == nil {
			t.Fatalf("%q became %q without us", s, made)
		}
		bare, err := e.cut(made, []byte(s))
		if err != nil {
			t.Fatalf("%q: %v", made, err)
		}
		// Where nothing of ours was there before, taking it out gives the same values; the bytes come from the backup.
		had := trimMark([]byte(s))
		if len(strings.TrimSpace(string(had))) > 0 && valueAt(had, "mcpServers", serverName) == nil && !same(had, trimMark(bare)) {
			t.Fatalf("%q became %q and %q", s, made, bare)
		}
	})
}

func FuzzBlock(f *testing.F) {
	f.Add("a\n", "\nb")
	f.Add("a\r\n", "")
	f.Add("", "x\n<!-- localllm:end -->\n")
	f.Add("a\r", "\nb")
	f.Fuzz(func(t *testing.T, before, after string) {
		made, err := setBlock([]byte(before), markdown, "body\nof two lines")
		if err != nil {
			return
		}
		if marker().MatchString(before) || marker().MatchString(after) {
			return
		}
		// The user's own line ends decide ours; mixing them later is the user's business.
		bare, err := removeBlock(append(made, after...))
		if err != nil || string(bare) != before+after {
			t.Fatalf("%q + %q became %q, %v", before, after, bare, err)
		}
	})
}

func trimMark(text []byte) []byte {
	return []byte(strings.TrimPrefix(string(text), string(byteOrderMark)))
}

// Claude Code notes the marketplace in a file of its own; one of the same name that points elsewhere is not ours.
func TestUninstallTakesTheMarketplaceOutOfTheClientsOwnNotes(t *testing.T) {
	const theirs = "{\n  \"other\": {\"source\": {\"source\": \"directory\", \"path\": \"/x\"}}\n}"
	for name, ours := range map[string]bool{"ours": true, "somebody else's": false} {
		o, _ := fixture{client: ClaudeCode}.options(t)
		o.Scope = User
		if _, err := Install(o); err != nil {
			t.Fatal(err)
		}
		path := pluginDir(o)
		if !ours {
			path = "/elsewhere"
		}
		notes := filepath.Join(claudeDir(o), "plugins", "known_marketplaces.json")
		noted, err := setMember([]byte(theirs), []string{"localllm"}, marshal(map[string]any{"source": map[string]any{"source": "directory", "path": path}}))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(notes), 0o755), os.WriteFile(notes, noted, 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := Uninstall(o); err != nil {
			t.Fatal(err)
		}
		want := theirs
		if !ours {
			want = string(noted)
		}
		if got, err := os.ReadFile(notes); err != nil || string(got) != want {
			t.Errorf("%s: %q, want %q (%v)", name, got, want, err)
		}
	}
}
