package llamaserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"localllm/internal/engine/child"
	"localllm/internal/engine/loopback"
	"localllm/lifecycle"
)

// server is one running llama-server of ours.
type server struct {
	spec     lifecycle.Spec
	url      string
	logPath  string
	files    files
	child    *child.Child
	said     *said
	http     *http.Client
	endpoint lifecycle.Endpoint

	done chan struct{}
	mu   sync.Mutex
	err  error
	stop bool // it ends because we stop it
}

// load waits until the model has answered, and fills the endpoint.
func (s *server) load(ctx context.Context, stall time.Duration, m model) error {
	ctx, end := s.child.Watch(ctx, stall, s.said.tick)
	defer end()
	err := s.await(ctx)
	if err == nil {
		err = s.prove(ctx)
	}
	if err == nil {
		err = s.describe(ctx, m)
	}
	if err != nil {
		return s.child.Cause(ctx, err)
	}
	return nil
}

// await polls until the child itself says that it listens and answers that it is healthy.
func (s *server) await(ctx context.Context) error {
	pause := time.Millisecond
	for {
		w := s.said.words()
		if w.bindFail {
			return errPortTaken
		}
		if w.trained > 0 && w.asked > w.trained {
			return contextOverLimit(s.spec.Context, w.trained)
		}
		if w.listening {
			var health struct{ Status string }
			err := loopback.JSON(ctx, s.http, s.url+"/health", "", nil, &health)
			var refusal *loopback.Error
			if err == nil {
				return nil
			}
			if errors.As(err, &refusal) && refusal.Status != http.StatusServiceUnavailable {
				return wrongServer(s.url)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		pause = min(pause*2, 20*time.Millisecond)
	}
}

// prove makes sure that what answers is our server, and that the model computes: a healthy server may still have a
// GPU that does not work.
func (s *server) prove(ctx context.Context) error {
	err := loopback.JSON(ctx, s.http, s.url+"/props", "", nil, nil)
	var refusal *loopback.Error
	if err == nil || (errors.As(err, &refusal) && refusal.Status != http.StatusUnauthorized) {
		return wrongServer(s.url) // ours lets nobody in without the key
	}
	if err != nil && refusal == nil {
		return err
	}
	var answer struct {
		Timings *struct {
			Cached *int `json:"cache_n"`
		} `json:"timings"`
		Predicted int `json:"tokens_predicted"`
	}
	probe := map[string]any{"prompt": "1", "n_predict": 1, "temperature": 0, "cache_prompt": false}
	if err := loopback.JSON(ctx, s.http, s.url+"/completion", s.files.text, probe, &answer); err != nil {
		if errors.As(err, &refusal) && refusal.Status == http.StatusUnauthorized {
			return wrongServer(s.url)
		}
		return s.noToken(err)
	}
	if answer.Predicted < 1 {
		return s.noToken(errors.New("the answer is empty"))
	}
	if answer.Timings == nil || answer.Timings.Cached == nil {
		return &lifecycle.StartError{Cause: lifecycle.TooOld, Reason: "this llama-server is too old: it does not say what it reused from its cache",
			Hints: []string{"install llama.cpp of 2026 or later, or use `localllm setup --engine llama-server`"}}
	}
	return nil
}

func (s *server) noToken(err error) error {
	var refusal *loopback.Error
	if !errors.As(err, &refusal) {
		return err
	}
	if start, ok := Explain(append(s.said.words().errors, refusal.Message)); ok {
		return start
	}
	return &lifecycle.StartError{Cause: lifecycle.Crashed, Reason: fmt.Sprintf("the model is loaded but does not compute: %v", err), Err: err}
}

func wrongServer(url string) error {
	return fmt.Errorf("another program answers at %s: %w", url, errPortTaken)
}

// describe asks the server what it really serves.
func (s *server) describe(ctx context.Context, m model) error {
	var props struct {
		Build    string `json:"build_info"`
		Slots    int    `json:"total_slots"`
		Defaults struct {
			Context int `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	if err := loopback.JSON(ctx, s.http, s.url+"/props", s.files.text, nil, &props); err != nil {
		return err
	}
	w := s.said.words()
	// Where neither the header nor the log tells, the cache is not trusted.
	reuse := w.arch != "" && w.window == 0 && !w.recurrent
	if m.header.Architecture != "" {
		reuse = m.header.Rewinds
	}
	s.endpoint = lifecycle.Endpoint{
		Engine: lifecycle.LlamaServer, URL: s.url, Model: s.spec.Model, APIKeyFile: s.files.key,
		Context: props.Defaults.Context, Slots: props.Slots, KVType: s.spec.KVType, Version: props.Build,
		Owned: true, SlotStates: reuse, PrefixReuse: reuse,
	}
	if props.Defaults.Context < s.spec.Context {
		return contextOverLimit(s.spec.Context, props.Defaults.Context)
	}
	if !reuse {
		s.endpoint.Warnings = append(s.endpoint.Warnings, "this model's cache can only be rewound at checkpoints, so that less of a prompt is reused")
	}
	if w.offloaded != "" && w.gpu > 0 {
		var some, all int
		if _, err := fmt.Sscanf(w.offloaded, "%d/%d", &some, &all); err == nil && some < all {
			s.endpoint.Warnings = append(s.endpoint.Warnings, fmt.Sprintf("only %d of %d layers fit the GPU: answers will be slow", some, all))
		}
	}
	if err := s.child.LogTrouble(); err != nil {
		s.endpoint.Warnings = append(s.endpoint.Warnings, fmt.Sprintf("the engine's log is incomplete: %v", err))
	}
	return nil
}

// follow waits for the child's end.
func (s *server) follow() {
	<-s.child.Done()
	s.mu.Lock()
	if !s.stop {
		s.err = fmt.Errorf("llama-server ended by itself (exit status %d): %s", s.child.ExitCode(), s.lastWords())
	}
	s.mu.Unlock()
	s.http.CloseIdleConnections()
	s.files.remove()
	close(s.done)
}

func (s *server) lastWords() string {
	w := s.said.words()
	if start, ok := Explain(w.errors); ok {
		return start.Reason
	}
	if last := strip(lastLine(w.errors)); last != "" {
		return last
	}
	return "without a word"
}

func (s *server) Endpoint() lifecycle.Endpoint { return s.endpoint }

func (s *server) Done() <-chan struct{} { return s.done }

func (s *server) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Renew has nothing to do: the server is ours.
func (s *server) Renew(context.Context) error { return nil }

// Memory is the sum of the buffers that the server told when it loaded.
func (s *server) Memory(context.Context) (lifecycle.Memory, error) {
	w := s.said.words()
	const mib = 1 << 20
	return lifecycle.Memory{TotalBytes: uint64((w.gpu + w.host) * mib), GPUBytes: uint64(w.gpu * mib)}, nil
}

// Stop implements lifecycle.Server. It ends the process in any case, also when ctx has ended.
func (s *server) Stop(ctx context.Context) (lifecycle.Stopped, error) {
	s.mu.Lock()
	first := !s.stop
	s.stop = true
	s.mu.Unlock()
	s.child.Stop(ctx)
	<-s.done
	return lifecycle.Stopped{Process: first, Model: first}, nil
}
