// Package ollama uses a running Ollama, or starts one of our own with the user's models. It never stops a server
// that it found, and never unloads a model that it did not load.
package ollama

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ollama/ollama/api"

	"localllm/internal/engine/child"
	"localllm/internal/engine/loopback"
	"localllm/internal/engine/program"
	"localllm/lifecycle"
)

// Options change how the engine is used. The zero value is right for users.
type Options struct {
	Binary    string        // instead of looking for one
	Stall     time.Duration // give up when nothing moved for so long; 0: two minutes
	Grace     time.Duration // between TERM and KILL of a server of ours; 0: 1.5 s
	KeepAlive time.Duration // of a model on a server that we found; 0: two minutes

	// Free is how much memory a model to come may take, 0 where that is unknown. It is asked before a load on a
	// server that holds models of others; nil: unknown.
	Free func(ctx context.Context, spec lifecycle.Spec) uint64
	// Port picks the port of a server of ours; nil: a free one. For tests.
	Port func() (int, error)
}

// Engine finds or starts Ollama.
type Engine struct{ options Options }

var _ lifecycle.Engine = (*Engine)(nil)

// New is an engine by these options.
func New(o Options) *Engine {
	if o.Stall == 0 {
		o.Stall = 2 * time.Minute
	}
	if o.Grace == 0 {
		o.Grace = 1500 * time.Millisecond
	}
	if o.KeepAlive == 0 {
		o.KeepAlive = 2 * time.Minute
	}
	if o.Port == nil {
		o.Port = child.FreePort
	}
	return &Engine{options: o}
}

const attempts = 3

// Start implements lifecycle.Engine: a running server is adopted, else one of ours is started.
func (e *Engine) Start(ctx context.Context, spec lifecycle.Spec, host lifecycle.Host) (lifecycle.Server, error) {
	found, err := Find(ctx, host.Env)
	if err != nil {
		return nil, err
	}
	if found != nil {
		return e.adopt(ctx, *found, spec, host)
	}
	for attempt := 1; ; attempt++ {
		server, err := e.launch(ctx, spec, host)
		if err == nil {
			return server, nil
		}
		if !errors.Is(err, errPortTaken) {
			return nil, err
		}
		if attempt == attempts {
			return nil, &lifecycle.StartError{Cause: lifecycle.Crashed, Reason: fmt.Sprintf("Ollama found no port of its own: %v", err), Err: err}
		}
	}
}

// Found is a running Ollama.
type Found struct {
	URL     string
	Version string
}

// oldest is the release that has all we send: truncate and shift on the chat route.
var oldest = [3]int{0, 13, 0}

// Find looks for a running Ollama where OLLAMA_HOST says, or at its default address. It is nil where none answers;
// what answers but is no Ollama counts as none.
func Find(ctx context.Context, env []string) (*Found, error) {
	address, err := Address(program.Lookup(env, "OLLAMA_HOST"))
	if err != nil {
		return nil, err
	}
	client := loopback.Client()
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var answer struct {
		Version string `json:"version"`
	}
	if err := loopback.JSON(ctx, client, address+"/api/version", "", nil, &answer); err != nil || answer.Version == "" {
		return nil, nil
	}
	return &Found{URL: address, Version: answer.Version}, nil
}

// Address turns OLLAMA_HOST into a URL on this machine, by Ollama's own rules.
func Address(text string) (string, error) {
	text = strings.Trim(strings.TrimSpace(text), `"'`)
	scheme, rest, ok := strings.Cut(text, "://")
	port := "11434"
	switch {
	case !ok:
		scheme, rest = "http", text
	case scheme == "http":
		port = "80"
	case scheme == "https":
		port = "443"
	}
	rest, path, _ := strings.Cut(rest, "/")
	host := rest
	if h, p, err := net.SplitHostPort(rest); err == nil {
		host = h
		if p != "" {
			port = p
		}
	}
	host = strings.Trim(host, "[]")
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = "127.0.0.1" // a server's listening address, not one to call
	}
	if !loopback.Here(host) {
		return "", &lifecycle.StartError{
			Cause: lifecycle.BadOption, Reason: fmt.Sprintf("OLLAMA_HOST names %s, which is not this machine", host), Err: loopback.ErrElsewhere,
			Hints: []string{"unset OLLAMA_HOST for localllm", "or make a profile for the other machine (localllm profiles init)"},
		}
	}
	u := url.URL{Scheme: scheme, Host: net.JoinHostPort(host, port), Path: strings.TrimSuffix("/"+path, "/")}
	return u.String(), nil
}

func tooOld(version string) error {
	var v [3]int
	if n, _ := fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d.%d", &v[0], &v[1], &v[2]); n < 2 || v == [3]int{} {
		return nil // a build of somebody's own
	}
	for i := range v {
		if v[i] != oldest[i] {
			if v[i] > oldest[i] {
				return nil
			}
			return &lifecycle.StartError{
				Cause: lifecycle.TooOld, Reason: fmt.Sprintf("Ollama %s is too old: localllm needs %d.%d or later", version, oldest[0], oldest[1]),
				Hints: []string{"update Ollama, or use `localllm setup --engine ollama`"},
			}
		}
	}
	return nil
}

func client(address string, h *http.Client) (*api.Client, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	return api.NewClient(u, h), nil
}
