package ollama

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/ollama/ollama/api"

	"localllm/internal/engine/child"
	"localllm/lifecycle"
)

const memoryHint = "a shorter context, a smaller KV type (q8_0) or a smaller model needs less"

// sentence turns Ollama's words into one of ours.
type sentence struct {
	pattern *regexp.Regexp
	cause   lifecycle.Cause
	reason  string // $1 is the pattern's first group
	hint    string
}

// pulling are the causes of a pull. In a log such lines are about other things that Ollama looks up.
var pulling = []sentence{
	// server/pull: "pull model manifest: file does not exist"
	{regexp.MustCompile(`pull model manifest: file does not exist|manifest unknown`), lifecycle.NoSuchModel, "there is no such model to pull", "check its name and tag"},
	// net/http, handed on by pull
	{regexp.MustCompile(`dial tcp|no such host|TLS handshake|i/o timeout|proxyconnect`), lifecycle.NoSuchModel, "the model can't be pulled: its registry can't be reached", "check the network and pull it again; what has arrived is kept"},
}

// causes is looked through from above; the first that matches any line speaks.
var causes = []sentence{
	// server/sched.go and llm/server.go: "model requires more system memory (%s) than is available (%s)"
	{regexp.MustCompile(`model requires more (?:system )?memory \(([^)]+)\) than is available \(([^)]+)\)`), lifecycle.OutOfMemory, "the model needs $1 of memory and $2 are there", memoryHint},
	// llm/status.go: outOfMemorySubstrings, from its runner
	{regexp.MustCompile(`(?i)out of memory|cudaMalloc failed|failed to allocate|unable to allocate|allocation failed|not enough memory|insufficient memory|erroroutofmemory|out_of_device_memory|std::bad_alloc|cannot allocate memory`), lifecycle.OutOfMemory, "there is not enough memory for the model with this context", memoryHint},
	// llama-arch, handed on: "unknown model architecture: '%s'"
	{regexp.MustCompile(`unknown model architecture: '([^']+)'`), lifecycle.BadModel, "this Ollama does not know models of the architecture $1", "a newer Ollama may know it"},
	// gguf.cpp and llama-model-loader.cpp, handed on
	{regexp.MustCompile(`invalid magic characters|not within the file bounds|error loading model`), lifecycle.BadModel, "the model's file is damaged", "pull it again"},
	// server/images.go: a blob that the manifest names is gone
	{regexp.MustCompile(`(?i)blobs/sha256\S+: no such file`), lifecycle.BadModel, "a part of the model is missing from Ollama's store", "pull it again"},
	// server/routes.go and envconfig: the store can't be used
	{regexp.MustCompile(`(?i)permission denied`), lifecycle.NoDisk, "Ollama's model store can't be used: permission denied", "check OLLAMA_MODELS and who may read and write it"},
	{regexp.MustCompile(`(?i)read-only file system`), lifecycle.NoDisk, "Ollama's model store is on a read-only file system", "set OLLAMA_MODELS to a folder that can be written"},
	// manifest/paths.go: "%w: ensure path elements are traversable"
	{regexp.MustCompile(`ensure path elements are traversable`), lifecycle.NoDisk, "Ollama's model store can't be reached", "check OLLAMA_MODELS and who may read and write it"},
	{regexp.MustCompile(`(?i)not a directory`), lifecycle.NoDisk, "Ollama's model store is not a folder", "check OLLAMA_MODELS"},
	{regexp.MustCompile(`(?i)no space left on device`), lifecycle.NoDisk, "the disk is full", "make room and try again"},
	// llm/llama_binary.go: "llama-server binary not found"
	{regexp.MustCompile(`(?i)llama-server.*not found`), lifecycle.NotInstalled, "this Ollama is incomplete: its runner is missing", "install it again"},
	// server/sched.go: ErrMaxQueue
	{regexp.MustCompile(`server busy|maximum pending requests`), lifecycle.Crashed, "Ollama has too many requests waiting", "try again in a moment"},
	// ld.so and dyld, before main
	{regexp.MustCompile(`error while loading shared libraries: ([^:]+)`), lifecycle.NotInstalled, "Ollama can't start: the library $1 is missing", "install it again"},
}

// Explain finds the sentence for Ollama's words. The second result is false where none fits.
func Explain(lines []string) (*lifecycle.StartError, bool) { return explain(causes, lines) }

func explain(table []sentence, lines []string) (*lifecycle.StartError, bool) {
	for _, c := range table {
		for _, line := range lines {
			if m := c.pattern.FindStringSubmatchIndex(line); m != nil {
				reason := string(c.pattern.ExpandString(nil, c.reason, line, m))
				return &lifecycle.StartError{Cause: c.cause, Reason: reason, Hints: []string{c.hint}, Err: errors.New(line)}, true
			}
		}
	}
	return nil, false
}

// explain makes the error of a start that did not work out.
func (s *server) explain(ctx context.Context, err error, logPath string) error {
	var known *lifecycle.StartError
	if errors.As(err, &known) || errors.Is(err, errPortTaken) {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if s.said != nil {
		if _, taken := s.said.port(); taken {
			return errPortTaken
		}
	}
	// What the API said first, then the log of a server of ours.
	if start, ok := explain(append(pulling[:len(pulling):len(pulling)], causes...), []string{err.Error()}); ok {
		return start
	}
	var hints []string
	if s.child != nil {
		lines := s.said.troubles()
		if start, ok := Explain(lines); ok {
			return start
		}
		hints = lookInto(logPath)
		if errors.Is(err, child.ErrStalled) {
			return &lifecycle.StartError{Cause: lifecycle.TimedOut, Reason: fmt.Sprintf("Ollama %s while it was %s", child.Still(err), s.said.progress().Phase), Hints: hints, Err: err}
		}
		if errors.Is(err, child.ErrExited) {
			reason := fmt.Sprintf("Ollama ended before it was ready (exit status %d)", s.child.ExitCode())
			if len(lines) == 0 {
				lines = strings.Split(strings.TrimSpace(s.child.Tail()), "\n")
			}
			if last := lines[len(lines)-1]; last != "" {
				reason += ": " + last[:min(len(last), 300)]
			}
			return &lifecycle.StartError{Cause: lifecycle.Crashed, Reason: reason, Hints: hints, Err: err}
		}
	}
	var status api.StatusError
	if errors.As(err, &status) && status.StatusCode >= http.StatusBadRequest {
		return &lifecycle.StartError{Cause: lifecycle.Crashed, Reason: fmt.Sprintf("Ollama could not load %s: %s", s.spec.Model, status.ErrorMessage), Hints: hints, Err: err}
	}
	return err
}

func lookInto(logPath string) []string {
	if logPath == "" {
		return nil
	}
	return []string{"its output is in " + logPath}
}
