package llamaserver

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"localllm/internal/engine/child"
	"localllm/lifecycle"
)

var errPortTaken = errors.New("the port was taken by another program")

// sentence turns an engine's own words into one of ours.
type sentence struct {
	pattern *regexp.Regexp // the upstream line that it answers to is in the comment
	cause   lifecycle.Cause
	reason  string // $1 is the pattern's first group
	hint    string
}

const memoryHint = "a shorter context, a smaller KV type (q8_0) or a smaller model needs less"

// causes is looked through from above; the first that matches any error line speaks.
var causes = []sentence{
	// ggml-cuda.cu: "allocating %.2f MiB on device %d: cudaMalloc failed: out of memory"
	{regexp.MustCompile(`allocating ([\d.]+ MiB) on device \d+: \w+ failed: out of memory`), lifecycle.OutOfMemory, "the GPU has no $1 free for the model", memoryHint},
	// llama-kv-cache.cpp: "failed to allocate buffer for kv cache"; llama-memory-recurrent.cpp: "… for rs cache"
	{regexp.MustCompile(`failed to allocate buffer for (kv|rs) cache`), lifecycle.OutOfMemory, "there is not enough memory for the context's cache", memoryHint},
	// llama-context.cpp: "failed to allocate compute (pp |tg )buffers"; "failed to allocate graph"
	{regexp.MustCompile(`failed to allocate (compute|graph|output)`), lifecycle.OutOfMemory, "there is not enough memory for computing with this context", memoryHint},
	// llama-model.cpp: "unable to allocate %s buffer"
	{regexp.MustCompile(`unable to allocate (\S+) buffer`), lifecycle.OutOfMemory, "there is not enough memory on $1 for the model", memoryHint},
	// ggml-backend.cpp, ggml-alloc.c, ggml.c, ggml-vulkan, ggml-metal, the C++ library
	{regexp.MustCompile(`(?i)cudaMalloc failed|hipMalloc failed|ErrorOutOfDeviceMemory|failed to allocate|out of memory|insufficient memory|std::bad_alloc|cannot allocate memory|unable to fit model`), lifecycle.OutOfMemory, "there is not enough memory for the model with this context", memoryHint},
	// llama-arch: "unknown model architecture: '%s'"
	{regexp.MustCompile(`unknown model architecture: '([^']+)'`), lifecycle.BadModel, "this llama-server does not know models of the architecture $1", "a newer llama-server may know it"},
	// gguf.cpp: "invalid magic characters: '%s', expected 'GGUF'"
	{regexp.MustCompile(`invalid magic characters`), lifecycle.BadModel, "the file is not a GGUF model", "name a .gguf file"},
	// llama-model-loader.cpp: "tensor '%s' data is not within the file bounds, model is corrupted or incomplete"
	{regexp.MustCompile(`not within the file bounds`), lifecycle.BadModel, "the model file is cut off or damaged", "get the file again"},
	// gguf.cpp: "failed to open GGUF file '%s' (%s)"
	{regexp.MustCompile(`failed to open GGUF file '([^']+)' \(Permission denied\)`), lifecycle.NoDisk, "the model file $1 can't be read", "check who may read it"},
	{regexp.MustCompile(`failed to open GGUF file '([^']+)'`), lifecycle.NoSuchModel, "the model file $1 can't be opened", "check the path"},
	// llama-context.cpp: "K cache type %s with block size %u does not divide n_embd_head_k=%u"
	{regexp.MustCompile(`([KV] cache type \S+) with block size \d+ does not divide`), lifecycle.BadOption, "this model can't have a $1", "use the KV type f16"},
	// llama-context.cpp: "quantized V cache requires flash_attn to be enabled"; older: "V cache quantization requires flash_attn"
	{regexp.MustCompile(`(?i)(quantized V cache|V cache quantization) requires flash_attn`), lifecycle.BadOption, "this model can't have a quantised KV cache", "use the KV type f16"},
	// arg.cpp: "Unsupported cache type: %s"
	{regexp.MustCompile(`Unsupported cache type: (\S+)`), lifecycle.BadOption, "llama-server does not know the KV type $1", "use f16, q8_0 or q4_0"},
	// arg.cpp: "error: invalid argument: %s"
	{regexp.MustCompile(`invalid argument: (\S+)`), lifecycle.TooOld, "this llama-server is too old: it does not know the option $1", "install a newer llama.cpp, or use `localllm setup --engine llama-server`"},
	// download.cpp and hf-cache.cpp: "error: HTTPLIB failed: %s"
	{regexp.MustCompile(`HTTPLIB failed: (.+)`), lifecycle.NoSuchModel, "the model can't be downloaded: $1", "check the network and try again; what has arrived is kept"},
	// arg.cpp, download.cpp, llama.cpp: a reference that is not in the cache, or that the hub doesn't have
	{regexp.MustCompile(`exactly one out metadata, path_model|failed to load model ''|failed to resolve commit for (\S+)|no GGUF files? found`), lifecycle.NoSuchModel, "the model is not on this machine", "enable it with pull"},
	// ggml-backend-reg.cpp: "no backends are loaded"
	{regexp.MustCompile(`no backends are loaded`), lifecycle.NotInstalled, "this llama-server is incomplete: none of its back ends loads", "install it again"},
	// gguf.cpp, whatever else is wrong with a header; llama-model.cpp: "error loading model: %s"
	{regexp.MustCompile(`gguf_init_\w+: (.+)`), lifecycle.BadModel, "the file is not a usable GGUF model: $1", "get the file again"},
	{regexp.MustCompile(`error loading model: (.+)`), lifecycle.BadModel, "the model can't be loaded: $1", "get the file again, or name another model"},
	// hub downloads and slot files
	{regexp.MustCompile(`(?i)no space left on device`), lifecycle.NoDisk, "the disk is full", "make room and try again"},
	// ld.so and dyld, before main
	{regexp.MustCompile(`error while loading shared libraries: ([^:]+)|Library not loaded: (\S+)`), lifecycle.NotInstalled, "llama-server can't start: the library $1 is missing", "install it again"},
}

