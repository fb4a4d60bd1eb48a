package ollama

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ollama/ollama/api"

	"localllm/internal/engine/child"
	"localllm/internal/engine/loopback"
	"localllm/lifecycle"
)

// server is a model on Ollama, whoever started that.
type server struct {
	spec       lifecycle.Spec
	url        string
	http       *http.Client
	api        *api.Client
	child      *child.Child // nil: adopted
	said       *said
	size       atomic.Int64 // bytes of the model on disk
	endpoint   lifecycle.Endpoint
	loadedByUs bool
	before     time.Time // until when the model was to stay loaded before we came

	done chan struct{}
	mu   sync.Mutex
	err  error
	stop bool
	over bool // done is closed
}

func newServer(spec lifecycle.Spec, address string) *server {
	s := &server{spec: spec, url: address, http: loopback.Client(), done: make(chan struct{})}
	s.api, _ = client(address, s.http) // the address is one that we made
	s.endpoint = lifecycle.Endpoint{Engine: lifecycle.Ollama, URL: address, Slots: 1}
	return s
}

// Fixed values of every request: truncation would drop the prompt's beginning without a word.
var (
	noTruncate = false
	noStream   = false
)

// shift is the one value of that field on an endpoint, for a change of it loads the model again. On a server of
// ours nothing is ever shifted out; on one that is found it is what everybody else sends, which is nothing: else
// their requests and ours would reload the model in turns.
func shift(e lifecycle.Endpoint) *bool {
	if e.Adopted {
		return nil
	}
	return new(bool)
}

// load loads the model with the canonical options, gets one token out of it, and fills the endpoint. context is the
// context to ask for where it has to differ from the spec's, else 0.
func (s *server) load(ctx context.Context, keep time.Duration, window int) error {
	info, err := s.api.Show(ctx, &api.ShowRequest{Model: s.spec.Model})
	if err != nil {
		return noModel(s.spec.Model, err)
	}
	figures := Read(info)
	if figures.Remote {
		return &lifecycle.StartError{Cause: lifecycle.BadModel, Reason: fmt.Sprintf("%s runs on somebody else's machine, not on this one", s.spec.Model), Hints: []string{"name a model that is not a cloud model"}}
	}
	if figures.Context > 0 && s.spec.Context > figures.Context {
		return contextOverLimit(s.spec.Context, figures.Context)
	}
	s.size.Store(s.installedSize(ctx))
	if window == 0 {
		window = s.spec.Context
	}
	options := map[string]any{"num_ctx": window}
	alive := &api.Duration{Duration: keep}
	err = s.api.Generate(ctx, &api.GenerateRequest{
		Model: s.spec.Model, Options: maps.Clone(options), KeepAlive: alive, Stream: &noStream, Shift: shift(s.endpoint), Truncate: &noTruncate,
	}, func(api.GenerateResponse) error { return nil })
	if err != nil {
		return fmt.Errorf("loading %s: %w", s.spec.Model, err)
	}
	probe := maps.Clone(options)
	probe["num_predict"], probe["temperature"] = 1, 0
	var last api.ChatResponse
	err = s.api.Chat(ctx, &api.ChatRequest{
		Model: s.spec.Model, Options: probe, KeepAlive: alive, Stream: &noStream, Shift: shift(s.endpoint), Truncate: &noTruncate,
		Think: &api.ThinkValue{Value: false}, Messages: []api.Message{{Role: "user", Content: "1"}},
	}, func(r api.ChatResponse) error { last = r; return nil })
	if err != nil {
		return fmt.Errorf("asking %s for a first token: %w", s.spec.Model, err)
	}
	if !last.Done || last.PromptEvalCount == 0 {
		return &lifecycle.StartError{Cause: lifecycle.Crashed, Reason: fmt.Sprintf("%s is loaded but does not compute", s.spec.Model)}
	}
	running, err := s.running(ctx)
	if err != nil {
		return err
	}
	if running == nil {
		return &lifecycle.StartError{Cause: lifecycle.Crashed, Reason: fmt.Sprintf("Ollama let go of %s right after loading it", s.spec.Model)}
	}
	if running.ContextLength > 0 && running.ContextLength < s.spec.Context {
		return contextOverLimit(s.spec.Context, running.ContextLength)
	}
	s.describe(figures, running, options, keep)
	return nil
}

