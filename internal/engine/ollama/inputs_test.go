//go:build unix

package ollama

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ollama/ollama/api"

	"localllm/internal/engine/enginetest"
	"localllm/internal/engine/program"
	"localllm/internal/paths"
	"localllm/internal/proc"
	"localllm/lifecycle"
	"localllm/test/harness"
)

func TestBadInputs(t *testing.T) {
	folder := store(t)
	usual := program.Usual
	program.Usual = nil
	defer func() { program.Usual = usual }()
	blob := filepath.Join(t.TempDir(), "a-file")
	if err := os.WriteFile(blob, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(paths.HomeVariable, t.TempDir())
	real := harness.Engines(t).Ollama
	old := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"version":"0.5.1"}`) }))
	defer old.Close()
	for _, c := range []struct {
		name   string
		change func(*lifecycle.Spec)
		env    []string
		want   lifecycle.Cause
		says   string
	}{
		{"unknown model", func(s *lifecycle.Spec) { s.Model = "nobody-has-this:7b" }, []string{"LOCALLLM_OLLAMA=" + real}, lifecycle.NoSuchModel, "nobody-has-this:7b"},
		{"no name of a model", func(s *lifecycle.Spec) { s.Model = "//:::" }, []string{"LOCALLLM_OLLAMA=" + real}, lifecycle.NoSuchModel, "//:::"},
		{"context over the limit", func(s *lifecycle.Spec) { s.Context = 1 << 20 }, []string{"LOCALLLM_OLLAMA=" + real}, lifecycle.BadOption, "1048576 tokens is over the model's limit of 32768"},
		{"no engine", nil, []string{"PATH=/nonexistent"}, lifecycle.NotInstalled, "neither running nor installed"},
		{"engine named that is not there", nil, []string{"LOCALLLM_OLLAMA=/nonexistent/ollama"}, lifecycle.NotInstalled, "LOCALLLM_OLLAMA"},
		{"engine too old", nil, []string{"OLLAMA_HOST=" + old.URL}, lifecycle.TooOld, "0.5.1"},
		{"store is a file", nil, []string{"LOCALLLM_OLLAMA=" + real, "OLLAMA_MODELS=" + blob}, lifecycle.NoDisk, "store"},
		{"store can't be made", nil, []string{"LOCALLLM_OLLAMA=" + real, "OLLAMA_MODELS=/proc/1/models"}, lifecycle.NoDisk, "store"},
		{"another machine", nil, []string{"OLLAMA_HOST=192.0.2.1:11434"}, lifecycle.BadOption, "192.0.2.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := spec
			if c.change != nil {
				c.change(&want)
			}
			host := lifecycle.Host{Dir: t.TempDir(), Nonce: proc.NewNonce(), Report: func(lifecycle.Progress) {}, Env: environ(t, folder, c.env...)}
			enginetest.Refuses(t, New(Options{}), want, host, c.want, c.says)
		})
	}
}

func TestAddress(t *testing.T) {
	for text, want := range map[string]string{
		"": "http://127.0.0.1:11434", "0.0.0.0": "http://127.0.0.1:11434", "0.0.0.0:8080": "http://127.0.0.1:8080", ":8080": "http://127.0.0.1:8080",
		"localhost": "http://localhost:11434", "127.0.0.1:1": "http://127.0.0.1:1", "http://127.0.0.1": "http://127.0.0.1:80", "https://localhost": "https://localhost:443",
		"[::1]:7": "http://[::1]:7", "[::]:7": "http://127.0.0.1:7", "http://localhost:9/base/": "http://localhost:9/base", ` "127.0.0.1:5" `: "http://127.0.0.1:5",
	} {
		if got, err := Address(text); err != nil || got != want {
			t.Errorf("Address(%q) = %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"192.168.1.7", "gpu-box:11434", "https://example.com", "127.0.0.1.evil.example"} {
		if got, err := Address(text); err == nil {
			t.Errorf("Address(%q) = %q", text, got)
		}
	}
}

func TestSame(t *testing.T) {
	for pair, want := range map[[2]string]bool{
		{"qwen3", "qwen3:latest"}: true, {"qwen3:8b", "qwen3:latest"}: false, {"registry.ollama.ai/library/a:b", "a:b"}: true,
		{"127.0.0.1:5000/library/a", "127.0.0.1:5000/library/a:latest"}: true, {"me/a", "a"}: false, {"A:B", "a:b"}: true,
	} {
		if Same(pair[0], pair[1]) != want {
			t.Errorf("Same(%v) = %v", pair, !want)
		}
	}
}

func TestReadFigures(t *testing.T) {
	for name, c := range map[string]struct {
		info map[string]any
		want bool
	}{
		"plain":           {map[string]any{"general.architecture": "qwen3moe", "qwen3moe.context_length": 262144.0}, true},
		"sliding window":  {map[string]any{"general.architecture": "gemma3", "gemma3.attention.sliding_window": 1024.0}, false},
		"window of zero":  {map[string]any{"general.architecture": "x", "x.attention.sliding_window": 0.0}, true},
		"hybrid":          {map[string]any{"general.architecture": "qwen3next", "qwen3next.ssm.state_size": 128.0}, false},
		"recurrent":       {map[string]any{"general.architecture": "rwkv7", "rwkv7.wkv.head_size": 64.0}, false},
		"nothing is told": {nil, true},
	} {
		if got := Read(&api.ShowResponse{ModelInfo: c.info}); got.Rewinds != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	f := Read(&api.ShowResponse{Modelfile: "# FROM /no\nFROM /store/blobs/sha256-1\nTEMPLATE x\n", ModelInfo: map[string]any{"general.architecture": "llama", "llama.context_length": 8192.0}, RemoteHost: "https://x"})
	if f.Blob != "/store/blobs/sha256-1" || f.Context != 8192 || !f.Remote {
		t.Errorf("%+v", f)
	}
}

// Each line is as the named program prints it.
func TestExplain(t *testing.T) {
	for line, want := range map[string]lifecycle.Cause{
		`500: model requires more system memory (31.2 GiB) than is available (7.1 GiB)`:                            lifecycle.OutOfMemory,
		`llama-server process has terminated: cudaMalloc failed: out of memory`:                                    lifecycle.OutOfMemory,
		`llama_model_load: error loading model: unknown model architecture: 'qwen9'`:                               lifecycle.BadModel,
		`llama_model_load: error loading model: tensor 'output.weight' data is not within the file bounds`:         lifecycle.BadModel,
		`Error: mkdir /var/lib/models: permission denied`:                                                          lifecycle.NoDisk,
		`write /m/blobs/sha256-1-partial: no space left on device`:                                                 lifecycle.NoDisk,
		`pull model manifest: file does not exist`:                                                                 lifecycle.NoSuchModel,
		`pull model manifest: Get "https://x/v2/": dial tcp: lookup x: no such host`:                               lifecycle.NoSuchModel,
		`ollama: error while loading shared libraries: libcuda.so.1: cannot open shared object file: No such file`: lifecycle.NotInstalled,
		`server busy, please try again.  maximum pending requests exceeded`:                                        lifecycle.Crashed,
	} {
		if got, ok := explain(append(pulling[:len(pulling):len(pulling)], causes...), []string{"noise", line}); !ok || got.Cause != want || len(got.Hints) != 1 {
			t.Errorf("%q: %+v", line, got)
		}
	}
	if got, ok := Explain([]string{"all is well"}); ok {
		t.Errorf("%+v", got)
	}
}

// A crash must not be blamed on what the log warns of by the way.
func TestWhatTheLogBlames(t *testing.T) {
	s := &said{}
	for _, line := range []string{
		`time=2026-11-21T01:12:39.408Z level=WARN source=model_show_cache.go:142 msg="cloud cache hydration failed" error="dial tcp: lookup x: no such host"`,
		`time=2026-11-21T01:12:39.408Z level=WARN source=amd_linux.go:1 msg="no /dev/kfd: permission denied"`,
		`time=2026-11-21T01:12:39.408Z level=INFO source=x.go:1 msg="nothing failed"`,
	} {
		s.line(line)
	}
	if got, ok := Explain(s.troubles()); ok {
		t.Errorf("%+v", got)
	}
	for line, want := range map[string]lifecycle.Cause{
		`llama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache`:                          lifecycle.OutOfMemory,
		`time=2026-11-21T01:12:39.408Z level=ERROR source=sched.go:1 msg="error loading" error="cudaMalloc failed: out of memory"`: lifecycle.OutOfMemory,
		`terminate called after throwing an instance of 'std::bad_alloc'`:                                                          lifecycle.OutOfMemory,
		`Error: mkdir /models: permission denied`:                                                                                  lifecycle.NoDisk,
	} {
		s := &said{}
		s.line(line)
		if got, ok := Explain(s.troubles()); !ok || got.Cause != want {
			t.Errorf("%q: %+v", line, got)
		}
	}
}

func FuzzSaid(f *testing.F) {
	f.Add(`time=2026-11-21T01:12:39.408Z level=ERROR source=sched.go:1 msg="error loading" error="cudaMalloc failed: out of memory"`)
	f.Add("Listening on 127.0.0.1:11434 (version 0.34.2)")
	f.Add("Error: listen tcp 127.0.0.1:11434: bind: address already in use")
	f.Add("llama_model_load: error loading model: unknown model architecture: 'qwen9'")
	f.Fuzz(func(t *testing.T, line string) {
		s := &said{}
		for range 150 {
			s.line(line)
		}
		troubles := s.troubles()
		if len(troubles) > 101 {
			t.Errorf("%d lines are kept", len(troubles))
		}
		for _, table := range [][]string{troubles, {line}} {
			if start, ok := Explain(table); ok && (start.Reason == "" || len(start.Hints) == 0) {
				t.Errorf("%q: %+v", line, start)
			}
		}
	})
}

func TestTooOld(t *testing.T) {
	for version, want := range map[string]bool{"0.12.9": true, "0.13.0": false, "0.34.2": false, "1.0.0": false, "0.0.0": false, "v0.9.6-rc1": true, "dev": false} {
		if got := tooOld(version) != nil; got != want {
			t.Errorf("%s: %v", version, got)
		}
	}
}

func TestEnvironment(t *testing.T) {
	env := strings.Join(environment(lifecycle.Spec{Context: 4096, Slots: 2, KVType: "q8_0", Devices: []string{"GPU-1", "GPU-2"}}, 7, []string{
		"OLLAMA_MODELS=/mine", "OLLAMA_HOST=0.0.0.0:80", "OLLAMA_ORIGINS=*", "OLLAMA_KEEP_ALIVE=1h", "LLAMA_ARG_HOST=0.0.0.0", "OLLAMA_NUM_PARALLEL=9", "HOME=/h", "OLLAMA_GPU_OVERHEAD=1",
	}), "\n")
	for _, want := range []string{"OLLAMA_HOST=127.0.0.1:7", "OLLAMA_MODELS=/mine", "OLLAMA_NOPRUNE=1", "OLLAMA_NUM_PARALLEL=2", "OLLAMA_KV_CACHE_TYPE=q8_0", "OLLAMA_FLASH_ATTENTION=1", "CUDA_VISIBLE_DEVICES=GPU-1,GPU-2", "HOME=/h", "OLLAMA_GPU_OVERHEAD=1"} {
		if !strings.Contains(env, want) {
			t.Errorf("no %s", want)
		}
	}
	for _, not := range []string{"0.0.0.0", "ORIGINS", "1h", "PARALLEL=9"} {
		if strings.Contains(env, not) {
			t.Errorf("%s is handed on", not)
		}
	}
}

func TestRunnerPort(t *testing.T) {
	line := func(args ...string) [][]byte {
		var b [][]byte
		for _, a := range args {
			b = append(b, []byte(a))
		}
		return b
	}
	if port, ok := portOf(line("x", "--model", "/b", "--port", "55", "-c", "1"), "/b"); !ok || port != "55" {
		t.Error(port, ok)
	}
	for _, args := range [][]string{{"--model", "/b"}, {"--port", "55"}, {"--model", "/c", "--port", "55"}, {"--model", "/b", "--port", "x"}, {"--model", "/b", "--port", "70000"}} {
		if _, ok := portOf(line(args...), "/b"); ok {
			t.Errorf("%v", args)
		}
	}
}
