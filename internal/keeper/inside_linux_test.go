package keeper

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"localllm/internal/session"
	"localllm/lifecycle"
)

// memoryEngine lives in the test's own process, so that the race detector and goleak see the keeper at work.
type memoryEngine struct {
	mu      sync.Mutex
	servers []*memoryServer
	fail    error
	wait    chan struct{} // a start waits for it, where it is there
	adopted bool
}

type memoryServer struct {
	spec    lifecycle.Spec
	adopted bool
	done    chan struct{}
	once    sync.Once
	stops   int
	mu      sync.Mutex
}

func (e *memoryEngine) Start(ctx context.Context, spec lifecycle.Spec, host lifecycle.Host) (lifecycle.Server, error) {
	host.Report(lifecycle.Progress{Phase: "loading"})
	if err := errors.Join(host.Record(0), host.Record(os.Getppid())); err != nil { // a process that is not ours
		return nil, err
	}
	e.mu.Lock()
	wait, fail := e.wait, e.fail
	e.mu.Unlock()
	if wait != nil {
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if fail != nil {
		return nil, fail
	}
	s := &memoryServer{spec: spec, adopted: e.adopted, done: make(chan struct{})}
	e.mu.Lock()
	e.servers = append(e.servers, s)
	e.mu.Unlock()
	return s, nil
}

func (e *memoryEngine) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.servers)
}

func (e *memoryEngine) last() *memoryServer {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.servers[len(e.servers)-1]
}

func (s *memoryServer) Endpoint() lifecycle.Endpoint {
	return lifecycle.Endpoint{Engine: s.spec.Engine, URL: "http://127.0.0.1:1", Model: s.spec.Model, Context: s.spec.Context, Owned: !s.adopted, Adopted: s.adopted}
}
func (s *memoryServer) Done() <-chan struct{}       { return s.done }
func (s *memoryServer) Err() error                  { return errors.New("it burst") }
func (s *memoryServer) Renew(context.Context) error { return nil }
func (s *memoryServer) Memory(context.Context) (lifecycle.Memory, error) {
	return lifecycle.Memory{TotalBytes: 100}, nil
}
func (s *memoryServer) crash() { s.once.Do(func() { close(s.done) }) }
func (s *memoryServer) Stop(context.Context) (lifecycle.Stopped, error) {
	s.mu.Lock()
	s.stops++
	s.mu.Unlock()
	s.crash()
	return lifecycle.Stopped{Process: !s.adopted, Model: true}, nil
}

// inside is a keeper in this process, and a session that is a sleeping process.
type inside struct {
	t      *testing.T
	f      folder
	engine *memoryEngine
	bound  session.Binding
	client *Client
	ended  chan error
	cancel context.CancelFunc
	loaded chan lifecycle.Measured
}