func (s *server) describe(figures Figures, running *api.ProcessModelResponse, options map[string]any, keep time.Duration) {
	e := &s.endpoint
	e.Model, e.Context, e.KVType = s.spec.Model, running.ContextLength, s.spec.KVType
	e.Options, e.KeepAlive, e.PrefixReuse = options, keep, figures.Rewinds
	if e.Context == 0 {
		e.Context = s.spec.Context
	}
	if s.child != nil {
		e.Slots = max(s.spec.Slots, 1)
		if err := s.child.LogTrouble(); err != nil {
			e.Warnings = append(e.Warnings, fmt.Sprintf("the engine's log is incomplete: %v", err))
		}
	}
	if running.SizeVRAM > 0 && running.SizeVRAM < running.Size {
		e.Warnings = append(e.Warnings, fmt.Sprintf("only %d %% of the model is on the GPU: answers will be slow", running.SizeVRAM*100/running.Size))
	}
	if !e.PrefixReuse {
		e.Warnings = append(e.Warnings, "this model's cache can only be rewound at checkpoints, so that less of a prompt is reused")
	}
}

func (s *server) installedSize(ctx context.Context) int64 {
	list, err := s.api.List(ctx)
	if err != nil {
		return 0
	}
	for _, m := range list.Models {
		if Same(m.Name, s.spec.Model) {
			return m.Size
		}
	}
	return 0
}

// running is our model as Ollama has it loaded, nil if it doesn't.
func (s *server) running(ctx context.Context) (*api.ProcessModelResponse, error) {
	list, err := s.api.ListRunning(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking Ollama what is loaded: %w", err)
	}
	for _, m := range list.Models {
		if Same(m.Name, s.spec.Model) {
			return &m, nil
		}
	}
	return nil, nil
}

// Same reports whether two names mean the same model: the tag latest is left out as often as not.
func Same(a, b string) bool {
	full := func(name string) string {
		for _, prefix := range []string{"registry.ollama.ai/", "library/"} {
			name = strings.TrimPrefix(name, prefix)
		}
		if last := name[strings.LastIndex(name, "/")+1:]; !strings.Contains(last, ":") {
			name += ":latest"
		}
		return strings.ToLower(name)
	}
	return full(a) == full(b)
}

// Figures are what matters here of /api/show.
type Figures struct {
	Architecture string
	Context      int  // the model's limit in tokens; 0: unknown
	Rewinds      bool // its cache can be cut back to any token
	Remote       bool // a cloud model
	Blob         string
	Capabilities []string
	Info         map[string]any // the GGUF header's fields
}

// Read takes the figures out of a model's description.
func Read(info *api.ShowResponse) Figures {
	f := Figures{Info: info.ModelInfo, Remote: info.RemoteHost != "" || info.RemoteModel != "", Rewinds: true}
	f.Architecture, _ = info.ModelInfo["general.architecture"].(string)
	if n, ok := info.ModelInfo[f.Architecture+".context_length"].(float64); ok {
		f.Context = int(n)
	}
	for key, value := range info.ModelInfo {
		name := strings.TrimPrefix(key, f.Architecture+".")
		if name == "attention.sliding_window" {
			if n, ok := value.(float64); !ok || n > 0 {
				f.Rewinds = false
			}
		}
		if slices.ContainsFunc([]string{"ssm.", "full_attention_interval", "shortconv.", "wkv.", "linear_attn", "rwkv", "recurrent"}, func(mark string) bool { return strings.HasPrefix(name, mark) }) {
			f.Rewinds = false
		}
	}
	for line := range strings.Lines(info.Modelfile) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "FROM /"); ok {
			f.Blob = "/" + path
		}
	}
	for _, c := range info.Capabilities {
		f.Capabilities = append(f.Capabilities, string(c))
	}
	return f
}

func noModel(name string, err error) error {
	var status api.StatusError
	if errors.As(err, &status) && (status.StatusCode == http.StatusNotFound || status.StatusCode == http.StatusBadRequest) {
		return &lifecycle.StartError{
			Cause: lifecycle.NoSuchModel, Reason: fmt.Sprintf("Ollama has no model %s", name), Err: err,
			Hints: []string{"enable it with pull, or run `ollama pull " + name + "`"},
		}
	}
	return fmt.Errorf("asking Ollama about %s: %w", name, err)
}

func contextOverLimit(asked, limit int) error {
	return &lifecycle.StartError{
		Cause: lifecycle.BadOption, Reason: fmt.Sprintf("a context of %d tokens is over the model's limit of %d", asked, limit),
		Hints: []string{fmt.Sprintf("ask for at most %d", limit)},
	}
}
