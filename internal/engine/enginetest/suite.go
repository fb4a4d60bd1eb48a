//go:build unix

package enginetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"localllm/delegate"
	"localllm/internal/practice"
	"localllm/internal/proc"
	"localllm/lifecycle"
)

// Client is what an adapter gives for prompts.
type Client interface {
	delegate.Completer
	Warm(ctx context.Context, r delegate.Request) (delegate.Tokens, error)
	Close()
}

// Settings are what the suite changes of an engine.
type Settings struct {
	Binary string
	Stall  time.Duration
	Port   func() (int, error)
}

// What Script's model is asked, and how it answers.
const (
	Short = "SAY-SHORT" // gets Words
	Words = "Fine words."
	Long  = "SAY-LONG" // gets thousands of tokens
)

// Script is what the model of an engine under test says.
var Script = practice.Script{
	{When: []string{Short}, Say: Words},
	{When: []string{Long}, Say: strings.Repeat("one more line of a very long answer\n", 1000)},
}

// Adapter is an engine under test.
type Adapter struct {
	New     func(Settings) lifecycle.Engine
	Connect func(lifecycle.Endpoint) (Client, error)
	Binary  string   // of the real engine
	Env     []string // of the child
	Spec    lifecycle.Spec

	// Foreign starts a server of the same kind that is not ours, and returns a check that it still is as it was.
	Foreign func(t *testing.T) (check func(t *testing.T))
	// Huge is a spec that needs far more memory than a starved engine has.
	Huge lifecycle.Spec
}

// Run is the whole suite.
func Run(t *testing.T, a Adapter) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, Adapter)
	}{
		{"ready after a real token", ready},
		{"crash before ready", crashes},
		{"killed before ready", killedEarly},
		{"hang while loading", hangs},
		{"deadline renewed by output", renewedByOutput},
		{"deadline renewed by memory", renewedByMemory},
		{"ignores TERM, with grandchildren", ignoresTERM},
		{"out of memory", starves},
		{"nothing left after cancel", cancelled},
		{"port taken", portTaken},
		{"wrong server on the port", wrongServer},
		{"listens elsewhere", listensElsewhere},
		{"disk full for logs", logsFull},
		{"record refused", recordRefused},
		{"dies while ready", dies},
		{"stopped while frozen", frozen},
		{"found server left alone", leavesFound},
		{"counts and cache", countsAndCache},
		{"cancel frees the slot", cancelFrees},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			t.Cleanup(func() { goleak.VerifyNone(t, before) }) // after all that the test itself cleans up
			test.run(t, a)
		})
	}
}

// run is one start's surroundings.
type run struct {
	lifecycle.Host
	mu       sync.Mutex
	recorded []int
	reports  []lifecycle.Progress
}

// host is a fresh Host; at the test's end nothing with its nonce may live.
func host(t *testing.T, a Adapter, extra ...string) *run {
	t.Helper()
	dir := t.TempDir()
	r := &run{}
	r.Host = lifecycle.Host{
		Dir: filepath.Join(dir, "run"), LogPath: filepath.Join(dir, "engine.log"), Nonce: proc.NewNonce(),
		Env: append(append([]string(nil), a.Env...), extra...),
		Report: func(p lifecycle.Progress) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.reports = append(r.reports, p)
		},
		Record: func(pid int) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.recorded = append(r.recorded, pid)
			return nil
		},
	}
	if err := os.Mkdir(r.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left := proc.Marked(r.Nonce); len(left) > 0 {
			t.Errorf("processes left: %v", left)
			proc.Sweep(r.Nonce)
		}
	})
	return r
}

func nothingLeft(t *testing.T, h *run) {
	t.Helper()
	if left := proc.Marked(h.Nonce); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	var files []string
	_ = filepath.WalkDir(h.Dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return nil
	})
	if len(files) > 0 {
		t.Errorf("files left: %v", files)
	}
}

func fault(a Adapter, name string, wait string) []string {
	return []string{faultVariable + "=" + name, realVariable + "=" + a.Binary, waitVariable + "=" + wait}
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// begin starts the real engine, or with a fault the test binary in its place.
func begin(t *testing.T, a Adapter, s Settings, h *run) lifecycle.Server {
	t.Helper()
	if s.Binary == "" {
		s.Binary = a.Binary
	}
	server, err := a.New(s).Start(t.Context(), a.Spec, h.Host)
	if err != nil {
		log, _ := os.ReadFile(h.LogPath)
		t.Fatalf("Start: %v\n%s", err, tail(log))
	}
	t.Cleanup(func() { _, _ = server.Stop(context.Background()) })
	return server
}

func tail(b []byte) []byte { return b[max(0, len(b)-2000):] }

func connect(t *testing.T, a Adapter, server lifecycle.Server) Client {
	t.Helper()
	c, err := a.Connect(server.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func ask(prompt string, limit int) delegate.Request {
	return delegate.Request{Messages: []delegate.Message{{Role: delegate.User, Content: prompt}}, MaxTokens: limit, Slot: 0}
}

// fails starts, and returns the error with its cause.
func fails(t *testing.T, a Adapter, s Settings, h *run, want ...lifecycle.Cause) *lifecycle.StartError {
	t.Helper()
	server, err := a.New(s).Start(t.Context(), a.Spec, h.Host)
	if err == nil {
		_, _ = server.Stop(t.Context())
		t.Fatal("Start succeeded")
	}
	nothingLeft(t, h)
	var start *lifecycle.StartError
	if !errors.As(err, &start) {
		t.Fatalf("Start = %T %v, want a *StartError", err, err)
	}
	if strings.Contains(start.Reason, "\n") || len(start.Reason) > 400 || start.Reason == "" {
		t.Errorf("not one sentence: %q", start.Reason)
	}
	for _, cause := range want {
		if start.Cause == cause {
			return start
		}
	}
	t.Errorf("cause %s (%s), want %v", start.Cause, start.Reason, want)
	return start
}

// Refuses holds an engine to a start that can't be: it says why and what to do, and leaves nothing.
func Refuses(t *testing.T, e lifecycle.Engine, spec lifecycle.Spec, host lifecycle.Host, want lifecycle.Cause, says string) {
	t.Helper()
	server, err := e.Start(t.Context(), spec, host)
	if err == nil {
		_, _ = server.Stop(t.Context())
		t.Fatal("started")
	}
	var start *lifecycle.StartError
	if !errors.As(err, &start) || start.Cause != want || !strings.Contains(start.Reason, says) {
		t.Fatalf("Start = %+v (%v), want %s with %q", start, err, want, says)
	}
	if len(start.Hints) == 0 || strings.Contains(start.Reason, "\n") {
		t.Errorf("reason %q, hints %v", start.Reason, start.Hints)
	}
	if left := proc.Marked(host.Nonce); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func stop(t *testing.T, server lifecycle.Server) lifecycle.Stopped {
	t.Helper()
	began := time.Now()
	stopped, err := server.Stop(t.Context())
	if err != nil {
		t.Errorf("Stop: %v", err)
	}
	if took := time.Since(began); took > 10*time.Second { // a group that ignores TERM gets 2 s
		t.Errorf("Stop took %v", took)
	}
	return stopped
}
