package ollama

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ollama/ollama/api"

	"localllm/lifecycle"
)

// follow waits for the end of a server of ours.
func (s *server) follow() {
	<-s.child.Done()
	s.mu.Lock()
	stopped := s.stop
	s.mu.Unlock()
	if stopped {
		s.end(nil)
		return
	}
	s.end(fmt.Errorf("Ollama ended by itself (exit status %d): %s", s.child.ExitCode(), s.lastWords()))
}

func (s *server) lastWords() string {
	if start, ok := Explain(s.said.troubles()); ok {
		return start.Reason
	}
	if lines := s.said.troubles(); len(lines) > 0 {
		return lines[len(lines)-1]
	}
	return "without a word"
}

// end closes done once.
func (s *server) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.over, s.err = true, err
	s.http.CloseIdleConnections()
	close(s.done)
}

func (s *server) Endpoint() lifecycle.Endpoint { return s.endpoint }

func (s *server) Done() <-chan struct{} { return s.done }

func (s *server) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Renew keeps an adopted model for another keep-alive, and finds out whether it is still there: it is never loaded
// again behind the back of whoever let go of it.
func (s *server) Renew(ctx context.Context) error {
	if s.child != nil {
		return nil
	}
	s.mu.Lock()
	over := s.over || s.stop
	s.mu.Unlock()
	if over {
		return nil
	}
	running, err := s.running(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		s.end(fmt.Errorf("the Ollama that was running can't be reached any more: %w", err))
		return s.Err()
	}
	if running == nil {
		s.end(fmt.Errorf("somebody unloaded %s from the running Ollama", s.spec.Model))
		return s.Err()
	}
	return s.keep(ctx, s.endpoint.KeepAlive)
}

// keep sets how long the model stays loaded; with the canonical options it is not loaded again.
func (s *server) keep(ctx context.Context, d time.Duration) error {
	err := s.api.Generate(ctx, &api.GenerateRequest{
		Model: s.spec.Model, Options: s.endpoint.Options, KeepAlive: &api.Duration{Duration: d}, Stream: &noStream, Shift: shift(s.endpoint), Truncate: &noTruncate,
	}, func(api.GenerateResponse) error { return nil })
	if err != nil {
		return fmt.Errorf("keeping %s loaded: %w", s.spec.Model, err)
	}
	return nil
}

// Memory is what Ollama says it holds for the model.
func (s *server) Memory(ctx context.Context) (lifecycle.Memory, error) {
	running, err := s.running(ctx)
	if err != nil || running == nil {
		return lifecycle.Memory{}, err
	}
	return lifecycle.Memory{TotalBytes: uint64(max(running.Size, 0)), GPUBytes: uint64(max(running.SizeVRAM, 0))}, nil
}

// Stop implements lifecycle.Server.
func (s *server) Stop(ctx context.Context) (lifecycle.Stopped, error) {
	s.mu.Lock()
	first, over := !s.stop, s.over
	s.stop = true
	s.mu.Unlock()
	if s.child != nil {
		s.child.Stop(ctx)
		<-s.done
		return lifecycle.Stopped{Process: first, Model: first}, nil
	}
	defer s.end(nil)
	if !first || over {
		return lifecycle.Stopped{}, nil
	}
	if !s.loadedByUs {
		s.restore(ctx)
		return lifecycle.Stopped{}, nil
	}
	if err := s.unload(ctx); err != nil {
		return lifecycle.Stopped{}, err
	}
	return lifecycle.Stopped{Model: true}, nil
}

// restore gives a model that was loaded before us the time that it still had, for our requests have set another.
func (s *server) restore(ctx context.Context) {
	left := time.Until(s.before)
	if left > 10*365*24*time.Hour { // for ever
		left = forever
	} else {
		left = max(left, time.Second)
	}
	if running, err := s.running(ctx); err == nil && running != nil {
		_ = s.keep(ctx, left)
	}
}

// unload asks for it, and looks until it is so: the answer comes before the memory is free.
func (s *server) unload(ctx context.Context) error {
	request := func() error {
		return s.api.Generate(ctx, &api.GenerateRequest{
			Model: s.spec.Model, KeepAlive: &api.Duration{Duration: 0}, Stream: &noStream,
		}, func(api.GenerateResponse) error { return nil })
	}
	running, err := s.running(ctx)
	if err != nil {
		return err
	}
	if running == nil {
		return nil
	}
	if err := request(); err != nil {
		return fmt.Errorf("unloading %s: %w", s.spec.Model, err)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for pause := 5 * time.Millisecond; ; pause = min(pause*2, 100*time.Millisecond) {
		running, err := s.running(ctx)
		if err == nil && running == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("unloading %s: %w", s.spec.Model, errors.Join(errStillLoaded, err))
		case <-time.After(pause):
		}
	}
}

var errStillLoaded = errors.New("Ollama still holds it")