// Explain finds the sentence for an engine's output. The second result is false where none fits.
func Explain(lines []string) (*lifecycle.StartError, bool) {
	for _, c := range causes {
		for _, line := range lines {
			m := c.pattern.FindStringSubmatchIndex(line)
			if m == nil {
				continue
			}
			reason := string(c.pattern.ExpandString(nil, c.reason, line, m))
			return &lifecycle.StartError{Cause: c.cause, Reason: reason, Hints: []string{c.hint}, Err: errors.New(strip(line))}, true
		}
	}
	return nil, false
}

func contextOverLimit(asked, limit int) error {
	return &lifecycle.StartError{
		Cause:  lifecycle.BadOption,
		Reason: fmt.Sprintf("a context of %d tokens is over the model's limit of %d", asked, limit),
		Hints:  []string{fmt.Sprintf("ask for at most %d", limit)},
	}
}

// explain makes the error of a start that did not work out; the child has been stopped.
func (s *server) explain(ctx context.Context, err error, m model) error {
	var known *lifecycle.StartError
	if errors.As(err, &known) || errors.Is(err, errPortTaken) {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	w := s.said.words()
	if w.bindFail {
		return errPortTaken
	}
	if w.trained > 0 && w.asked > w.trained {
		return contextOverLimit(s.spec.Context, w.trained)
	}
	lines := w.errors
	if len(lines) == 0 {
		lines = strings.Split(s.child.Tail(), "\n")
	}
	if start, ok := Explain(lines); ok {
		return start
	}
	last := strip(lastLine(lines))
	var log []string
	if s.logPath != "" {
		log = append(log, "its output is in "+s.logPath)
	}
	if errors.Is(err, child.ErrStalled) {
		return &lifecycle.StartError{Cause: lifecycle.TimedOut, Reason: fmt.Sprintf("llama-server %s while it was %s", child.Still(err), s.said.now()), Hints: log, Err: err}
	}
	if errors.Is(err, child.ErrExited) {
		// The kernel's out-of-memory killer says nothing to the process.
		if s.child.ExitCode() == 128+9 {
			return &lifecycle.StartError{Cause: lifecycle.OutOfMemory, Reason: "llama-server was killed while loading, most likely for want of memory", Hints: []string{memoryHint}, Err: err}
		}
		reason := fmt.Sprintf("llama-server ended before it was ready (exit status %d)", s.child.ExitCode())
		if last != "" {
			reason += ": " + last
		}
		return &lifecycle.StartError{Cause: lifecycle.Crashed, Reason: reason, Hints: log, Err: err}
	}
	return err
}

func lastLine(lines []string) string {
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.TrimSpace(lines[i]) != "" {
			return lines[i]
		}
	}
	return ""
}
