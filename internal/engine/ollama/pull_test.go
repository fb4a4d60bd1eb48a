//go:build unix

package ollama

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
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

// registry serves a store's practice model in the form that Ollama pulls.
type registry struct {
	*httptest.Server
	manifest []byte
	blobs    string
	data     string       // where the blobs are
	hold     atomic.Int64 // bytes of a large blob after which the line stands still; 0: never
	served   atomic.Int64
	held     chan struct{}
	once     sync.Once
}

func newRegistry(t *testing.T) *registry {
	t.Helper()
	folder := store(t)
	var manifest []byte
	_ = filepath.WalkDir(filepath.Join(folder, "manifests"), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(path, "practice") {
			manifest, _ = os.ReadFile(path)
		}
		return nil
	})
	if manifest == nil {
		t.Fatal("the store has no manifest")
	}
	r := &registry{manifest: manifest, blobs: filepath.Join(folder, "blobs"), held: make(chan struct{})}
	// Ollama wants the blobs at another host's address.
	data := httptest.NewServer(http.HandlerFunc(r.answer))
	t.Cleanup(data.Close)
	r.data = strings.Replace(data.URL, "127.0.0.1", "localhost", 1)
	r.Server = httptest.NewTLSServer(http.HandlerFunc(r.answer))
	t.Cleanup(r.Close)
	return r
}

func (r *registry) answer(w http.ResponseWriter, req *http.Request) {
	if strings.Contains(req.URL.Path, "/manifests/") {
		if !strings.HasSuffix(req.URL.Path, "/practice/manifests/latest") {
			http.Error(w, `{"errors":[{"code":"MANIFEST_UNKNOWN"}]}`, http.StatusNotFound)
			return
		}
		_, _ = w.Write(r.manifest)
		return
	}
	digest := req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:]
	if strings.Contains(req.URL.Path, "/blobs/") && req.Method == http.MethodGet {
		http.Redirect(w, req, r.data+"/data/"+digest, http.StatusTemporaryRedirect)
		return
	}
	f, err := os.Open(filepath.Join(r.blobs, strings.Replace(digest, ":", "-", 1)))
	if err != nil {
		http.NotFound(w, req)
		return
	}
	defer f.Close()
	info, _ := f.Stat()
	hold := r.hold.Load()
	if hold == 0 || info.Size() < hold || req.Method == http.MethodHead {
		http.ServeContent(&counting{w, &r.served, 0, nil}, req, "", info.ModTime(), f)
		return
	}
	http.ServeContent(&counting{w, &r.served, hold, func() {
		w.(http.Flusher).Flush()
		r.once.Do(func() { close(r.held) })
		<-req.Context().Done()
	}}, req, "", info.ModTime(), f)
}

type counting struct {
	http.ResponseWriter
	served *atomic.Int64
	hold   int64
	stand  func()
}

func (c *counting) Write(b []byte) (int, error) {
	if c.stand != nil && c.hold < int64(len(b)) {
		c.stand()
		return 0, errors.New("the line stood still")
	}
	c.hold -= int64(len(b))
	n, err := c.ResponseWriter.Write(b)
	c.served.Add(int64(n))
	return n, err
}

func (r *registry) env(t *testing.T, folder string) []string {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})
	if err := os.WriteFile(ca, block, 0o600); err != nil {
		t.Fatal(err)
	}
	return environ(t, folder, "SSL_CERT_FILE="+ca, "NO_PROXY=127.0.0.1,localhost")
}

func (r *registry) model(name string) string {
	u, _ := url.Parse(r.URL)
	return u.Host + "/library/" + name
}

func TestPullCancelledAndResumed(t *testing.T) {
	r := newRegistry(t)
	folder := filepath.Join(t.TempDir(), "models")
	env := r.env(t, folder)
	e := New(Options{Binary: harness.Engines(t).Ollama})
	var mu sync.Mutex
	var last lifecycle.Progress
	reported := make(chan struct{}) // closed when half of what comes before the line stands still has been told
	half := sync.OnceFunc(func() { close(reported) })
	host := func() lifecycle.Host {
		return lifecycle.Host{Dir: t.TempDir(), LogPath: filepath.Join(t.TempDir(), "log"), Nonce: proc.NewNonce(), Env: env, Report: func(p lifecycle.Progress) {
			mu.Lock()
			defer mu.Unlock()
			if p.Total > 0 {
				last = p
			}
			if p.Done >= 4<<20 {
				half()
			}
		}}
	}
	r.hold.Store(8 << 20)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		<-r.held
		<-reported
		cancel()
	}()
	h := host()
	if err := e.Pull(ctx, r.model("practice"), h); !errors.Is(err, context.Canceled) {
		t.Fatalf("Pull = %v, after %d bytes", err, r.served.Load())
	}
	if left := proc.Marked(h.Nonce); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	first := r.served.Swap(0)
	r.hold.Store(0)
	if err := e.Pull(t.Context(), r.model("practice"), host()); err != nil {
		t.Fatal(err)
	}
	second := r.served.Load()
	if first < 1<<20 || second > last.Total-first/2 {
		t.Errorf("%d bytes came before the cancel and %d after it, of %d", first, second, last.Total)
	}
	if last.Done < 4<<20 || last.Done > last.Total || last.Unit != "bytes" || last.Phase != "downloading" {
		t.Errorf("last progress %+v", last)
	}
	want := spec
	want.Model = r.model("practice")
	server, err := e.Start(t.Context(), want, host())
	if err != nil {
		t.Fatal(err)
	}
	_, _ = server.Stop(context.Background())
}

func TestPullOfNothing(t *testing.T) {
	r := newRegistry(t)
	h := lifecycle.Host{Dir: t.TempDir(), Nonce: proc.NewNonce(), Env: r.env(t, t.TempDir()), Report: func(lifecycle.Progress) {}}
	err := New(Options{Binary: harness.Engines(t).Ollama}).Pull(t.Context(), r.model("nothing"), h)
	var start *lifecycle.StartError
	if !errors.As(err, &start) || start.Cause != lifecycle.NoSuchModel || len(start.Hints) == 0 {
		t.Errorf("Pull = %v", err)
	}
	gone := fmt.Sprintf("127.0.0.1:%d/library/practice", harness.FreePort(t))
	err = New(Options{Binary: harness.Engines(t).Ollama}).Pull(t.Context(), gone, h)
	if !errors.As(err, &start) || !strings.Contains(start.Reason, "registry") {
		t.Errorf("Pull = %v", err)
	}
}
