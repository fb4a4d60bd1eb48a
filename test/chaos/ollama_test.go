//go:build linux

package chaos

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"localllm/internal/practice"
	"localllm/lifecycle"
	"localllm/test/chaos/lab"
	"localllm/test/harness"
)

func ollamaSpec(model string) lifecycle.Spec {
	return lifecycle.Spec{Engine: lifecycle.Ollama, Model: model, Context: 2048, Slots: 1}
}

// loaded are the models that a running Ollama holds.
func loaded(t *testing.T, url string) []string {
	t.Helper()
	response, err := http.Get(url + "/api/ps")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var got struct{ Models []struct{ Name string } }
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range got.Models {
		names = append(names, strings.TrimSuffix(m.Name, ":latest"))
	}
	slices.Sort(names)
	return names
}

// TestOwnOllamaServeKilled: SIGKILL of serve leaves its runner behind. That has to go, and another serve to come.
func TestOwnOllamaServeKilled(t *testing.T) {
	store := harness.Start(t, harness.Ollama, practice.Script{{Say: "done"}}, practice.Options{})
	models := filepath.Join(filepath.Dir(store.Log), "models")
	store.Stop()
	l := lab.New(t, true)
	l.Env = append(l.Env, "OLLAMA_MODELS="+models, fmt.Sprintf("OLLAMA_HOST=127.0.0.1:%d", harness.FreePort(t)))
	for range lab.Rounds(3, 25) {
		s := l.Session()
		got := s.Must(lab.Order{Do: "enable", Spec: ollamaSpec(store.Model)})
		if got.Started != "cold" || !got.Status.Endpoint.Owned {
			t.Fatalf("%+v", got.Status.Endpoint)
		}
		if n := len(l.Engines()); n < 2 {
			t.Fatalf("serve and its runner were to be seen: %v", l.Engines())
		}
		var runners []int
		for _, p := range l.Engines() {
			if p.PID != got.Status.Server.PID {
				runners = append(runners, p.PID)
			}
		}
		kill(t, got.Status.Server.PID, syscall.SIGKILL)
		lab.Eventually(t, 30*time.Second, "another serve is ready", func() (bool, any) {
			now := l.Status()
			return now.State == lifecycle.Ready && now.Server.PID != got.Status.Server.PID, now
		})
		for _, p := range l.Engines() {
			if slices.Contains(runners, p.PID) {
				t.Errorf("the killed serve's runner still lives: %v", p)
			}
		}
		kill(t, l.Status().Keeper.PID, syscall.SIGKILL)
		l.NothingLeft(soon)
		s.KillAll()
	}
}

// found is somebody's running Ollama with a model of somebody's loaded, and a lab whose sessions find it.
func found(t *testing.T) (*harness.Server, *lab.Lab) {
	t.Helper()
	theirs := harness.Start(t, harness.Ollama, practice.Script{{Say: "done"}}, practice.Options{})
	theirs.Create("somebodys", harness.Model(t, practice.Script{{Say: "mine"}}, practice.Options{}), practice.Options{})
	theirs.Post("/api/generate", map[string]any{"model": "somebodys", "keep_alive": -1, "stream": false})
	l := lab.New(t, true)
	l.Env = append(l.Env, "OLLAMA_HOST="+theirs.URL)
	return theirs, l
}

func TestFoundOllamaIsLeftAsItWas(t *testing.T) {
	theirs, l := found(t)
	s := l.Session()
	if got := s.Do(lab.Order{Do: "enable", Spec: ollamaSpec("practice")}); got.Cause != string(lifecycle.Displaces) {
		t.Errorf("want to hear whose model could go: %+v", got)
	}
	got := s.Must(lab.Order{Do: "enable", Spec: ollamaSpec("practice"), Force: true})
	if got.Started != "adopted" || got.Status.Endpoint.Owned {
		t.Fatalf("%+v", got)
	}
	if names := loaded(t, theirs.URL); !slices.Equal(names, []string{"practice", "somebodys"}) {
		t.Fatalf("loaded: %v", names)
	}
	if got := s.Must(lab.Order{Do: "disable", Force: true}); got.Stopped {
		t.Errorf("we stopped somebody's server: %+v", got)
	}
	if names := loaded(t, theirs.URL); !slices.Equal(names, []string{"somebodys"}) {
		t.Errorf("loaded after our disable: %v", names)
	}
	l.NothingLeft(soon)
	// A model that somebody has loaded is not ours to unload either.
	s.Must(lab.Order{Do: "enable", Spec: ollamaSpec("somebodys"), Force: true})
	s.Must(lab.Order{Do: "disable"})
	if names := loaded(t, theirs.URL); !slices.Equal(names, []string{"somebodys"}) {
		t.Errorf("loaded after our use of somebody's model: %v", names)
	}
}

// TestFoundOllamaAfterAKill takes as long as the keep-alive that we give a model there.
func TestFoundOllamaAfterAKill(t *testing.T) {
	t.Parallel()
	theirs, l := found(t)
	s := l.Session()
	s.Must(lab.Order{Do: "enable", Spec: ollamaSpec("practice"), Force: true})
	now := l.Status()
	kill(t, now.Warden.PID, syscall.SIGKILL)
	kill(t, now.Keeper.PID, syscall.SIGKILL)
	s.KillAll()
	lab.Eventually(t, 3*time.Minute, "our model goes by itself", func() (bool, any) {
		<-time.After(100 * time.Millisecond)
		names := loaded(t, theirs.URL)
		return slices.Equal(names, []string{"somebodys"}), names
	})
}
