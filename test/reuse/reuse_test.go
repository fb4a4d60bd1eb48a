package main

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"localllm/delegate"
	"localllm/internal/engine/llamaserver"
	"localllm/internal/engine/ollama"
	"localllm/internal/practice"
	"localllm/lifecycle"
	"localllm/test/harness"
	"localllm/test/page"
)

var (
	results = flag.String("results", "", "write the table into this page")
	figures = flag.String("figures", "", "write the figures here as JSON")
	control = flag.Int("control", 0, "play the layout that prefills nearly all at each task for so many tasks only; 0: all that are written down, else three")
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }

const window = 32768

// limits are how many times the ideal a session may prefill.
var limits = map[harness.Kind]float64{harness.LlamaServer: 1.08, harness.Ollama: 1.12}

// connect uses the product's own clients: what is measured is what a delegation sends.
func connect(t *testing.T, s *harness.Server) delegate.Completer {
	t.Helper()
	e := lifecycle.Endpoint{Engine: string(s.Kind), URL: s.URL, Model: s.Model, Context: window, Slots: 1, PrefixReuse: true, KeepAlive: 5 * time.Minute}
	if s.Kind == harness.LlamaServer {
		c, err := llamaserver.Connect(e)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	e.Options = map[string]any{"num_ctx": window}
	c, err := ollama.Connect(e)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestReuse: the session on both engines. Each layout gets an engine of its own, so that none finds the other's prompts.
func TestReuse(t *testing.T) {
	script := practice.Script{{Say: "package answer\n\nfunc Answer() int { return 42 }\n"}}
	file := harness.Model(t, script, practice.Options{})
	var s session
	var ideal int
	var all []figure
	for _, kind := range harness.Kinds {
		of := map[layout]figure{}
		for _, order := range layouts {
			t.Run(string(kind)+"/"+string(order), func(t *testing.T) {
				var args []string
				if kind == harness.LlamaServer {
					args = []string{"-c", "32768"}
				}
				engine := harness.StartFile(t, kind, file, practice.Options{}, args...)
				c := connect(t, engine)
				if ideal == 0 { // the model and so the tokens are the same on both
					s, ideal = material(t, engine, c)
				}
				f, err := s.play(t.Context(), c, order, length(order))
				if err != nil {
					t.Fatal(err)
				}
				f.Engine, f.Ideal = string(kind), ideal
				of[order] = f
				all = append(all, f)
				t.Logf("%d of %d tokens prefilled, ideal %d: %.3f times, %.1f s", f.Prefilled, f.Prompt, f.Ideal, f.ratio(), f.Seconds)
			})
		}
		if t.Failed() {
			return
		}
		if got := of[ours].ratio(); got > limits[kind] {
			t.Errorf("%s prefilled %.3f times the ideal, at most %.2f is allowed", kind, got, limits[kind])
		}
		if of[byPath].ratio() < 1.3 {
			t.Errorf("%s: files by path prefill %.2f times the ideal: the session measures nothing", kind, of[byPath].ratio())
		}
		if f := of[taskFirst]; 10*f.Prefilled < 9*f.Prompt {
			t.Errorf("%s: with the task first, %d of %d tokens are prefilled: the session measures nothing", kind, f.Prefilled, f.Prompt)
		}
	}
	save(t, all)
}

// length: with the task first nearly all is prefilled at every task, which takes minutes. Three tasks show it; the
// page gets all of them.
func length(order layout) int {
	if order == taskFirst && *control > 0 {
		return min(*control, tasks)
	}
	if order == taskFirst && *results == "" && *figures == "" {
		return 3
	}
	return tasks
}

func material(t *testing.T, engine *harness.Server, c delegate.Completer) (session, int) {
	t.Helper()
	count := func(text string) (int, error) { return engine.Tokens(text), nil }
	s, err := newSession(count)
	if err != nil {
		t.Fatal(err)
	}
	p, err := delegate.Build(t.Context(), c, s.task(0))
	if err != nil {
		t.Fatal(err)
	}
	ideal, err := s.ideal(count, p.Messages[0].Content)
	if err != nil {
		t.Fatal(err)
	}
	return s, ideal
}

func save(t *testing.T, all []figure) {
	t.Helper()
	if *results != "" {
		var versions []string
		for _, v := range harness.Engines(t).Versions {
			if !strings.Contains(v, "fit") {
				versions = append(versions, strings.TrimSpace(v))
			}
		}
		if err := page.Put(*results, "reuse", table(all, strings.Join(versions, "; "))); err != nil {
			t.Error(err)
		}
	}
	if *figures != "" {
		data, err := json.MarshalIndent(all, "", "  ")
		if err == nil {
			err = os.WriteFile(*figures, append(data, '\n'), 0o644)
		}
		if err != nil {
			t.Error(err)
		}
	}
}
