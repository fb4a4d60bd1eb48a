package survey

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/ollama/ollama/api"

	"localllm/capability"
	"localllm/internal/engine/loopback"
)

const (
	ollamaPort = "11434"
	// A server on this machine answers within milliseconds or is not there.
	localLimit, remoteLimit = 400 * time.Millisecond, 1500 * time.Millisecond
	listLimit               = 2 * time.Second
	showLimit               = 2 * time.Second // for all models together
	showAtOnce              = 4
	answerLimit             = 32 << 20
)

// ollamaFound is what was found of Ollama.
type ollamaFound struct {
	info   capability.EngineInfo
	listed []api.ListModelResponse // nil where it does not run
	loaded map[string]held
	client *api.Client
	local  bool // it runs on this machine
}

// ollamaURL is where Ollama is to be found: OLLAMA_HOST as Ollama itself understands it, or the default.
func ollamaURL(host string) *url.URL {
	host = strings.Trim(strings.TrimSpace(host), `"'`)
	scheme, rest, ok := strings.Cut(host, "://")
	if !ok {
		scheme, rest = "http", host
	}
	rest, path, _ := strings.Cut(rest, "/")
	name, port, err := net.SplitHostPort(rest)
	if err != nil {
		name, port = strings.Trim(rest, "[]"), ollamaPort
		if ok {
			port = map[string]string{"http": "80", "https": "443"}[scheme]
		}
	}
	if port == "" {
		port = ollamaPort
	}
	// What a server listens on is no address to call.
	if ip := net.ParseIP(name); name == "" || ip != nil && ip.IsUnspecified() {
		name = "127.0.0.1"
	}
	return &url.URL{Scheme: scheme, Host: net.JoinHostPort(name, port), Path: strings.TrimSuffix(path, "/")}
}

// ollama asks whether Ollama runs, and which models it has.
func (s *Surveyor) ollama(ctx context.Context, c *cache) ollamaFound {
	named := s.Env("OLLAMA_HOST")
	base := ollamaURL(named)
	found := ollamaFound{local: loopback.Here(base.Hostname())}
	found.info = capability.EngineInfo{Name: capability.Ollama, State: capability.Missing, URL: base.String()}
	found.info.Path = s.program("LOCALLLM_OLLAMA", "ollama")
	limit := localLimit
	if !found.local {
		limit = remoteLimit
	}
	transport := &http.Transport{DialContext: (&net.Dialer{Timeout: limit}).DialContext, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	found.client = api.NewClient(base, &http.Client{Transport: limitAnswers{transport}})
	asked, cancel := context.WithTimeout(ctx, limit)
	version, err := found.client.Version(asked)
	cancel()
	if err == nil {
		found.info.State, found.info.Version = capability.Running, version
		asked, cancel := context.WithTimeout(ctx, listLimit)
		defer cancel()
		list, err := found.client.List(asked)
		if err != nil {
			found.info.Detail = "it runs and does not list its models: " + err.Error()
			return found
		}
		found.listed = orEmpty(list.Models)
		found.loaded = found.holding(asked)
		return found
	}
	switch {
	case found.info.Path != "" && found.local:
		found.info.State = capability.Installed
		found.info.Version = s.version(ctx, c, found.info.Path)
	case named != "":
		found.info.State = capability.Unreachable
		found.info.Detail = "OLLAMA_HOST names it, and it does not answer"
	}
	if path := s.Env("LOCALLLM_OLLAMA"); path != "" && found.info.Path == "" {
		found.info.Detail = "LOCALLLM_OLLAMA names " + path + ", which is no program"
	}
	return found
}

// held is what a loaded model takes.
type held struct{ gpu, host int64 }

// holding asks which models are loaded. A server that does not say is taken to hold none.
func (f ollamaFound) holding(ctx context.Context) map[string]held {
	list, err := f.client.ListRunning(ctx)
	if err != nil {
		return nil
	}
	out := map[string]held{}
	for _, m := range list.Models {
		gpu := max(0, min(m.SizeVRAM, m.Size))
		out[m.Name] = held{gpu: gpu, host: max(0, m.Size-gpu)}
	}
	return out
}

// shapes asks Ollama itself about models whose files can't be read from here, within one time limit for all.
func (f ollamaFound) shapes(ctx context.Context, names []string) map[string]capability.Shape {
	ctx, cancel := context.WithTimeout(ctx, showLimit)
	defer cancel()
	var (
		mu    sync.Mutex
		group sync.WaitGroup
		out   = map[string]capability.Shape{}
		turn  = make(chan struct{}, showAtOnce)
	)
	for _, name := range names {
		group.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			answer, err := f.client.Show(ctx, &api.ShowRequest{Model: name})
			if err != nil {
				return
			}
			shape, err := capability.ShapeOf(modelInfo(answer.ModelInfo), nil)
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			out[name] = shape
		})
	}
	group.Wait()
	return out
}

// modelInfo reads the answer of /api/show, where numbers have become floats and long lists are left out.
type modelInfo map[string]any

func (m modelInfo) Number(key string) (int64, bool) {
	switch v := m[key].(type) {
	case float64:
		return int64(v), true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

func (m modelInfo) Numbers(key string) ([]int64, bool) {
	list, ok := m[key].([]any)
	if !ok || len(list) == 0 {
		return nil, false
	}
	out := make([]int64, len(list))
	for i, v := range list {
		n, ok := modelInfo{"": v}.Number("")
		if !ok {
			return nil, false
		}
		out[i] = n
	}
	return out, true
}

func (m modelInfo) Text(key string) (string, bool) {
	s, ok := m[key].(string)
	return s, ok
}

func (m modelInfo) Count(key string) (int64, bool) {
	list, ok := m[key].([]any)
	return int64(len(list)), ok
}

// limitAnswers refuses to read an endless answer.
type limitAnswers struct{ next http.RoundTripper }

func (l limitAnswers) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := l.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if res.ContentLength > answerLimit {
		_ = res.Body.Close()
		return nil, fmt.Errorf("an answer of %d bytes", res.ContentLength)
	}
	res.Body = http.MaxBytesReader(nil, res.Body, answerLimit)
	return res, nil
}
