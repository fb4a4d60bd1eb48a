//go:build unix

package llamaserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"localllm/internal/proc"
	"localllm/lifecycle"
	"localllm/test/harness"
)

// hub answers as the model hub does, with one file.
type hub struct {
	*httptest.Server
	file   string
	hold   atomic.Int64 // bytes after which the line stands still; 0: never
	served atomic.Int64
	held   chan struct{}
	once   sync.Once
}

func newHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{file: modelPath(t), held: make(chan struct{})}
	commit, oid := strings.Repeat("a", 40), strings.Repeat("c", 64)
	info, err := os.Stat(h.file)
	if err != nil {
		t.Fatal(err)
	}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.Contains(r.URL.Path, "me/practice-GGUF"):
			http.NotFound(w, r)
		case strings.HasSuffix(r.URL.Path, "/refs"):
			_ = json.NewEncoder(w).Encode(map[string]any{"branches": []any{map[string]any{"name": "main", "ref": "refs/heads/main", "targetCommit": commit}}})
		case strings.Contains(r.URL.Path, "/tree/"):
			_ = json.NewEncoder(w).Encode([]any{map[string]any{"type": "file", "path": "practice-Q4_K_M.gguf", "size": info.Size(), "oid": commit, "lfs": map[string]any{"oid": oid, "size": info.Size()}}})
		case strings.Contains(r.URL.Path, "/resolve/"):
			f, err := os.Open(h.file)
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			w.Header().Set("ETag", `"`+oid+`"`)
			http.ServeContent(&slow{ResponseWriter: w, hub: h, request: r}, r, "", info.ModTime(), f)
		default:
			_, _ = w.Write([]byte("{}"))
		}
	}))
	t.Cleanup(h.Close)
	return h
}

type slow struct {
	http.ResponseWriter
	hub     *hub
	request *http.Request
	sent    int64
}

func (s *slow) Write(b []byte) (int, error) {
	if hold := s.hub.hold.Load(); hold > 0 && s.sent+int64(len(b)) > hold {
		s.ResponseWriter.(http.Flusher).Flush()
		s.hub.once.Do(func() { close(s.hub.held) })
		<-s.request.Context().Done()
		return 0, errors.New("the line stood still")
	}
	n, err := s.ResponseWriter.Write(b)
	s.sent += int64(n)
	s.hub.served.Add(int64(n))
	return n, err
}

func TestDownloadCancelledResumedAndLoaded(t *testing.T) {
	h := newHub(t)
	home := t.TempDir()
	env := environ(t, "HF_ENDPOINT="+h.URL, "HF_HOME="+home, "NO_PROXY=127.0.0.1")
	e := New(Options{Binary: harness.Engines(t).LlamaServer})
	reported := make(chan struct{}) // closed when half of what comes before the line stands still has been told
	half := sync.OnceFunc(func() { close(reported) })
	host := func() lifecycle.Host {
		return lifecycle.Host{Dir: t.TempDir(), LogPath: filepath.Join(t.TempDir(), "log"), Nonce: proc.NewNonce(), Env: env, Report: func(p lifecycle.Progress) {
			if p.Phase == "downloading" && p.Done >= 4<<20 {
				half()
			}
		}}
	}
	const reference = "me/practice-GGUF"
	spec := lifecycle.Spec{Engine: lifecycle.LlamaServer, Model: reference, Context: 4096, Slots: 1}
	var start *lifecycle.StartError
	if _, err := e.Start(t.Context(), spec, host()); !errors.As(err, &start) || start.Cause != lifecycle.NoSuchModel || h.served.Load() > 0 {
		t.Fatalf("Start without a pull = %v, after %d bytes", err, h.served.Load())
	}
	h.hold.Store(8 << 20)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		<-h.held
		<-reported
		cancel()
	}()
	one := host()
	if err := e.Pull(ctx, reference, one); !errors.Is(err, context.Canceled) {
		t.Fatalf("Pull = %v, after %d bytes", err, h.served.Load())
	}
	if left := proc.Marked(one.Nonce); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	h.hold.Store(0)
	first := h.served.Swap(0)
	if err := e.Pull(t.Context(), reference, host()); err != nil {
		t.Fatal(err)
	}
	info, _ := os.Stat(h.file)
	if second := h.served.Load(); second > info.Size()-first/2 {
		t.Errorf("%d bytes before the cancel and %d after it, of %d", first, second, info.Size())
	}
	server, err := e.Start(t.Context(), spec, host())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := server.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestDownloadOfNothing(t *testing.T) {
	h := newHub(t)
	for what, env := range map[string][]string{
		"no such model": {"HF_ENDPOINT=" + h.URL},
		"no hub":        {fmt.Sprintf("HF_ENDPOINT=http://127.0.0.1:%d", harness.FreePort(t))},
	} {
		host := lifecycle.Host{Dir: t.TempDir(), Nonce: proc.NewNonce(), Env: environ(t, append(env, "HF_HOME="+t.TempDir())...), Report: func(lifecycle.Progress) {}}
		err := New(Options{Binary: harness.Engines(t).LlamaServer}).Pull(t.Context(), "me/nothing-GGUF", host)
		var start *lifecycle.StartError
		if !errors.As(err, &start) || start.Cause != lifecycle.NoSuchModel || len(start.Hints) == 0 {
			t.Errorf("%s: Pull = %v", what, err)
		}
		if left := proc.Marked(host.Nonce); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}
