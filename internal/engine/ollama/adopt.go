package ollama

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ollama/ollama/api"

	"localllm/lifecycle"
)

// mostModels is how many models Ollama keeps loaded for each GPU unless its owner says otherwise (server/sched.go).
const mostModels = 3

// adopt loads the model on a server that somebody else runs.
func (e *Engine) adopt(ctx context.Context, found Found, spec lifecycle.Spec, host lifecycle.Host) (_ lifecycle.Server, err error) {
	if err := tooOld(found.Version); err != nil {
		return nil, err
	}
	s := newServer(spec, found.URL)
	s.endpoint.Version, s.endpoint.Adopted = found.Version, true
	defer func() {
		if err != nil {
			s.http.CloseIdleConnections()
		}
	}()
	host.Report(lifecycle.Progress{Phase: "loading", Detail: "on the Ollama that is running"})
	list, err := s.api.ListRunning(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking Ollama what is loaded: %w", err)
	}
	window, others := 0, []api.ProcessModelResponse(nil)
	s.loadedByUs = true
	for _, m := range list.Models {
		if !Same(m.Name, spec.Model) {
			others = append(others, m)
			continue
		}
		// With the context that it has, it need not be loaded again under somebody's hands.
		if m.ContextLength >= spec.Context {
			s.loadedByUs, s.before, window = false, m.ExpiresAt, m.ContextLength
		} else if !host.Force {
			return nil, displaces(fmt.Sprintf("Ollama has %s loaded for somebody with a context of %d tokens, and loading it with %d would replace that", m.Name, m.ContextLength, spec.Context), m.ContextLength)
		}
	}
	if s.loadedByUs && !host.Force {
		if err := e.room(ctx, spec, others); err != nil {
			return nil, err
		}
	}
	if err := s.loadAdopted(ctx, e.options.KeepAlive, window, host.Report); err != nil {
		if s.loadedByUs { // it may have been loaded all the same
			clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			_ = s.unload(clean)
		}
		return nil, s.explain(ctx, err, "")
	}
	s.warn(ctx, others)
	return s, nil
}

// loadAdopted reports that it is still loading: there is nothing of the server's to watch.
func (s *server) loadAdopted(ctx context.Context, keep time.Duration, window int, report func(lifecycle.Progress)) error {
	finished, ended := make(chan struct{}), make(chan struct{})
	go func() { // ends with the load
		defer close(ended)
		began, tick := time.Now(), time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-finished:
				return
			case <-tick.C:
				report(lifecycle.Progress{Phase: "loading", Seconds: int(time.Since(began).Seconds())})
			}
		}
	}()
	err := s.load(ctx, keep, window)
	close(finished)
	<-ended
	return err
}

// room refuses a load that would push out somebody's model. Where the free memory is not known it says so, for
// Ollama itself decides what has to go.
func (e *Engine) room(ctx context.Context, spec lifecycle.Spec, others []api.ProcessModelResponse) error {
	if len(others) == 0 {
		return nil
	}
	var names []string
	for _, m := range others {
		names = append(names, m.Name)
	}
	theirs := strings.Join(names, ", ")
	if len(others) >= mostModels {
		return displaces(fmt.Sprintf("Ollama holds %s for somebody, which is as many as it keeps", theirs), 0)
	}
	var free uint64
	if e.options.Free != nil {
		free = e.options.Free(ctx, spec)
	}
	if free == 0 || spec.Need == 0 || spec.Need > free {
		return displaces(fmt.Sprintf("loading %s could push out %s, which Ollama holds for somebody", spec.Model, theirs), 0)
	}
	return nil
}

func displaces(reason string, context int) error {
	hints := []string{"free it yourself with `ollama stop`, or go ahead with force"}
	if context > 0 {
		hints = append(hints, fmt.Sprintf("or ask for a context of at most %d, which can be shared", context))
	}
	return &lifecycle.StartError{Cause: lifecycle.Displaces, Reason: reason, Hints: hints}
}

// warn says where the server's own settings stand in the way, and what the load pushed out.
func (s *server) warn(ctx context.Context, others []api.ProcessModelResponse) {
	e := &s.endpoint
	if s.spec.Slots > 1 {
		e.Warnings = append(e.Warnings, fmt.Sprintf("the running Ollama decides itself how many requests it serves at once (OLLAMA_NUM_PARALLEL): %d slots can't be promised", s.spec.Slots))
	}
	if kv := s.spec.KVType; kv != "" && kv != "f16" {
		e.Warnings = append(e.Warnings, fmt.Sprintf("the running Ollama decides its KV type itself (OLLAMA_KV_CACHE_TYPE): %s can't be set", kv))
	}
	if e.Context > s.spec.Context {
		e.Warnings = append(e.Warnings, fmt.Sprintf("the model is shared with its present context of %d tokens", e.Context))
	}
	list, err := s.api.ListRunning(ctx)
	if err != nil {
		return
	}
	for _, m := range others {
		still := false
		for _, now := range list.Models {
			still = still || Same(now.Name, m.Name)
		}
		if !still {
			e.Warnings = append(e.Warnings, fmt.Sprintf("loading pushed out %s", m.Name))
		}
	}
}
