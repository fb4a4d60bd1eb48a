// Package llamaserver starts llama.cpp's server for one model and talks to it. It never uses a server that it did
// not start, and never lets anything but its own key holders in.
package llamaserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"localllm/internal/engine/child"
	"localllm/internal/engine/loopback"
	"localllm/internal/engine/program"
	"localllm/internal/proc"
	"localllm/lifecycle"
)

// Options change how the engine is started. The zero value is right for users.
type Options struct {
	Binary   string        // instead of looking for one
	Stall    time.Duration // give up when nothing moved for so long; 0: two minutes
	Grace    time.Duration // between TERM and KILL at the end; 0: 1.5 s
	CacheRAM int           // MiB of host memory for prompts of idle slots; 0: 1024, negative: none

	// Header reads what a GGUF file says about itself; nil: the engine's own words are used.
	Header func(path string) (Header, error)
	// Port picks the port to listen on; nil: a free one. For tests.
	Port func() (int, error)
}

// Header is what matters here of a model file.
type Header struct {
	Architecture string
	Context      int  // the model's limit in tokens; 0: unknown
	Rewinds      bool // its cache can be cut back to any token: neither recurrent layers nor a sliding window
}

// Engine starts llama-server.
type Engine struct{ options Options }

var _ lifecycle.Engine = (*Engine)(nil)

// New is an engine that starts llama-server by these options.
func New(o Options) *Engine {
	if o.Stall == 0 {
		o.Stall = 2 * time.Minute
	}
	if o.Grace == 0 {
		o.Grace = 1500 * time.Millisecond
	}
	switch {
	case o.CacheRAM == 0:
		o.CacheRAM = 1024
	case o.CacheRAM < 0:
		o.CacheRAM = 0
	}
	if o.Port == nil {
		o.Port = child.FreePort
	}
	return &Engine{options: o}
}

// attempts at finding a port that nobody takes between our look and the child's bind.
const attempts = 3

// Start implements lifecycle.Engine.
func (e *Engine) Start(ctx context.Context, spec lifecycle.Spec, host lifecycle.Host) (lifecycle.Server, error) {
	if !child.Manages {
		return nil, unmanaged()
	}
	binary, err := e.find(host.Env)
	if err != nil {
		return nil, err
	}
	model, err := e.resolve(spec)
	if err != nil {
		return nil, err
	}
	if model.header.Context > 0 && spec.Context > model.header.Context {
		return nil, contextOverLimit(spec.Context, model.header.Context)
	}
	for attempt := 1; ; attempt++ {
		server, err := e.launch(ctx, binary, model, spec, host)
		if err == nil {
			return server, nil
		}
		if !errors.Is(err, errPortTaken) {
			return nil, err
		}
		if attempt == attempts {
			return nil, &lifecycle.StartError{Cause: lifecycle.Crashed, Reason: fmt.Sprintf("llama-server found no port of its own: %v", err), Err: err}
		}
	}
}

// unmanaged says what is not built yet.
func unmanaged() error {
	return &lifecycle.StartError{
		Cause: lifecycle.NotInstalled, Reason: "localllm starts no engine on this system yet: it uses an Ollama that is running",
		Hints: []string{"start Ollama, and enable with the engine ollama"},
	}
}

func (e *Engine) find(env []string) (string, error) {
	if e.options.Binary != "" {
		return e.options.Binary, nil
	}
	binary, _, err := program.Find(lifecycle.LlamaServer, env)
	if err != nil {
		return "", &lifecycle.StartError{
			Cause:  lifecycle.NotInstalled,
			Reason: fmt.Sprintf("llama-server is not there: %v", err),
			Hints:  []string{"install it with `localllm setup --engine llama-server`", "or name its binary in " + program.LlamaServerVariable},
			Err:    err,
		}
	}
	return binary, nil
}

// launch starts one process and waits until it is ready. On an error nothing of it is left.
func (e *Engine) launch(ctx context.Context, binary string, model model, spec lifecycle.Spec, host lifecycle.Host) (_ lifecycle.Server, err error) {
	port, err := e.options.Port()
	if err != nil {
		return nil, err
	}
	files, err := newFiles(host.Dir)
	if err != nil {
		return nil, noDisk("preparing the engine's private folder", err)
	}
	s := &server{
		spec: spec, files: files, said: newSaid(host.Report),
		url:  "http://127.0.0.1:" + strconv.Itoa(port),
		http: loopback.Client(), done: make(chan struct{}), logPath: host.LogPath,
	}
	s.said.total = model.size
	defer func() {
		if err != nil {
			s.http.CloseIdleConnections()
			files.remove()
		}
	}()
	s.child, err = child.Start(child.Options{
		Path: binary, Args: arguments(model, spec, port, files), Env: e.environment(model, spec, host.Env),
		Grace: e.options.Grace, Host: host, Line: s.said.line,
	})
	if err != nil {
		return nil, cannotRun(binary, err)
	}
	if err := s.load(ctx, e.options.Stall, model); err != nil {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*e.options.Grace)
		defer cancel()
		s.child.Stop(stop)
		return nil, s.explain(ctx, err, model)
	}
	go s.follow()
	return s, nil
}

func cannotRun(binary string, err error) error {
	cause := lifecycle.NotInstalled
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return &lifecycle.StartError{Cause: cause, Reason: fmt.Sprintf("%s can't be run: %v", binary, errors.Unwrap(err)), Err: err,
			Hints: []string{"install it with `localllm setup --engine llama-server`"}}
	}
	return err
}

func noDisk(doing string, err error) error {
	return &lifecycle.StartError{
		Cause: lifecycle.NoDisk, Reason: fmt.Sprintf("%s: %v", doing, err), Err: err,
		Hints: []string{"make room, or make the folder writable, and try again"},
	}
}

// files are one run's private files.
type files struct {
	key   string // path of the file with the API key
	slots string // folder of saved slot states
	text  string // the key itself
}

func newFiles(dir string) (files, error) {
	f := files{key: filepath.Join(dir, "llama-server.key"), slots: slotFolder(filepath.Join(dir, "llama-server.key")), text: proc.NewNonce() + proc.NewNonce()}
	if err := os.MkdirAll(f.slots, 0o700); err != nil {
		return f, err
	}
	_ = os.Remove(f.key) // a link of that name is not followed, and an older mode not kept
	w, err := os.OpenFile(f.key, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return f, err
	}
	_, err = w.WriteString(f.text + "\n")
	return f, errors.Join(err, w.Close())
}

func (f files) remove() {
	_ = os.Remove(f.key)
	_ = os.RemoveAll(f.slots)
}

// slotFolder is where the server of a key file saves its slots.
func slotFolder(keyFile string) string { return filepath.Join(filepath.Dir(keyFile), "slots") }
