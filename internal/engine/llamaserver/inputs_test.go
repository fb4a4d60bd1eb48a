//go:build unix

package llamaserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"localllm/internal/engine/enginetest"
	"localllm/internal/engine/program"
	"localllm/internal/gguf"
	"localllm/internal/paths"
	"localllm/internal/proc"
	"localllm/lifecycle"
	"localllm/test/harness"
)

func TestBadInputs(t *testing.T) {
	t.Setenv(paths.HomeVariable, t.TempDir())
	usual := program.Usual
	program.Usual = nil
	defer func() { program.Usual = usual }()
	real := harness.Engines(t).LlamaServer
	good := modelPath(t)
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	text := write("text.gguf", []byte("hello, this is no model"))
	short := write("short.gguf", []byte("GG"))
	cut := write("cut.gguf", whole[:len(whole)/2])
	garbage := write("garbage.gguf", append([]byte("GGUF"), []byte(strings.Repeat("\xff", 4000))...))
	strange := write("strange.gguf", []byte(strings.ReplaceAll(string(whole[:1<<20]), "\x05\x00\x00\x00\x00\x00\x00\x00llama", "\x05\x00\x00\x00\x00\x00\x00\x00lxama")+string(whole[1<<20:])))
	old := filepath.Join(dir, "old-llama-server")
	if err := os.WriteFile(old, []byte("#!/bin/sh\necho 'error: invalid argument: --slot-save-path' >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	header := func(string) (Header, error) { return Header{Architecture: "llama", Context: 32768, Rewinds: true}, nil }
	file := func(path string) func(*lifecycle.Spec) { return func(s *lifecycle.Spec) { s.Path = path } }
	for _, c := range []struct {
		name    string
		change  func(*lifecycle.Spec)
		env     []string
		options Options
		dir     string
		want    lifecycle.Cause
		says    string
	}{
		{name: "no such file", change: file(dir + "/none.gguf"), want: lifecycle.NoSuchModel, says: "none.gguf"},
		{name: "below a file", change: file(text + "/x.gguf"), want: lifecycle.NoDisk, says: "can't be read"},
		{name: "relative path", change: file("models/x.gguf"), want: lifecycle.NoSuchModel, says: "absolute"},
		{name: "a folder", change: file(dir), want: lifecycle.BadModel, says: "folder"},
		{name: "no GGUF", change: file(text), want: lifecycle.BadModel, says: "GGUF"},
		{name: "shorter than its magic", change: file(short), want: lifecycle.BadModel, says: "GGUF"},
		{name: "cut off", change: file(cut), want: lifecycle.BadModel, says: "cut off"},
		{name: "garbage after the magic", change: file(garbage), want: lifecycle.BadModel, says: "model"},
		{name: "unknown architecture", change: file(strange), want: lifecycle.BadModel, says: "lxama"},
		{name: "unknown name", change: func(s *lifecycle.Spec) { s.Path, s.Model = "", "qwen3:8b" }, want: lifecycle.NoSuchModel, says: "qwen3:8b"},
		{name: "context over the limit", change: func(s *lifecycle.Spec) { s.Context = 65536 }, want: lifecycle.BadOption, says: "65536 tokens is over the model's limit of 32768"},
		{name: "context over the limit, by the header", change: func(s *lifecycle.Spec) { s.Context = 1 << 30 }, options: Options{Header: header}, want: lifecycle.BadOption, says: "limit of 32768"},
		{name: "no GGUF, by the header", options: Options{Header: func(string) (Header, error) { return Header{}, fmt.Errorf("odd bytes: %w", gguf.ErrNotGGUF) }}, want: lifecycle.BadModel, says: "odd bytes"},
		{name: "unknown KV type", change: func(s *lifecycle.Spec) { s.KVType = "q9_9" }, want: lifecycle.BadOption, says: "q9_9"},
		{name: "no engine", env: []string{"PATH=/nonexistent", "LOCALLLM_LLAMA_SERVER="}, want: lifecycle.NotInstalled, says: "not there"},
		{name: "engine named that is not there", env: []string{"LOCALLLM_LLAMA_SERVER=/nonexistent/x"}, want: lifecycle.NotInstalled, says: "LOCALLLM_LLAMA_SERVER"},
		{name: "engine too old", env: []string{"LOCALLLM_LLAMA_SERVER=" + old}, want: lifecycle.TooOld, says: "--slot-save-path"},
		{name: "no room for private files", dir: text, want: lifecycle.NoDisk, says: "private folder"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := lifecycle.Spec{Engine: lifecycle.LlamaServer, Model: "practice", Path: good, Context: 4096, Slots: 1}
			if c.change != nil {
				c.change(&spec)
			}
			host := lifecycle.Host{Dir: t.TempDir(), Nonce: proc.NewNonce(), Report: func(lifecycle.Progress) {}, Env: environ(t, append([]string{"LOCALLLM_LLAMA_SERVER=" + real}, c.env...)...)}
			if c.dir != "" {
				host.Dir = c.dir
			}
			enginetest.Refuses(t, New(c.options), spec, host, c.want, c.says)
		})
	}
}

// Each line is as the named program prints it.
func TestExplain(t *testing.T) {
	for line, want := range map[string]struct {
		cause lifecycle.Cause
		says  string
	}{
		"0.01.2 E ggml_backend_cuda_buffer_type_alloc_buffer: allocating 18432.00 MiB on device 0: cudaMalloc failed: out of memory": {lifecycle.OutOfMemory, "18432.00 MiB"},
		"0.01.2 E llama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache":                   {lifecycle.OutOfMemory, "context's cache"},
		"0.01.2 E graph_reserve: failed to allocate compute buffers":                                                                 {lifecycle.OutOfMemory, "computing"},
		"0.01.2 E llama_model_load: error loading model: unable to allocate CUDA0 buffer":                                            {lifecycle.OutOfMemory, "CUDA0"},
		"ggml_vulkan: Device memory allocation of size 123 failed.\nvk::Device::allocateMemory: ErrorOutOfDeviceMemory":              {lifecycle.OutOfMemory, "not enough memory"},
		"terminate called after throwing an instance of 'std::bad_alloc'":                                                            {lifecycle.OutOfMemory, "not enough memory"},
		"0.00.0 E gguf_init_from_reader: invalid magic characters: 'hell', expected 'GGUF'":                                          {lifecycle.BadModel, "not a GGUF"},
		"0.00.0 E llama_init_from_model: quantized V cache requires flash_attn to be enabled":                                        {lifecycle.BadOption, "quantised"},
		"0.00.0 E llama_init_from_model: K cache type q8_0 with block size 32 does not divide n_embd_head_k=16":                      {lifecycle.BadOption, "K cache type q8_0"},
		"error: invalid argument: --cors-origins":                                                                                    {lifecycle.TooOld, "--cors-origins"},
		"llama-server: error while loading shared libraries: libcudart.so.12: cannot open shared object file":                        {lifecycle.NotInstalled, "libcudart.so.12"},
		"0.00.0 E gguf_init_from_file: failed to open GGUF file '/m.gguf' (Permission denied)":                                       {lifecycle.NoDisk, "/m.gguf"},
		"0.00.0 E load_backend: no backends are loaded. hint: use ggml_backend_load()":                                               {lifecycle.NotInstalled, "back ends"},
	} {
		got, ok := Explain([]string{"0.00.0 I noise", line})
		if !ok || got.Cause != want.cause || !strings.Contains(got.Reason, want.says) || len(got.Hints) != 1 {
			t.Errorf("%q: %+v", line, got)
		}
	}
	if got, ok := Explain([]string{"0.00.0 I srv llama_server: model loaded"}); ok {
		t.Errorf("%+v", got)
	}
}

func TestRepository(t *testing.T) {
	for name, want := range map[string]string{
		"ggml-org/gpt-oss-20b-GGUF": "ggml-org/gpt-oss-20b-GGUF", "hf:a/b:Q4_K_M": "a/b:Q4_K_M", "hf.co/unsloth/Qwen3-GGUF:Q8_0": "unsloth/Qwen3-GGUF:Q8_0",
		"qwen3:8b": "", "a/b/c": "", "../b": "", "a/b.gguf": "", "hf:nonsense": "", "": "", "-x/y": "",
	} {
		if got, ok := Repository(name); (want != "") != ok || (ok && got != want) {
			t.Errorf("Repository(%q) = %q, %v", name, got, ok)
		}
	}
}

func TestEnvironmentIsOurs(t *testing.T) {
	e := New(Options{})
	env := strings.Join(e.environment(model{}, lifecycle.Spec{KVType: "q8_0", Devices: []string{"GPU-a", "GPU-b"}}, []string{
		"LLAMA_ARG_HOST=0.0.0.0", "LLAMA_ARG_MODELS_DIR=/x", "LLAMA_API_KEY=k", "LLAMA_ARG_API_PREFIX=/p", "LLAMA_ARG_TOOLS=all", "LLAMA_ARG_THREADS=3", "LLAMA_ARG_SSL_CERT_FILE=/c", "HOME=/h",
	}), "\n")
	for _, want := range []string{"LLAMA_ARG_THREADS=3", "LLAMA_ARG_FLASH_ATTN=on", "CUDA_VISIBLE_DEVICES=GPU-a,GPU-b", "LLAMA_ARG_OFFLINE=1", "LLAMA_ARG_CACHE_RAM=1024", "LLAMA_ARG_UI=0"} {
		if !strings.Contains(env, want) {
			t.Errorf("no %s", want)
		}
	}
	for _, not := range []string{"ARG_HOST", "MODELS_DIR", "API_KEY=", "API_PREFIX", "ARG_TOOLS", "SSL_CERT"} {
		if strings.Contains(env, not) {
			t.Errorf("%s is handed on", not)
		}
	}
}

// The lines are of a load on a machine with a GPU and of one without.
func TestSaidFigures(t *testing.T) {
	s := newSaid(func(lifecycle.Progress) {})
	for _, line := range strings.Split(`0.00.1 I srv    load_model: loading model '/m.gguf'
0.00.2 I print_info: arch                  = qwen3next
0.00.2 I print_info: n_swa                 = 4096
0.00.3 I load_tensors: offloaded 12/49 layers to GPU
0.00.3 I load_tensors:        CUDA0 model buffer size = 16000.50 MiB
0.00.3 I load_tensors:   CPU_Mapped model buffer size =   400.00 MiB
0.00.3 I llama_kv_cache:      CUDA0 KV buffer size =  3072.00 MiB
0.00.3 I llama_memory_recurrent:      CUDA0 RS buffer size =    75.00 MiB
0.00.3 I sched_reserve:  CUDA_Host compute buffer size =    72.00 MiB
0.00.3 I sched_reserve:      CUDA0 compute buffer size =   304.00 MiB
0.00.4 W llama_context: n_ctx_seq (9000) > n_ctx_train (8192) -- possible training context overflow
0.00.5 E cmn  common_init_: failed`, "\n") {
		s.line(line)
	}
	w := s.words()
	if w.gpu != 16000.5+3072+75+304 || w.host != 472 || w.arch != "qwen3next" || w.window != 4096 || !w.recurrent || w.offloaded != "12/49" || w.trained != 8192 || w.asked != 9000 || len(w.errors) != 1 {
		t.Errorf("%+v", w)
	}
}

func FuzzSaid(f *testing.F) {
	f.Add("0.00.3 I load_tensors:        CUDA0 model buffer size = 16000.50 MiB")
	f.Add("n_ctx_seq (99999999999999999999) > n_ctx_train (8192)")
	f.Add("allocating 1 MiB on device 0: cudaMalloc failed: out of memory")
	f.Fuzz(func(t *testing.T, line string) {
		s := newSaid(func(lifecycle.Progress) {})
		s.line(line)
		s.tick(1)
		if start, ok := Explain([]string{line}); ok && start.Reason == "" {
			t.Errorf("%q has no reason", line)
		}
	})
}
