//go:build unix

package ollama

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"localllm/delegate"
	"localllm/internal/engine/enginetest"
	"localllm/internal/engine/llamaserver"
	"localllm/internal/practice"
	"localllm/internal/proc"
	"localllm/lifecycle"
	"localllm/test/harness"
)

// own starts an Ollama of ours over a store with one model of this script.
func own(t *testing.T, s practice.Script, o practice.Options, want lifecycle.Spec) (lifecycle.Server, *Client, string) {
	t.Helper()
	maker := harness.Start(t, harness.Ollama, s, o)
	folder := filepath.Join(filepath.Dir(maker.Log), "models")
	maker.Stop()
	host := lifecycle.Host{Dir: t.TempDir(), LogPath: filepath.Join(t.TempDir(), "log"), Nonce: proc.NewNonce(), Report: func(lifecycle.Progress) {}, Env: environ(t, folder)}
	server, err := New(Options{Binary: harness.Engines(t).Ollama}).Start(t.Context(), want, host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = server.Stop(context.Background()) })
	c, err := Connect(server.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return server, c, folder
}

func user(text string) []delegate.Message {
	return []delegate.Message{{Role: delegate.System, Content: "Write what is asked."}, {Role: delegate.User, Content: text}}
}

func TestToolCalls(t *testing.T) {
	_, c, _ := own(t, practice.Script{{When: []string{"SAY-TOOL"}, Say: practice.Call("read_file", "path", "a.go")}}, practice.Options{Tools: true}, spec)
	tools := []delegate.Tool{{Name: "read_file", Description: "reads a file", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)}}
	got, err := c.Complete(t.Context(), delegate.Request{Messages: user("SAY-TOOL"), Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	if got.Finish != delegate.FinishTools || len(got.Calls) != 1 || got.Calls[0].Name != "read_file" || got.Calls[0].Arguments != `{"path":"a.go"}` {
		t.Fatalf("%+v", got)
	}
	if n, exact, err := c.Count(t.Context(), user("SAY-TOOL"), tools); err != nil || !exact || n != got.Tokens.Prompt {
		t.Errorf("counted %d (exact %v), %v; the engine saw %d", n, exact, err, got.Tokens.Prompt)
	}
	odd := got.Calls[0]
	odd.Arguments = `{"path": broken`
	next := append(user("SAY-TOOL"), delegate.Message{Role: delegate.Assistant, Calls: []delegate.ToolCall{got.Calls[0], odd}}, delegate.Message{Role: delegate.ToolRole, Tool: "read_file", CallID: got.Calls[0].ID, Content: "package a"})
	if _, err := c.Complete(t.Context(), delegate.Request{Messages: next, Tools: tools, MaxTokens: 4}); err != nil {
		t.Errorf("a history with a malformed call: %v", err)
	}
}

func TestThinkingIsNoAnswer(t *testing.T) {
	_, c, _ := own(t, practice.Script{{Say: "<think>\nLet me see.\n</think>\n\n" + enginetest.Words}}, practice.Options{Think: true}, spec)
	for _, think := range []bool{false, true} {
		got, err := c.Complete(t.Context(), delegate.Request{Messages: user("anything"), Think: think})
		if err != nil || !strings.HasSuffix(strings.TrimSpace(got.Text), enginetest.Words) || (len(got.Thinking) > 0) != think {
			t.Errorf("think %v: %+v (%s), %v", think, got, got.Thinking, err)
		}
	}
}

func TestSlotsAndBlob(t *testing.T) {
	want := spec
	want.Slots, want.Context = 2, 4096
	server, c, folder := own(t, enginetest.Script, practice.Options{}, want)
	if e := server.Endpoint(); e.Slots != 2 || e.Context != 4096 {
		t.Fatalf("endpoint %+v", e)
	}
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			got, err := c.Complete(t.Context(), delegate.Request{Messages: user(enginetest.Short)})
			if err != nil || strings.TrimSpace(got.Text) != enginetest.Words {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	wait.Wait()
	// The same model by llama-server, in place: Ollama's blobs are plain GGUF files.
	figures, err := Describe(t.Context(), server.Endpoint().URL, spec.Model)
	if err != nil || !strings.HasPrefix(figures.Blob, folder) || figures.Context == 0 {
		t.Fatalf("%+v, %v", figures, err)
	}
	host := lifecycle.Host{Dir: t.TempDir(), Nonce: proc.NewNonce(), Report: func(lifecycle.Progress) {}, Env: environ(t, folder)}
	second, err := llamaserver.New(llamaserver.Options{Binary: harness.Engines(t).LlamaServer}).Start(t.Context(),
		lifecycle.Spec{Engine: lifecycle.LlamaServer, Model: "practice", Path: figures.Blob, Context: 4096, Slots: 1}, host)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Stop(context.Background())
	other, err := llamaserver.Connect(second.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if got, err := other.Complete(t.Context(), delegate.Request{Messages: user(enginetest.Short), Slot: -1}); err != nil || strings.TrimSpace(got.Text) != enginetest.Words {
		t.Errorf("%+v, %v", got, err)
	}
}

// Where the runner's tokenizer can't be asked, the estimate learns from what the engine counted.
func TestEstimateLearns(t *testing.T) {
	_, c, _ := own(t, enginetest.Script, practice.Options{}, spec)
	hidden := "http://127.0.0.1:1"
	messages := user(strings.Repeat("func add(a, b int) int { return a + b }\n", 100))
	got, err := c.Complete(t.Context(), delegate.Request{Messages: messages, MaxTokens: 1})
	if err != nil {
		t.Fatal(err)
	}
	c.endpoint.Model, c.noRunner = spec.Model, true
	c.runner.Store(&hidden)
	n, exact, err := c.Count(t.Context(), messages, nil)
	if err != nil || exact || n < got.Tokens.Prompt || n > got.Tokens.Prompt*11/10 {
		t.Errorf("estimated %d (exact %v), %v; the engine saw %d", n, exact, err, got.Tokens.Prompt)
	}
}
