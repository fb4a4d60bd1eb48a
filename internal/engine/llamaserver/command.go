package llamaserver

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"localllm/internal/engine/program"
	"localllm/internal/gguf"
	"localllm/internal/paths"
	"localllm/lifecycle"
)

// model is what to load, looked at before anything starts.
type model struct {
	path   string // a local file, or
	repo   string // a Hugging Face reference, OWNER/NAME[:QUANT], that llama-server fetches itself
	fetch  bool   // it may be downloaded
	size   int64  // bytes of all shards; 0: unknown
	header Header
}

var repository = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*/[\w.-]+(:[\w.-]+)?$`)

// Repository is the Hugging Face reference in a model's name, without its prefix; false if it is none.
func Repository(name string) (string, bool) {
	for _, prefix := range []string{"hf:", "hf.co/", "huggingface.co/"} {
		if after, ok := strings.CutPrefix(name, prefix); ok {
			return after, repository.MatchString(after)
		}
	}
	return name, repository.MatchString(name) && !strings.HasSuffix(strings.ToLower(name), ".gguf")
}

func (e *Engine) resolve(spec lifecycle.Spec) (model, error) {
	path := spec.Path
	if path == "" && (filepath.IsAbs(spec.Model) || strings.HasSuffix(strings.ToLower(spec.Model), ".gguf")) {
		path = spec.Model
	}
	if path == "" {
		repo, ok := Repository(spec.Model)
		if !ok {
			return model{}, &lifecycle.StartError{
				Cause:  lifecycle.NoSuchModel,
				Reason: fmt.Sprintf("llama-server can't find a model named %q", spec.Model),
				Hints:  []string{"name a .gguf file, a Hugging Face reference (OWNER/NAME:QUANT) or a tag that Ollama has"},
			}
		}
		return model{repo: repo}, nil
	}
	if !filepath.IsAbs(path) {
		return model{}, &lifecycle.StartError{Cause: lifecycle.NoSuchModel, Reason: fmt.Sprintf("the model file %s has no absolute path", path), Hints: []string{"name the file by its whole path"}}
	}
	m := model{path: path}
	if err := m.look(); err != nil {
		return m, err
	}
	if e.options.Header != nil {
		// What we can't read of a header the engine may know all the same: an architecture of tomorrow is no error.
		header, err := e.options.Header(path)
		if errors.Is(err, gguf.ErrNotGGUF) {
			return m, badModel(path, err)
		}
		if err == nil {
			m.header = header
		}
	}
	return m, nil
}

// look finds what is wrong with a file before an engine has to: its own words about it are worse.
func (m *model) look() error {
	f, err := os.Open(m.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &lifecycle.StartError{Cause: lifecycle.NoSuchModel, Reason: fmt.Sprintf("there is no model file %s", m.path), Hints: []string{"check the path"}, Err: err}
	case err != nil:
		return &lifecycle.StartError{Cause: lifecycle.NoDisk, Reason: fmt.Sprintf("the model file can't be read: %v", err), Hints: []string{"check who may read it"}, Err: err}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.IsDir() {
		return &lifecycle.StartError{Cause: lifecycle.BadModel, Reason: fmt.Sprintf("%s is a folder, not a model file", m.path), Hints: []string{"name the .gguf file inside it"}, Err: err}
	}
	var magic [4]byte
	if _, err := io.ReadFull(f, magic[:]); err != nil || string(magic[:]) != "GGUF" {
		return badModel(m.path, errors.New("it does not begin with the letters GGUF"))
	}
	m.size = shards(m.path, info.Size())
	return nil
}

var shard = regexp.MustCompile(`-00001-of-(\d{5})\.gguf$`)

func shards(path string, first int64) int64 {
	match := shard.FindStringSubmatch(path)
	if match == nil {
		return first
	}
	count, _ := strconv.Atoi(match[1])
	total := first
	for i := 2; i <= count; i++ {
		if info, err := os.Stat(strings.TrimSuffix(path, match[0]) + fmt.Sprintf("-%05d-of-%s.gguf", i, match[1])); err == nil {
			total += info.Size()
		}
	}
	return total
}

func badModel(path string, err error) error {
	return &lifecycle.StartError{
		Cause: lifecycle.BadModel, Reason: fmt.Sprintf("%s is not a GGUF model that can be used: %v", path, err), Err: err,
		Hints: []string{"get the file again, or name another model"},
	}
}

// arguments are the options that every build since 2024 has; the newer ones go by environment, where a build that
// doesn't know one ignores it.
func arguments(m model, spec lifecycle.Spec, port int, f files) []string {
	slots := max(spec.Slots, 1)
	args := []string{
		"--host", "127.0.0.1", "--port", strconv.Itoa(port),
		"-c", strconv.Itoa(spec.Context * slots), "-np", strconv.Itoa(slots),
		"--api-key-file", f.key, "--alias", strings.ReplaceAll(spec.Model, ",", "_"),
		"--slots", "--metrics", "--slot-save-path", f.slots,
	}
	if m.path != "" {
		args = append(args, "-m", m.path)
	} else {
		args = append(args, "-hf", m.repo)
	}
	if kv := spec.KVType; kv != "" {
		args = append(args, "-ctk", kv, "-ctv", kv)
	}
	return args
}

// kept are the variables of llama.cpp that a user may set for his machine. All others are dropped: any of them
// could move the server off the loopback, take its key away, or load something else.
var kept = map[string]bool{
	"LLAMA_ARG_THREADS": true, "LLAMA_ARG_THREADS_BATCH": true, "LLAMA_ARG_N_GPU_LAYERS": true, "LLAMA_ARG_N_CPU_MOE": true,
	"LLAMA_ARG_CPU_MOE": true, "LLAMA_ARG_OVERRIDE_TENSOR": true, "LLAMA_ARG_TENSOR_SPLIT": true, "LLAMA_ARG_SPLIT_MODE": true,
	"LLAMA_ARG_MAIN_GPU": true, "LLAMA_ARG_DEVICE": true, "LLAMA_ARG_NUMA": true, "LLAMA_ARG_BATCH": true, "LLAMA_ARG_UBATCH": true,
	"LLAMA_ARG_NO_MMAP": true, "LLAMA_ARG_MLOCK": true, "LLAMA_ARG_LOAD_MODE": true, "LLAMA_ARG_FIT": true, "LLAMA_ARG_FIT_TARGET": true,
	"LLAMA_ARG_SWA_FULL": true, "LLAMA_ARG_CTX_CHECKPOINTS": true,
}

func (e *Engine) environment(m model, spec lifecycle.Spec, base []string) []string {
	var env []string
	for _, entry := range base {
		name, _, _ := strings.Cut(entry, "=")
		if (strings.HasPrefix(name, "LLAMA_ARG_") && !kept[name]) || name == "LLAMA_API_KEY" {
			continue
		}
		env = append(env, entry)
	}
	set := func(name, value string) { env = append(env, name+"="+value) }
	if program.Lookup(env, "LLAMA_ARG_BATCH") == "" && len(spec.Devices) < 2 {
		// A cancel is seen between two batches. Only several GPUs gain from a batch over the physical one of 512.
		set("LLAMA_ARG_BATCH", "512")
	}
	set("LLAMA_ARG_CACHE_RAM", strconv.Itoa(e.options.CacheRAM))
	set("LLAMA_ARG_CORS_ORIGINS", "http://cors.invalid") // the default lets every web page in
	set("LLAMA_ARG_UI", "0")
	set("LLAMA_ARG_NO_WEBUI", "1")      // the same in builds before 2026
	set("LLAMA_ARG_KV_UNIFIED", "0")    // restored slot states do not survive a unified cache
	set("LLAMA_ARG_CONTEXT_SHIFT", "0") // never drop the beginning silently
	set("LLAMA_ARG_LOG_VERBOSITY", "4") // names buffers and architecture; prompts only from 5 on
	set("LLAMA_ARG_LOG_COLORS", "off")
	set("LLAMA_ARG_LOG_JSONL", "0")
	if spec.KVType != "" && spec.KVType != "f16" && spec.KVType != "bf16" && spec.KVType != "f32" {
		set("LLAMA_ARG_FLASH_ATTN", "on") // a quantised V cache needs it
	}
	if !m.fetch {
		set("LLAMA_ARG_OFFLINE", "1")
	}
	if len(spec.Devices) > 0 {
		set("CUDA_VISIBLE_DEVICES", strings.Join(spec.Devices, ","))
	}
	if program.Lookup(env, "HOME") == "" {
		if home, err := paths.UserHome(); err == nil {
			set("HOME", home)
		}
	}
	return env
}

// cacheFolder is where llama-server keeps what it downloads.
func cacheFolder(env []string) string {
	for _, name := range []string{"LLAMA_CACHE", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"} {
		if dir := program.Lookup(env, name); dir != "" {
			return dir
		}
	}
	if dir := program.Lookup(env, "HF_HOME"); dir != "" {
		return filepath.Join(dir, "hub")
	}
	home := program.Lookup(env, "HOME")
	if home == "" {
		home, _ = paths.UserHome()
	}
	return filepath.Join(home, ".cache", "huggingface", "hub")
}