func startInside(t *testing.T, e *memoryEngine) *inside {
	t.Helper()
	goleak.VerifyNone(t)
	sleeper := exec.Command("sleep", "600")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	b, err := session.WhilePID(sleeper.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	in := &inside{t: t, f: testFolder(t), engine: e, bound: b, ended: make(chan error, 1), loaded: make(chan lifecycle.Measured, 16)}
	in.client = NewClient(ClientOptions{Layout: in.f.layout, Executable: "/nonexistent"})
	_, err = in.f.createLease(lifecycle.Lease{Kind: lifecycle.Bound, Who: b.Who, Client: process(b.Client)})
	if err != nil {
		t.Fatal(err)
	}
	if err := in.f.writeWanted(lifecycle.Wanted{Generation: 1, Choices: []lifecycle.Spec{{Engine: lifecycle.LlamaServer, Model: "m", Context: 8, Slots: 1, Need: 7}}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	in.cancel = cancel
	go func() { // ends with the keeper
		in.ended <- Run(ctx, Options{
			Layout: in.f.layout, Engines: map[string]lifecycle.Engine{lifecycle.LlamaServer: e}, Warden: []string{os.Args[0], "keeper", "--warden"},
			OnLoaded: func(_ lifecycle.Spec, m lifecycle.Measured) { in.loaded <- m },
		})
	}()
	t.Cleanup(func() {
		cancel()
		_ = sleeper.Process.Kill()
		_ = sleeper.Wait()
		goleak.VerifyNone(t)
	})
	return in
}

func (in *inside) until(what string, look func(lifecycle.Status) bool) lifecycle.Status {
	in.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		s, err := in.f.status()
		if err == nil && look(s) {
			return s
		}
		if time.Now().After(end) {
			in.t.Fatalf("never %s: %+v, %v", what, s, err)
		}
	}
}

func (in *inside) mustEnd() {
	in.t.Helper()
	select {
	case err := <-in.ended:
		if err != nil {
			in.t.Errorf("the keeper: %v", err)
		}
	case <-time.After(20 * time.Second):
		in.t.Fatal("the keeper does not end")
	}
	if s, err := in.f.status(); err != nil || s.State != lifecycle.Off || s.Keeper.PID != 0 {
		in.t.Errorf("the status: %+v, %v", s, err)
	}
	if _, err := os.Stat(in.f.recordPath()); err == nil {
		in.t.Error("the record is still there")
	}
}

func isReady(s lifecycle.Status) bool { return s.State == lifecycle.Ready }

func TestInsideReadyCrashDisable(t *testing.T) {
	in := startInside(t, &memoryEngine{})
	s := in.until("ready", isReady)
	if s.Memory.EstimatedBytes != 7 || s.Memory.EngineBytes != 100 || s.Warden.PID == 0 || s.LoadMS < 0 {
		t.Errorf("%+v", s)
	}
	if m := <-in.loaded; m.EngineBytes != 100 {
		t.Errorf("%+v", m)
	}
	in.engine.last().crash()
	s = in.until("ready again", func(s lifecycle.Status) bool { return isReady(s) && s.Restarts == 1 })
	if in.engine.count() != 2 || s.LastError != "it burst" {
		t.Errorf("%+v", s)
	}
	got, err := in.client.Disable(t.Context(), DisableRequest{Session: in.bound})
	if err != nil || !got.Stopped || got.Released != 100 {
		t.Errorf("%+v, %v", got, err)
	}
	in.mustEnd()
}

func TestInsideAdopted(t *testing.T) {
	in := startInside(t, &memoryEngine{adopted: true})
	in.until("ready", isReady)
	got, err := in.client.Disable(t.Context(), DisableRequest{Session: in.bound})
	if err != nil || got.Stopped || !got.Unloaded {
		t.Errorf("%+v, %v", got, err)
	}
	in.mustEnd()
}

func TestInsideToldToEnd(t *testing.T) {
	for name, e := range map[string]*memoryEngine{"ready": {}, "loading": {wait: make(chan struct{})}, "failed": {fail: errors.New("no")}} {
		t.Run(name, func(t *testing.T) {
			in := startInside(t, e)
			in.until(name, func(s lifecycle.Status) bool { return string(s.State) == name })
			in.cancel()
			in.mustEnd()
			if name == "ready" && e.last().stops == 0 {
				t.Error("the engine was not stopped")
			}
		})
	}
}

func TestInsideUnknownEngine(t *testing.T) {
	in := startInside(t, &memoryEngine{fail: &lifecycle.StartError{Cause: lifecycle.BadModel, Reason: "no GGUF", Hints: []string{"take another"}}})
	s := in.until("failed", func(s lifecycle.Status) bool { return s.State == lifecycle.Failed })
	if s.LastError != "no GGUF" || s.Cause != lifecycle.BadModel || len(s.Hints) != 1 {
		t.Errorf("%+v", s)
	}
	if _, err := in.client.Disable(t.Context(), DisableRequest{Session: in.bound}); err != nil {
		t.Error(err)
	}
	in.mustEnd()
}

func TestForegroundStays(t *testing.T) {
	f := testFolder(t)
	e := &memoryEngine{}
	in := &inside{t: t, f: f, engine: e, ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		in.ended <- Run(ctx, Options{Layout: f.layout, Foreground: true, Engines: map[string]lifecycle.Engine{lifecycle.LlamaServer: e}, Warden: []string{os.Args[0], "keeper", "--warden"}})
	}()
	in.until("at rest", func(s lifecycle.Status) bool { return s.State == lifecycle.Off && s.Keeper.PID != 0 })
	for round := range 2 {
		// Under the folder's lock, as a client does it: a lease without its wanted would start the one before again.
		lock, err := f.lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		h, err := f.createLease(lifecycle.Lease{Kind: lifecycle.Held, Client: self()})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.writeWanted(lifecycle.Wanted{Generation: round + 1, Choices: []lifecycle.Spec{{Engine: lifecycle.LlamaServer, Model: "m"}}}); err != nil {
			t.Fatal(err)
		}
		if err := lock.Release(); err != nil {
			t.Fatal(err)
		}
		in.until("ready", isReady)
		h.end()
		in.until("at rest again", func(s lifecycle.Status) bool {
			return s.State == lifecycle.Off && s.Generation == round+1 && s.Endpoint == nil
		})
	}
	if e.count() != 2 {
		t.Errorf("%d engines", e.count())
	}
	cancel()
	in.mustEnd()
}
