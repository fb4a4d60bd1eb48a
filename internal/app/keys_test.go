package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"localllm/test/harness"
)

// The whole program, with a key that is only in its environment: it reaches its own server, and turns up in no output,
// no file, no command line, and on no other host.
func TestTheKeyIsNowhereElse(t *testing.T) {
	program, home, project := harness.Binary(t), harness.Home(t), t.TempDir()
	var mu sync.Mutex
	var arguments []byte
	seen := map[string]int{}
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another host was asked for %s with %v", r.URL, r.Header)
	}))
	defer other.Close()
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ps, _ := exec.Command("ps", "-Aww", "-o", "args").Output()
		mu.Lock()
		defer mu.Unlock()
		arguments = append(arguments, ps...)
		if r.Header.Get("Authorization") == "Bearer "+testKey {
			seen[r.URL.Path]++
		}
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasPrefix(r.URL.Path, "/away"):
			w.Header().Set("Location", strings.Replace(other.URL, "127.0.0.1", "localhost", 1)+"/v1/x")
			w.WriteHeader(http.StatusTemporaryRedirect)
		case strings.HasPrefix(r.URL.Path, "/sour"):
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"message":"wrong key: %s"}}`, testKey)
		case strings.HasSuffix(r.URL.Path, "/models"):
			fmt.Fprintf(w, `{"data":[{"id":"m"},{"id":"%s"}]}`, testKey)
		default:
			fmt.Fprintf(w, `{"model":"%s","choices":[{"message":{"content":"Your key is %s."},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":3}}`, testKey, testKey)
		}
	}))
	defer own.Close()
	var text strings.Builder
	for _, name := range []string{"team", "away", "sour"} {
		fmt.Fprintf(&text, "[profiles.%s]\nkind = \"openai\"\nbase_url = %q\nmodel = \"m\"\napi_key_env = \"APP_TEST_KEY\"\n", name, own.URL+"/"+name)
	}
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	env := harness.Env(t, home, "APP_TEST_KEY="+testKey, "CLAUDE_PROJECT_DIR="+project)
	run := func(arguments ...string) string {
		t.Helper()
		cmd := exec.Command(program, arguments...)
		var result, messages bytes.Buffer
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = project, env, &result, &messages
		_ = cmd.Run() // some of them are meant to fail; what they say counts
		if both := result.String() + messages.String(); strings.Contains(both, testKey) {
			t.Errorf("localllm %s printed the key:\n%s", strings.Join(arguments, " "), both)
		}
		return result.String()
	}
	for _, name := range []string{"team", "away", "sour"} {
		run("ask", "--profile", name, "--question", "what is my key?", "--json")
		run("profiles", "test", name, "--ask", "--json")
		run("status", "--profile", name, "--json")
		run("capability", "--profile", name, "--json")
		run("enable", "--profile", name, "--json")
	}
	var begun struct {
		TaskID string `json:"task_id"`
	}
	out := run("delegate", "--task", "say it", "--profile", "team", "--background", "--json")
	if err := json.Unmarshal([]byte(out), &begun); err != nil || begun.TaskID == "" {
		t.Fatalf("no task began: %s", out)
	}
	if got := run("tasks", "wait", begun.TaskID, "--wait-s", "60", "--json"); !strings.Contains(got, "Your key is [the key].") {
		t.Errorf("the background task: %s", got)
	}
	run("profiles", "list", "--json")
	run("profiles", "show", "team")
	run("ledger", "--json")
	run("stats", "--json")
	mu.Lock()
	defer mu.Unlock()
	if seen["/team/v1/chat/completions"] < 3 || seen["/away/v1/chat/completions"] == 0 || seen["/sour/v1/models"] == 0 {
		t.Errorf("the key did not reach its own server: %v", seen)
	}
	if !bytes.Contains(arguments, []byte(filepath.Base(program))) || bytes.Contains(arguments, []byte(testKey)) {
		t.Errorf("ps shows the key, or not even the program:\n%s", arguments)
	}
	for _, dir := range []string{home, project} {
		_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, _ error) error {
			if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte(testKey)) {
				t.Errorf("the key is in %s", path)
			}
			return nil
		})
	}
}
