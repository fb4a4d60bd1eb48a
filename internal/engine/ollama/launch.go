package ollama

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"localllm/internal/engine/child"
	"localllm/internal/engine/loopback"
	"localllm/internal/engine/program"
	"localllm/internal/paths"
	"localllm/lifecycle"
)

var errPortTaken = errors.New("the port was taken by another program")

// launch starts a server of our own with the user's models and loads the model. On an error nothing of it is left.
func (e *Engine) launch(ctx context.Context, spec lifecycle.Spec, host lifecycle.Host) (_ lifecycle.Server, err error) {
	binary, err := e.find(host.Env)
	if err != nil {
		return nil, err
	}
	port, err := e.options.Port()
	if err != nil {
		return nil, err
	}
	s := newServer(spec, "http://127.0.0.1:"+strconv.Itoa(port))
	s.said = &said{}
	defer func() {
		if err != nil {
			s.http.CloseIdleConnections()
		}
	}()
	s.child, err = child.Start(child.Options{
		Path: binary, Args: []string{"serve"}, Env: environment(spec, port, host.Env),
		Grace: e.options.Grace, Host: host, Line: s.said.line,
	})
	if err != nil {
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
			return nil, &lifecycle.StartError{Cause: lifecycle.NotInstalled, Reason: fmt.Sprintf("%s can't be run: %v", binary, errors.Unwrap(err)), Err: err,
				Hints: []string{"install it with `localllm setup --engine ollama`"}}
		}
		return nil, err
	}
	if err := s.bring(ctx, e.options.Stall, host.Report); err != nil {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*e.options.Grace)
		defer cancel()
		s.child.Stop(stop)
		return nil, s.explain(ctx, err, host.LogPath)
	}
	s.endpoint.Owned = true
	s.endpoint.KeepAlive = forever
	s.loadedByUs = true
	go s.follow()
	return s, nil
}

// forever is what Ollama understands by a negative keep-alive. Our own server ends with the model anyway.
const forever = -1 * time.Second

func (e *Engine) find(env []string) (string, error) {
	if !child.Manages {
		return "", &lifecycle.StartError{
			Cause: lifecycle.NotInstalled, Reason: "no Ollama is running, and localllm starts none on this system yet", Hints: []string{"start Ollama"},
		}
	}
	if e.options.Binary != "" {
		return e.options.Binary, nil
	}
	binary, _, err := program.Find(lifecycle.Ollama, env)
	if err != nil {
		return "", &lifecycle.StartError{
			Cause:  lifecycle.NotInstalled,
			Reason: fmt.Sprintf("Ollama is neither running nor installed: %v", err),
			Hints:  []string{"install it with `localllm setup --engine ollama`", "or name its binary in " + program.OllamaVariable},
			Err:    err,
		}
	}
	return binary, nil
}

// bring waits for the server, then loads the model under the watch of what moves.
func (s *server) bring(ctx context.Context, stall time.Duration, report func(lifecycle.Progress)) error {
	began := time.Now()
	watched, end := s.child.Watch(ctx, stall, func(resident int64) {
		p := s.said.progress()
		p.Seconds = int(time.Since(began).Seconds())
		if size := s.size.Load(); size > 0 && p.Phase == "loading" {
			p.Done, p.Total, p.Unit = min(resident, size), size, "bytes"
		}
		report(p)
	})
	defer end()
	err := s.await(watched)
	if err == nil {
		s.said.enter("loading")
		err = s.load(watched, forever, 0)
	}
	if err != nil {
		return s.child.Cause(watched, err)
	}
	return nil
}

