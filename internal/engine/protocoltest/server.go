// Package protocoltest plays recorded exchanges and broken servers on loopback, and holds the backends of both formats
// to one behaviour. It is for tests only and talks to no real server.
package protocoltest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server answers each request with the next step of its script, the last one again and again.
type Server struct {
	URL string

	mu       sync.Mutex
	steps    []Step
	requests []Seen
	ended    chan struct{}
}

// Step is one answer.
type Step func(w http.ResponseWriter, r *http.Request)

// Seen is one request as it arrived.
type Seen struct {
	Method, Path string
	Header       http.Header
	Body         map[string]any
	Raw          string
	At           time.Time
}

// Serve starts a server for the test.
func Serve(t *testing.T, steps ...Step) *Server {
	t.Helper()
	s := &Server{steps: steps, ended: make(chan struct{}, 64)}
	h := httptest.NewServer(http.HandlerFunc(s.handle))
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	s.URL = h.URL
	return s
}

func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	seen := Seen{Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Raw: string(raw), At: time.Now()}
	_ = json.Unmarshal(raw, &seen.Body)
	s.mu.Lock()
	step := s.steps[min(len(s.requests), len(s.steps)-1)]
	s.requests = append(s.requests, seen)
	s.mu.Unlock()
	step(w, r)
	s.ended <- struct{}{}
}

// Requests are those that came so far.
func (s *Server) Requests() []Seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Seen(nil), s.requests...)
}

// Last is the newest request.
func (s *Server) Last(t *testing.T) Seen {
	t.Helper()
	all := s.Requests()
	if len(all) == 0 {
		t.Fatal("no request came")
	}
	return all[len(all)-1]
}

// Ended waits until the server is done with a request: its client is gone, or has its answer.
func (s *Server) Ended(t *testing.T) {
	t.Helper()
	select {
	case <-s.ended:
	case <-time.After(10 * time.Second):
		t.Fatal("the server still answers: the request was not ended")
	}
}

// File is a recorded answer of the package under test: NAME.sse is a stream, NAME.json one piece.
func File(t *testing.T, name string) Step {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	kind := "application/json"
	if strings.HasSuffix(name, ".sse") {
		kind = "text/event-stream; charset=utf-8"
	}
	return Answer(200, kind, string(data))
}

// Seeds gives a fuzz target recorded answers of the package under test.
func Seeds(f *testing.F, names ...string) {
	f.Helper()
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
}

// Answer is any answer. headers are pairs.
func Answer(status int, contentType, body string, headers ...string) Step {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Then sends the first n events of a recorded stream, and goes on with what follows.
func Then(t *testing.T, name string, events int, follow Step) Step {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.SplitAfterN(string(data), "\n\n", events+1)
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, strings.Join(parts[:min(events, len(parts))], ""))
		w.(http.Flusher).Flush()
		follow(w, r)
	}
}

// Silence says nothing more until the client goes.
func Silence(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// Dribble writes a little again and again until the client goes.
func Dribble(what string, every time.Duration) Step {
	return func(w http.ResponseWriter, r *http.Request) {
		if w.Header().Get("Content-Type") == "" {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		for {
			if _, err := io.WriteString(w, what); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-time.After(every):
			}
		}
	}
}

// Drop closes the connection without another word.
func Drop(w http.ResponseWriter, _ *http.Request) {
	if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
		_ = conn.Close()
	}
}
