package survey

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"localllm/capability"
	"localllm/internal/atomicfile"
)

// script makes a program that prints a line and counts its calls in a file beside it.
func script(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	body := "#!/bin/sh\necho x >> \"$0.calls\"\ncat <<'E'\n" + text + "\nE\n"
	if err := os.WriteFile(path, []byte(body), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func calls(t *testing.T, path string) int {
	t.Helper()
	data, err := os.ReadFile(path + ".calls")
	if err != nil {
		return 0
	}
	return strings.Count(string(data), "x")
}

func TestWhereOllamaIs(t *testing.T) {
	for in, want := range map[string]string{
		"":                          "http://127.0.0.1:11434",
		"127.0.0.1:8080":            "http://127.0.0.1:8080",
		":8080":                     "http://127.0.0.1:8080",
		"0.0.0.0":                   "http://127.0.0.1:11434",
		"0.0.0.0:9":                 "http://127.0.0.1:9",
		"[::]:9":                    "http://127.0.0.1:9",
		"[::1]":                     "http://[::1]:11434",
		"gpu.lan":                   "http://gpu.lan:11434",
		"http://gpu.lan":            "http://gpu.lan:80",
		"https://gpu.lan":           "https://gpu.lan:443",
		"https://gpu.lan:1/ollama/": "https://gpu.lan:1/ollama",
		` "gpu.lan" `:               "http://gpu.lan:11434",
	} {
		if got := ollamaURL(in).String(); got != want {
			t.Errorf("%q is %s, want %s", in, got, want)
		}
	}
}

func TestVersionsOfPrograms(t *testing.T) {
	for text, want := range map[string]string{
		"version: 0.7.0 (build 11669, commit Debian)\nbuilt with GNU":                                "b11669",
		"version: 6123 (a1b2c3d)\nbuilt with cc":                                                     "b6123",
		"Warning: could not connect to a running Ollama instance\nWarning: client version is 0.34.2": "0.34.2",
		"ollama version is 0.12.0":                                                                   "0.12.0",
		"nothing to see":                                                                             "",
		"version: " + strings.Repeat("9", 100):                                                       "",
	} {
		if got := parseVersion(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestAProgramIsAskedForItsVersionOnce(t *testing.T) {
	server := script(t, "llama-server", "version: 6123 (a1b2c3d)")
	s := surroundings(t, map[string]string{"PATH": filepath.Dir(server)})
	for range 3 {
		if e := run(t, s, Options{}).Engines[1]; e.State != capability.Installed || e.Version != "b6123" || e.Path != server {
			t.Fatalf("engine %+v", e)
		}
	}
	if n := calls(t, server); n != 1 {
		t.Errorf("asked %d times", n)
	}
	if err := os.WriteFile(server, []byte("#!/bin/sh\necho 'version: 7000 (x)'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if e := run(t, s, Options{}).Engines[1]; e.Version != "b7000" {
		t.Errorf("after an update: %+v", e)
	}
}

func TestEnginesThatAreNotThere(t *testing.T) {
	s := surroundings(t, map[string]string{"LOCALLLM_LLAMA_SERVER": "/none/llama-server", "LOCALLLM_OLLAMA": "/none/ollama", "OLLAMA_HOST": ""})
	r := run(t, s, Options{})
	if e := r.Engines[1]; e.State != capability.Missing || !strings.Contains(e.Detail, "/none/llama-server") {
		t.Errorf("llama-server %+v", e)
	}
	if e := r.Engines[0]; e.State == capability.Missing && !strings.Contains(e.Detail, "/none/ollama") {
		t.Errorf("Ollama %+v", e)
	}
	s = surroundings(t, map[string]string{"LOCALLLM_OLLAMA": "/none/ollama"})
	if e := run(t, s, Options{}).Engines[0]; e.State != capability.Unreachable || e.URL != "http://127.0.0.1:1" {
		t.Errorf("an address that was named and does not answer: %+v", e)
	}
	s = surroundings(t, map[string]string{"LOCALLLM_OLLAMA": script(t, "ollama", "client version is 0.34.2")})
	if e := run(t, s, Options{}).Engines[0]; e.State != capability.Installed || e.Version != "0.34.2" {
		t.Errorf("installed and not running: %+v", e)
	}
}

func TestAProgramThatHangsHasNoVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "llama-server")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexec sleep 600\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := surroundings(t, map[string]string{"LOCALLLM_LLAMA_SERVER": path})
	if e := run(t, s, Options{}).Engines[1]; e.State != capability.Installed || e.Version != "" {
		t.Errorf("engine %+v", e)
	}
}

func TestMemoryOfAContainer(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, ok := controlGroup(root); ok {
		t.Error("no control group has a limit")
	}
	write("memory.max", "max\n")
	if _, _, ok := controlGroup(root); ok {
		t.Error("max is no limit")
	}
	write("memory.max", "8000\n")
	write("memory.current", "5000\n")
	write("memory.stat", "anon 1\ninactive_file 2000\nx 3\n")
	if limit, used, ok := controlGroup(root); !ok || limit != 8000 || used != 3000 {
		t.Errorf("limit %d, used %d, %v", limit, used, ok)
	}
}

func TestTheHistory(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	ctx := context.Background()
	key := capability.HistoryKey{Digest: "sha256:a", Context: 4096, KVType: "f16", Slots: 1, Engine: "ollama", Version: "1"}
	if err := Remember(ctx, state, key, 100); err != nil {
		t.Fatal(err)
	}
	if err := Remember(ctx, state, key, 200); err != nil {
		t.Fatal(err)
	}
	other := key
	other.Slots = 2
	if err := Remember(ctx, state, other, 300); err != nil {
		t.Fatal(err)
	}
	for _, nothing := range []int64{0, -5} {
		if err := Remember(ctx, state, capability.HistoryKey{Digest: "x"}, nothing); err != nil {
			t.Fatal(err)
		}
	}
	h := (&Surveyor{State: state}).history()
	if len(h) != 2 || h[key] != 200 || h[other] != 300 {
		t.Errorf("history %v", h)
	}
	full := readHistory(state)
	for i := range mostMeasured - len(full.Entries) {
		k := key
		k.Context = i
		full.Entries = append(full.Entries, measured{HistoryKey: k, Bytes: 1})
	}
	if err := atomicfile.WriteJSON(historyPath(state), full); err != nil {
		t.Fatal(err)
	}
	for _, digest := range []string{"sha256:b", "sha256:c"} {
		if err := Remember(ctx, state, capability.HistoryKey{Digest: digest}, 1); err != nil {
			t.Fatal(err)
		}
	}
	h = (&Surveyor{State: state}).history()
	if _, ok := h[other]; len(h) != mostMeasured || ok {
		t.Errorf("%d entries, the oldest among them: %v", len(h), ok)
	}
	if err := os.WriteFile(historyPath(state), []byte("{broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if h := (&Surveyor{State: state}).history(); len(h) != 0 {
		t.Errorf("a broken file gave %v", h)
	}
}