// await polls until our child says that it listens, and what answers there is an Ollama.
func (s *server) await(ctx context.Context) error {
	pause := 2 * time.Millisecond
	for {
		listening, taken := s.said.port()
		if taken {
			return errPortTaken
		}
		if listening {
			var answer struct {
				Version string `json:"version"`
			}
			if err := loopback.JSON(ctx, s.http, s.url+"/api/version", "", nil, &answer); err == nil {
				s.endpoint.Version = answer.Version
				if answer.Version == "" {
					return fmt.Errorf("another program answers at %s: %w", s.url, errPortTaken)
				}
				return tooOld(answer.Version)
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

// dropped are variables of the enabling client that our own server must not get: they are ours to set, or they
// would open it to others or hand its work elsewhere.
var dropped = map[string]bool{
	"OLLAMA_HOST": true, "OLLAMA_ORIGINS": true, "OLLAMA_REMOTES": true, "OLLAMA_AUTH": true, "OLLAMA_DEBUG": true,
	"OLLAMA_DEBUG_LOG_REQUESTS": true, "OLLAMA_KEEP_ALIVE": true, "OLLAMA_NUM_PARALLEL": true, "OLLAMA_MAX_LOADED_MODELS": true,
	"OLLAMA_CONTEXT_LENGTH": true, "OLLAMA_NOPRUNE": true, "OLLAMA_LOAD_TIMEOUT": true, "OLLAMA_NO_CLOUD": true,
	"OLLAMA_KV_CACHE_TYPE": true,
}

// environment keeps the user's model store and his settings for the hardware.
func environment(spec lifecycle.Spec, port int, base []string) []string {
	var env []string
	for _, entry := range base {
		name, _, _ := strings.Cut(entry, "=")
		if !dropped[name] && !strings.HasPrefix(name, "LLAMA_ARG_") && name != "LLAMA_API_KEY" {
			env = append(env, entry)
		}
	}
	set := func(name, value string) { env = append(env, name+"="+value) }
	set("OLLAMA_HOST", "127.0.0.1:"+strconv.Itoa(port))
	set("OLLAMA_NOPRUNE", "1") // its start would otherwise delete blobs that another server is just pulling
	set("OLLAMA_NUM_PARALLEL", strconv.Itoa(max(spec.Slots, 1)))
	set("OLLAMA_MAX_LOADED_MODELS", "1")
	set("OLLAMA_CONTEXT_LENGTH", strconv.Itoa(spec.Context))
	set("OLLAMA_KEEP_ALIVE", "-1")
	set("OLLAMA_NO_CLOUD", "1")
	if kv := spec.KVType; kv != "" && kv != "f16" {
		set("OLLAMA_KV_CACHE_TYPE", kv)
		set("OLLAMA_FLASH_ATTENTION", "1") // a quantised V cache needs it
	}
	if len(spec.Devices) > 0 {
		set("CUDA_VISIBLE_DEVICES", strings.Join(spec.Devices, ","))
	}
	if program.Lookup(env, "HOME") == "" { // it does not start without
		if home, err := paths.UserHome(); err == nil {
			set("HOME", home)
		}
	}
	return env
}

// said is what our server has told in its log.
type said struct {
	mu        sync.Mutex
	listening bool
	taken     bool
	phase     string
	errors    []string
}

var (
	listenLine = regexp.MustCompile(`Listening on 127\.0\.0\.1:\d+`)                // server/routes.go
	takenLine  = regexp.MustCompile(`listen tcp \S+ bind: |address already in use`) // net.Listen, printed by cmd/cmd.go
	// Its own warnings are about what it could do without; its runner's lines have no level.
	troubled = regexp.MustCompile(`level=ERROR|^Error: |^(?:[^t]|t[^i])(?i:.*\b(error|failed|unable|out of memory|cannot allocate|bad_alloc)\b)`)
)

func (s *said) line(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case listenLine.MatchString(text):
		s.listening = true
	case takenLine.MatchString(text):
		s.taken = true
	}
	if troubled.MatchString(text) {
		if len(s.errors) > 100 {
			s.errors = s.errors[50:]
		}
		s.errors = append(s.errors, text[:min(len(text), 500)])
	}
}

func (s *said) enter(phase string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase = phase
}

func (s *said) port() (listening, taken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listening, s.taken
}

func (s *said) progress() lifecycle.Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	phase := s.phase
	if phase == "" {
		phase = "starting"
	}
	return lifecycle.Progress{Phase: phase}
}

func (s *said) troubles() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.errors...)
}
