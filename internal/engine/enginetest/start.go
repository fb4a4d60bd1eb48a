//go:build unix

package enginetest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"localllm/internal/engine/child"
	"localllm/internal/proc"
	"localllm/lifecycle"
)

func ready(t *testing.T, a Adapter) {
	h := host(t, a)
	server := begin(t, a, Settings{}, h)
	if len(h.recorded) != 2 || h.recorded[0] != 0 || h.recorded[1] <= 1 {
		t.Errorf("recorded %v, want 0 and then the pid", h.recorded)
	}
	e := server.Endpoint()
	if !e.Owned || e.Adopted || e.Context < a.Spec.Context || e.Slots != a.Spec.Slots || !strings.HasPrefix(e.URL, "http://127.0.0.1:") || e.Version == "" || !e.PrefixReuse {
		t.Errorf("endpoint %+v", e)
	}
	if info, err := os.Stat(e.APIKeyFile); e.APIKeyFile != "" && (err != nil || info.Mode().Perm() != 0o600) {
		t.Errorf("key file: %v %v", info, err)
	}
	if m, err := server.Memory(t.Context()); err != nil || m.TotalBytes == 0 {
		t.Errorf("memory %+v, %v", m, err)
	}
	got, err := connect(t, a, server).Complete(t.Context(), ask(Short, 0))
	if err != nil || strings.TrimSpace(got.Text) != Words || got.Finish != "stop" || got.Tokens.Prompt == 0 || got.Tokens.Generated == 0 {
		t.Errorf("answer %+v, %v", got, err)
	}
	if err := server.Renew(t.Context()); err != nil {
		t.Errorf("Renew: %v", err)
	}
	select {
	case <-server.Done():
		t.Fatalf("done while ready: %v", server.Err())
	default:
	}
	if s := stop(t, server); !s.Process || !s.Model {
		t.Errorf("Stop = %+v", s)
	}
	nothingLeft(t, h)
	<-server.Done()
	if server.Err() != nil {
		t.Errorf("Err = %v after a stop", server.Err())
	}
	if s := stop(t, server); s.Process || s.Model {
		t.Errorf("second Stop = %+v", s)
	}
}

func crashes(t *testing.T, a Adapter) {
	h := host(t, a, fault(a, crash, "")...)
	err := fails(t, a, Settings{Binary: self(t)}, h, lifecycle.Crashed)
	if !strings.Contains(err.Reason, "the dog ate my weights") {
		t.Errorf("without the engine's last words: %q", err.Reason)
	}
}

func killedEarly(t *testing.T, a Adapter) {
	h := host(t, a, fault(a, killed, "")...)
	fails(t, a, Settings{Binary: self(t)}, h, lifecycle.OutOfMemory, lifecycle.Crashed)
}

func hangs(t *testing.T, a Adapter) {
	h := host(t, a, fault(a, silent, "")...)
	fails(t, a, Settings{Binary: self(t), Stall: 300 * time.Millisecond}, h, lifecycle.TimedOut)
}

func renewedByOutput(t *testing.T, a Adapter) { renewed(t, a, talking) }
func renewedByMemory(t *testing.T, a Adapter) { renewed(t, a, growing) }

// renewed loads for half as long again as the deadline would allow, with something moving all the time.
func renewed(t *testing.T, a Adapter, how string) {
	const stall = 2 * time.Second
	const load = stall * 3 / 2
	h := host(t, a, fault(a, how, strconv.Itoa(int(load/time.Millisecond)))...)
	began := time.Now()
	server := begin(t, a, Settings{Binary: self(t), Stall: stall}, h)
	if took := time.Since(began); took < load {
		t.Errorf("ready after %v: the fault was not played", took)
	}
	stop(t, server)
	nothingLeft(t, h)
}

func ignoresTERM(t *testing.T, a Adapter) {
	h := host(t, a, fault(a, stubborn, "")...)
	server := begin(t, a, Settings{Binary: self(t)}, h)
	if n := len(proc.Marked(h.Nonce)); n < 3 {
		t.Errorf("%d processes, want the server, the engine below it and the daemon", n)
	}
	stop(t, server)
	nothingLeft(t, h)
}

func starves(t *testing.T, a Adapter) {
	h := host(t, a, fault(a, starved, "")...)
	a.Spec = a.Huge
	err := fails(t, a, Settings{Binary: self(t)}, h, lifecycle.OutOfMemory)
	if len(err.Hints) == 0 {
		t.Error("no hint")
	}
}

func cancelled(t *testing.T, a Adapter) {
	h := host(t, a)
	began := time.Now()
	server := begin(t, a, Settings{}, h)
	whole := time.Since(began)
	stop(t, server)
	const rounds = 8
	for i := range rounds {
		h := host(t, a)
		ctx, cancel := context.WithTimeout(t.Context(), whole*time.Duration(i)/(rounds-1))
		server, err := a.New(Settings{Binary: a.Binary}).Start(ctx, a.Spec, h.Host)
		cancel()
		if err == nil { // ctx bounds the start only
			if _, err := connect(t, a, server).Complete(t.Context(), ask(Short, 4)); err != nil {
				t.Errorf("after a start that just made it: %v", err)
			}
			stop(t, server)
		} else if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Start = %v", err)
		}
		nothingLeft(t, h)
	}
}

