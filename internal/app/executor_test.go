package app

import (
	"errors"
	"strings"
	"testing"

	"localllm/delegate"
	"localllm/internal/hint"
	"localllm/lifecycle"
)

// A client gets no Ollama that would load the model again with another context. It gets one of ours, one behind a
// key, which is asked by the same route as the client asks, and one whose profile leaves the window to the server.
func TestNoExecutorOnARunningOllama(t *testing.T) {
	t.Setenv("APP_TEST_KEY", testKey)
	a, _, _ := withConfig(t, `
[profiles.plain]
kind = "ollama"
base_url = "http://127.0.0.1:1"
context = 8192
[profiles.keyed]
kind = "ollama"
base_url = "http://127.0.0.1:1"
api_key_env = "APP_TEST_KEY"
[profiles.open]
kind = "openai"
base_url = "http://127.0.0.1:1/v1"
`)
	of := func(profile string) *target {
		return &target{limits: delegate.Limits{Profile: profile, Loopback: true, Context: 8192, Model: "m"}}
	}
	on := func(engine string, adopted bool) *target {
		return &target{endpoint: &lifecycle.Endpoint{Engine: engine, Adopted: adopted, URL: "http://127.0.0.1:2", Model: "m", Context: 8192}}
	}
	for name, to := range map[string]*target{"profile": of("plain"), "adopted": on(lifecycle.Ollama, true)} {
		_, err := a.executorEndpoint(to, &delegate.Task{})
		var invalid *InvalidError
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), "8192 tokens") || len(hint.Of(err)) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, to := range map[string]*target{"keyed": of("keyed"), "open": of("open"), "ours": on(lifecycle.Ollama, false), "llama-server": on(lifecycle.LlamaServer, true)} {
		e, err := a.executorEndpoint(to, &delegate.Task{})
		if err != nil || e.Model != "m" || !strings.HasPrefix(e.URL, "http://127.0.0.1:") || (e.Key == testKey) != (name == "keyed") {
			t.Errorf("%s: %+v %v", name, e, err)
		}
		if (e.Warning != "") != (name == "ours") {
			t.Errorf("%s: warning %q", name, e.Warning)
		}
	}
}

func TestAnExecutorThatIsNotInstalledIsABadRequest(t *testing.T) {
	a := open(t)
	t.Setenv("PATH", t.TempDir())
	_, _, err := a.withExecutor(&delegate.Task{Task: "x", Executor: "opencode"})
	var invalid *InvalidError
	if !errors.As(err, &invalid) || !strings.Contains(err.Error(), "not installed") || len(hint.Of(err)) == 0 {
		t.Errorf("%v", err)
	}
}
