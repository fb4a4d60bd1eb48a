//go:build unix

package ollama

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ollama/ollama/api"

	"localllm/delegate"
	"localllm/internal/engine/enginetest"
	"localllm/internal/practice"
	"localllm/internal/proc"
	"localllm/lifecycle"
	"localllm/test/harness"
)

// found is an Ollama that somebody else runs, with the practice model under more names.
func found(t *testing.T, names ...string) *harness.Server {
	t.Helper()
	s := harness.Start(t, harness.Ollama, enginetest.Script, practice.Options{})
	for _, name := range names {
		// Another file: Ollama runs one process for a file, whatever the names.
		other := append(practice.Script{{When: []string{"NAME"}, Say: name}}, enginetest.Script...)
		s.Create(name, harness.Model(t, other, practice.Options{}), practice.Options{})
	}
	return s
}

func adoptHost(t *testing.T, s *harness.Server) lifecycle.Host {
	return lifecycle.Host{
		Dir: t.TempDir(), Nonce: proc.NewNonce(), Report: func(lifecycle.Progress) {},
		Env: append(os.Environ(), fmt.Sprintf("OLLAMA_HOST=127.0.0.1:%d", s.Port)),
		Record: func(int) error {
			t.Error("a start was recorded, though the server was found")
			return nil
		},
	}
}

func loaded(t *testing.T, s *harness.Server) map[string]api.ProcessModelResponse {
	t.Helper()
	resp, err := http.Get(s.URL + "/api/ps")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var list api.ProcessResponse
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	m := map[string]api.ProcessModelResponse{}
	for _, one := range list.Models {
		m[strings.TrimSuffix(one.Name, ":latest")] = one
	}
	return m
}

// load has somebody load a model.
func load(t *testing.T, s *harness.Server, name string, window int, keep any) {
	t.Helper()
	s.Post("/api/generate", map[string]any{"model": name, "options": map[string]any{"num_ctx": window}, "keep_alive": keep, "stream": false})
}

var spec = lifecycle.Spec{Engine: lifecycle.Ollama, Model: "practice", Context: 8192, Slots: 1, Need: 1 << 20}

func plenty(context.Context, lifecycle.Spec) uint64 { return 1 << 40 }

func TestAdoptedBesideSomebodysModel(t *testing.T) {
	s := found(t, "theirs")
	load(t, s, "theirs", 4096, -1)
	their := loaded(t, s)["theirs"]
	harness.Until(t, "the server noting the end of that request, which it does a moment after its answer", 10*time.Second, func() bool {
		before := their.ExpiresAt
		their = loaded(t, s)["theirs"]
		return their.ExpiresAt.Equal(before)
	})
	server, err := New(Options{Free: plenty}).Start(t.Context(), spec, adoptHost(t, s))
	if err != nil {
		t.Fatal(err)
	}
	e := server.Endpoint()
	if e.Owned || !e.Adopted || e.Context != 8192 || e.KeepAlive != 2*time.Minute || e.URL != s.URL {
		t.Errorf("endpoint %+v", e)
	}
	now := loaded(t, s)
	// Were all of ours killed now, nothing would renew it.
	if left := time.Until(now["practice"].ExpiresAt); left > 2*time.Minute+5*time.Second || left < time.Minute {
		t.Errorf("our model stays for %v by itself", left)
	}
	c, err := Connect(e)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, err := c.Complete(t.Context(), delegate.Request{Messages: []delegate.Message{{Role: delegate.User, Content: enginetest.Short}}}); err != nil || strings.TrimSpace(got.Text) != enginetest.Words {
		t.Errorf("answer %+v, %v", got, err)
	}
	if left := time.Until(loaded(t, s)["practice"].ExpiresAt); left > 2*time.Minute+5*time.Second {
		t.Errorf("after a request our model stays for %v", left)
	}
	if err := server.Renew(t.Context()); err != nil {
		t.Error(err)
	}
	stopped, err := server.Stop(t.Context())
	if err != nil || stopped.Process || !stopped.Model {
		t.Errorf("Stop = %+v, %v", stopped, err)
	}
	now = loaded(t, s)
	if _, still := now["practice"]; still {
		t.Error("our model is still loaded")
	}
	if now["theirs"].ExpiresAt != their.ExpiresAt || now["theirs"].ContextLength != 4096 {
		t.Errorf("their model was %+v and is %+v", their, now["theirs"])
	}
	<-server.Done()
	if server.Err() != nil {
		t.Error(server.Err())
	}
}