// imposter answers whatever it is asked, and remembers what was sent to it.
func imposter(t *testing.T) (port int, secrets *atomic.Int64) {
	t.Helper()
	secrets = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			secrets.Add(1)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"status":"ok","version":"9.9.9","data":[],"models":[]}`)
	}))
	t.Cleanup(s.Close)
	u, _ := url.Parse(s.URL)
	port, _ = strconv.Atoi(u.Port())
	return port, secrets
}

func portTaken(t *testing.T, a Adapter) {
	taken, secrets := imposter(t)
	first := true
	h := host(t, a)
	server := begin(t, a, Settings{Port: func() (int, error) {
		if first {
			first = false
			return taken, nil
		}
		return child.FreePort()
	}}, h)
	if strings.HasSuffix(server.Endpoint().URL, ":"+strconv.Itoa(taken)) {
		t.Error("the other program's port is used")
	}
	stop(t, server)
	if secrets.Load() > 0 {
		t.Error("the other program was sent the key")
	}
	if len(h.recorded) != 4 {
		t.Errorf("recorded %v, want each of two starts twice", h.recorded)
	}
}

func wrongServer(t *testing.T, a Adapter) {
	taken, secrets := imposter(t)
	h := host(t, a)
	fails(t, a, Settings{Binary: a.Binary, Port: func() (int, error) { return taken, nil }}, h, lifecycle.Crashed)
	if secrets.Load() > 0 {
		t.Error("the other program was sent the key")
	}
	resp, err := http.Get("http://127.0.0.1:" + strconv.Itoa(taken))
	if err != nil {
		t.Fatalf("the other program is gone: %v", err)
	}
	resp.Body.Close()
}

// listensElsewhere has a child that claims to listen while another program has the port.
func listensElsewhere(t *testing.T, a Adapter) {
	taken, secrets := imposter(t)
	h := host(t, a, fault(a, elsewhere, "")...)
	fails(t, a, Settings{Binary: self(t), Stall: time.Second, Port: func() (int, error) { return taken, nil }}, h, lifecycle.Crashed, lifecycle.TimedOut, lifecycle.NoSuchModel)
	if secrets.Load() > 0 {
		t.Error("the other program was sent the key")
	}
}

func logsFull(t *testing.T, a Adapter) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Log("no /dev/full here: a missing folder instead")
	}
	for _, path := range []string{"/dev/full", "/nonexistent/folder/engine.log"} {
		h := host(t, a)
		h.LogPath = path
		server := begin(t, a, Settings{}, h)
		if !strings.Contains(strings.Join(server.Endpoint().Warnings, "\n"), "log") {
			t.Errorf("%s: no warning: %v", path, server.Endpoint().Warnings)
		}
		if _, err := connect(t, a, server).Complete(t.Context(), ask(Short, 4)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		stop(t, server)
		nothingLeft(t, h)
	}
}

func recordRefused(t *testing.T, a Adapter) {
	for _, at := range []int{1, 2} {
		h := host(t, a)
		calls := 0
		h.Record = func(int) error {
			if calls++; calls == at {
				return errors.New("no room for the record")
			}
			return nil
		}
		if _, err := a.New(Settings{Binary: a.Binary}).Start(t.Context(), a.Spec, h.Host); err == nil || !strings.Contains(err.Error(), "no room for the record") {
			t.Errorf("record %d refused: Start = %v", at, err)
		}
		nothingLeft(t, h)
	}
}

func dies(t *testing.T, a Adapter) {
	h := host(t, a)
	server := begin(t, a, Settings{}, h)
	id, err := proc.Identify(h.recorded[1])
	if err != nil {
		t.Fatal(err)
	}
	id.Nonce = h.Nonce
	if err := kill(id); err != nil {
		t.Fatal(err)
	}
	select {
	case <-server.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("not done 10 s after its death")
	}
	if server.Err() == nil {
		t.Error("no words about its death")
	}
	nothingLeft(t, h)
	stop(t, server)
}

// frozen is an engine that SIGSTOP holds: TERM does not reach it.
func frozen(t *testing.T, a Adapter) {
	h := host(t, a)
	server := begin(t, a, Settings{}, h)
	for _, id := range proc.Marked(h.Nonce) {
		if err := freeze(id); err != nil {
			t.Fatal(err)
		}
	}
	stop(t, server)
	nothingLeft(t, h)
}

func leavesFound(t *testing.T, a Adapter) {
	check := a.Foreign(t)
	h := host(t, a)
	server := begin(t, a, Settings{}, h)
	stop(t, server)
	check(t)
	nothingLeft(t, h)
}
