//go:build clients

package clients

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"localllm/delegate"
	"localllm/internal/practice"
	"localllm/test/harness"
)

// insideOnly has OpenCode write the declared file.
var insideOnly = practice.Script{
	{Say: "Nothing."},
	{When: []string{"MAKE-INSIDE"}, Say: openCodeCall("slug.txt", slug)},
	{When: []string{"MAKE-INSIDE", "<tool_response>"}, Say: "FINAL-ANSWER the file is there."},
}

// withOpenCode is a world in which OpenCode is installed.
func withOpenCode(t *testing.T, env ...string) *world {
	t.Helper()
	w := newWorld(t)
	w.env = append(w.env, "PATH="+filepath.Dir(client(t, "opencode"))+string(os.PathListSeparator)+w.get("PATH"))
	w.env = append(w.env, env...)
	return w
}

// TestOpenCodeExecutesByAProfile: the model is a profile's, on a server that refuses whoever has not the key that the
// profile's variable holds. Nothing is enabled.
func TestOpenCodeExecutesByAProfile(t *testing.T) {
	const key = "key-of-the-team"
	server := harness.Start(t, harness.LlamaServer, insideOnly, practice.Options{Tools: true, Context: 65536}, "-c", "49152", "--api-key", key)
	w := withOpenCode(t, "TEAM_KEY="+key, "WRONG_KEY=another")
	conf := ""
	for _, name := range []string{"team", "wrong"} {
		conf += fmt.Sprintf("[profiles.%s]\nkind = \"openai\"\nbase_url = \"%s/v1\"\nmodel = %q\ncontext = 49152\napi_key_env = %q\n", name, server.URL, server.Model, strings.ToUpper(name)+"_KEY")
	}
	w.write(filepath.Join(w.home, "config.toml"), conf)
	verify, _ := json.Marshal(prove)
	task := delegate.Task{Task: "MAKE-INSIDE please", Executor: "opencode", Profile: "wrong", OutputFiles: []delegate.OutputFile{{Path: "slug.txt"}}, Verify: verify, Attempts: 1}
	if res := w.execute(task); res.OK || res.Status == delegate.Proven {
		t.Errorf("with another key: %+v", res)
	}
	task.Profile = "team"
	res := w.execute(task)
	if !res.OK || res.Status != delegate.Proven || res.Text != "FINAL-ANSWER the file is there." || res.Model != server.Model {
		t.Fatalf("%+v", res)
	}
	t.Logf("%.1f s, tokens %+v", res.Seconds, res.Tokens)
	w.proven()
	if found, _ := w.run(time.Minute, nil, "grep", "-rl", key, w.home); found != "" {
		t.Errorf("the key is in %s", found)
	}
	w.quiet()
}

// onOllama enables a model of an Ollama: one that localllm starts itself, or one that runs already.
func onOllama(t *testing.T, own bool) *world {
	t.Helper()
	s := harness.Start(t, harness.Ollama, insideOnly, practice.Options{Tools: true, Context: 65536})
	w := withOpenCode(t, "OLLAMA_HOST="+s.URL)
	if own {
		s.Stop()
		w.env = append(w.env, "OLLAMA_MODELS="+filepath.Join(filepath.Dir(s.Log), "models"))
	}
	if _, err := w.run(time.Minute, nil, w.binary, "enable", "--engine", "ollama", "--model", s.Model, "--context", "32768", "--while-pid", strconv.Itoa(os.Getpid())); err != nil {
		t.Fatal(err)
	}
	return w
}

// window is the context that the model is loaded with.
func (w *world) window() int {
	w.t.Helper()
	text, err := w.run(time.Minute, nil, w.binary, "status", "--json")
	var status struct{ Endpoint string }
	if bad := json.Unmarshal([]byte(text), &status); err != nil || bad != nil {
		w.t.Fatal(err, bad)
	}
	response, err := http.Get(status.Endpoint + "/api/ps")
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	var got struct {
		Models []struct {
			Context int `json:"context_length"`
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil || len(got.Models) != 1 {
		w.t.Fatal(got, err)
	}
	return got.Models[0].Context
}

// TestExecutorOnOllama: the client's route can't say how large the window is to be. On an Ollama of ours it is the
// same one by the server's own setting; one that ran before would load the model again, and is refused.
func TestExecutorOnOllama(t *testing.T) {
	verify, _ := json.Marshal(prove)
	task := delegate.Task{Task: "MAKE-INSIDE please", Executor: "opencode", OutputFiles: []delegate.OutputFile{{Path: "slug.txt"}}, Verify: verify, Attempts: 1}
	for _, own := range []bool{true, false} {
		t.Run(fmt.Sprintf("own %v", own), func(t *testing.T) {
			w := onOllama(t, own)
			defer w.disable()
			if n := w.window(); n != 32768 {
				t.Fatalf("loaded with %d", n)
			}
			if own {
				if res := w.execute(task); res.Status != delegate.Proven || res.Text != "FINAL-ANSWER the file is there." || !strings.Contains(strings.Join(res.Warnings, " "), "loads the model again") {
					t.Errorf("%+v", res)
				}
				w.proven()
			} else {
				out, err := w.run(time.Minute, nil, w.binary, "delegate", "--executor", "opencode", "MAKE-INSIDE please")
				if err == nil || !strings.Contains(out+err.Error(), "load the model again") {
					t.Errorf("%s %v", out, err)
				}
			}
			if n := w.window(); n != 32768 {
				t.Errorf("afterwards it is loaded with %d", n)
			}
		})
	}
}