func TestModelThatWasLoadedStays(t *testing.T) {
	s := found(t)
	load(t, s, "practice", 8192, "10m")
	before := s.Processes()
	server, err := New(Options{}).Start(t.Context(), spec, adoptHost(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if after := s.Processes(); !slices.Equal(before, after) {
		t.Errorf("the model was loaded again: %v, then %v", before, after)
	}
	stopped, err := server.Stop(t.Context())
	if err != nil || stopped.Model || stopped.Process {
		t.Errorf("Stop = %+v, %v", stopped, err)
	}
	is, ok := loaded(t, s)["practice"]
	if left := time.Until(is.ExpiresAt); !ok || left < 8*time.Minute || left > 10*time.Minute {
		t.Errorf("the model that was there: %v, for %v", ok, left)
	}
}

func TestLargerContextIsShared(t *testing.T) {
	s := found(t)
	load(t, s, "practice", 16384, -1)
	before := s.Processes()
	server, err := New(Options{}).Start(t.Context(), spec, adoptHost(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if e := server.Endpoint(); e.Context != 16384 || len(e.Warnings) == 0 {
		t.Errorf("endpoint %+v", e)
	}
	if _, err := server.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if after := s.Processes(); !slices.Equal(before, after) {
		t.Error("the model was loaded again")
	}
	if left := time.Until(loaded(t, s)["practice"].ExpiresAt); left < 100*time.Hour {
		t.Errorf("was to stay for ever, and stays %v", left)
	}
}

func TestNobodysModelIsPushedOut(t *testing.T) {
	s := found(t, "theirs")
	load(t, s, "theirs", 4096, -1)
	for what, o := range map[string]Options{
		"unknown memory": {},
		"too little":     {Free: func(context.Context, lifecycle.Spec) uint64 { return 1 }},
	} {
		_, err := New(o).Start(t.Context(), spec, adoptHost(t, s))
		var start *lifecycle.StartError
		if !errors.As(err, &start) || start.Cause != lifecycle.Displaces || !strings.Contains(start.Reason, "theirs") || len(start.Hints) == 0 {
			t.Errorf("%s: %v", what, err)
		}
	}
	smaller := spec
	smaller.Model = "theirs"
	_, err := New(Options{}).Start(t.Context(), smaller, adoptHost(t, s))
	var start *lifecycle.StartError
	if !errors.As(err, &start) || start.Cause != lifecycle.Displaces || !strings.Contains(start.Reason, "4096") {
		t.Errorf("with another context: %v", err)
	}
	if len(loaded(t, s)) != 1 {
		t.Errorf("loaded now: %v", loaded(t, s))
	}
	forced := adoptHost(t, s)
	forced.Force = true
	server, err := New(Options{}).Start(t.Context(), spec, forced)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := server.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAdoptedIsMissed(t *testing.T) {
	for _, how := range []string{"unloaded", "stopped"} {
		s := found(t)
		server, err := New(Options{}).Start(t.Context(), spec, adoptHost(t, s))
		if err != nil {
			t.Fatal(err)
		}
		if how == "unloaded" {
			load(t, s, "practice", 8192, 0)
			harness.Until(t, "unloaded", 10*time.Second, func() bool { return len(loaded(t, s)) == 0 })
		} else {
			s.Stop()
		}
		if err := server.Renew(t.Context()); err == nil {
			t.Errorf("%s: Renew found nothing wrong", how)
		}
		select {
		case <-server.Done():
		default:
			t.Errorf("%s: not done", how)
		}
		if server.Err() == nil {
			t.Errorf("%s: no reason", how)
		}
		if stopped, err := server.Stop(t.Context()); err != nil || stopped.Model {
			t.Errorf("%s: Stop = %+v, %v", how, stopped, err)
		}
		if how == "unloaded" && len(loaded(t, s)) != 0 {
			t.Error("loaded again behind the back of whoever unloaded it")
		}
	}
}

func TestWarningsOfASomebodysSettings(t *testing.T) {
	s := found(t)
	wish := spec
	wish.Slots, wish.KVType = 4, "q8_0"
	server, err := New(Options{}).Start(t.Context(), wish, adoptHost(t, s))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop(context.Background())
	text := strings.Join(server.Endpoint().Warnings, "\n")
	if !strings.Contains(text, "OLLAMA_NUM_PARALLEL") || !strings.Contains(text, "OLLAMA_KV_CACHE_TYPE") || server.Endpoint().Slots != 1 {
		t.Errorf("%+v", server.Endpoint())
	}
}

// Forty requests as delegations make them, with all that varies between them: nothing of it may reload the model.
func TestFortyRequestsWithoutAReload(t *testing.T) {
	folder := store(t)
	host := lifecycle.Host{Dir: t.TempDir(), Nonce: proc.NewNonce(), Report: func(lifecycle.Progress) {}, Env: environ(t, folder)}
	server, err := New(Options{Binary: harness.Engines(t).Ollama}).Start(t.Context(), spec, host)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop(context.Background())
	c, err := Connect(server.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	before := proc.Marked(host.Nonce)
	var most time.Duration
	for i := range 40 {
		r := delegate.Request{
			Messages: []delegate.Message{
				{Role: delegate.System, Content: "Write what is asked."},
				{Role: delegate.User, Content: strings.Repeat("context ", i*5) + enginetest.Short},
			},
			MaxTokens: 1 + i%7, Temperature: float64(i%3) / 2, Seed: i, Slot: i % 2,
		}
		switch i % 10 {
		case 3:
			if _, _, err := c.Count(t.Context(), r.Messages, nil); err != nil {
				t.Error(err)
			}
		case 5:
			if _, err := c.Warm(t.Context(), r); err != nil {
				t.Error(err)
			}
		case 7:
			if _, err := Describe(t.Context(), server.Endpoint().URL, spec.Model); err != nil {
				t.Error(err)
			}
		}
		got, err := c.Complete(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, got.Load)
	}
	// A load takes longer than this here, and a new process besides.
	if most > 500*time.Millisecond {
		t.Errorf("longest load_duration %v", most)
	}
	if after := proc.Marked(host.Nonce); !slices.Equal(before, after) {
		t.Errorf("the runner was %v and is %v", before, after)
	}
	t.Logf("longest load_duration of 40 requests: %v", most)
}

// What a killed keeper leaves: nobody renews and nobody unloads. With the two minutes that users have it is the same.
func TestAdoptedModelLeavesByItself(t *testing.T) {
	s := found(t)
	server, err := New(Options{KeepAlive: 3 * time.Second}).Start(t.Context(), spec, adoptHost(t, s))
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
		if err := server.Renew(t.Context()); err != nil {
			t.Fatalf("renewed in time, and yet: %v", err)
		}
		harness.Until(t, "half a second", time.Minute, tick(500*time.Millisecond))
	}
	harness.Until(t, "our model is gone", 15*time.Second, func() bool { return len(loaded(t, s)) == 0 })
}

func tick(d time.Duration) func() bool {
	end := time.Now().Add(d)
	return func() bool { return time.Now().After(end) }
}
