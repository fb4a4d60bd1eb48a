//go:build unix

package llamaserver

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"localllm/delegate"
	"localllm/internal/engine/enginetest"
	"localllm/internal/practice"
	"localllm/internal/proc"
	"localllm/lifecycle"
	"localllm/test/harness"
)

// start starts the real engine and connects to it.
func start(t *testing.T, spec lifecycle.Spec) (lifecycle.Server, *Client) {
	t.Helper()
	spec.Engine, spec.Model = lifecycle.LlamaServer, "practice"
	host := lifecycle.Host{Dir: t.TempDir(), LogPath: filepath.Join(t.TempDir(), "log"), Nonce: proc.NewNonce(), Report: func(lifecycle.Progress) {}, Env: environ(t)}
	server, err := New(Options{Binary: harness.Engines(t).LlamaServer}).Start(t.Context(), spec, host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = server.Stop(context.Background()) })
	c, err := Connect(server.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return server, c
}

func user(text string) []delegate.Message {
	return []delegate.Message{{Role: delegate.System, Content: "Write what is asked."}, {Role: delegate.User, Content: text}}
}

func TestSharedSlotsSaveTheirPrefix(t *testing.T) {
	server, c := start(t, lifecycle.Spec{Path: modelPath(t), Context: 4096, Slots: 4})
	if e := server.Endpoint(); e.Slots != 4 || e.Context != 4096 || !e.SlotStates || !c.Limits().PinnedSlots {
		t.Fatalf("endpoint %+v", e)
	}
	prefix := user(strings.Repeat("a line of a context file\n", 300))
	warm, err := c.Warm(t.Context(), delegate.Request{Messages: prefix, Slot: 0})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Share(t.Context(), 0, []int{0, 1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for slot := range 4 {
		wait.Go(func() {
			task := user(prefix[1].Content + "\nSAY-SHORT")
			got, err := c.Complete(t.Context(), delegate.Request{Messages: task, Slot: slot})
			if err != nil || strings.TrimSpace(got.Text) != enginetest.Words || got.Tokens.Cached < warm.Prompt-8 {
				t.Errorf("slot %d: %+v, %v; warmed were %d", slot, got, err, warm.Prompt)
			}
		})
	}
	wait.Wait()
	if left, _ := os.ReadDir(slotFolder(server.Endpoint().APIKeyFile)); len(left) > 0 {
		t.Errorf("states left: %v", left)
	}
}

func TestNobodyElseIsLetIn(t *testing.T) {
	server, _ := start(t, lifecycle.Spec{Path: modelPath(t), Context: 2048, Slots: 1, KVType: "q8_0"})
	e := server.Endpoint()
	for _, path := range []string{"/props", "/slots", "/v1/models", "/metrics", "/v1/chat/completions", "/completion", "/tokenize"} {
		resp, err := http.Get(e.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s without a key: %d", path, resp.StatusCode)
		}
	}
	req, _ := http.NewRequest(http.MethodOptions, e.URL+"/v1/chat/completions", nil)
	req.Header.Set("Origin", "http://evil.example")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := resp.Header.Get("Access-Control-Allow-Origin"); got == "*" || strings.Contains(got, "evil") {
		t.Errorf("any web page may call it: %q", got)
	}
	if resp, err := http.Get(e.URL + "/"); err == nil {
		if strings.Contains(resp.Header.Get("Content-Type"), "html") {
			t.Error("there is a web page")
		}
		resp.Body.Close()
	}
	port := e.URL[strings.LastIndex(e.URL, ":")+1:]
	addresses, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && ip.IP.To4() != nil {
			if conn, err := net.Dial("tcp", net.JoinHostPort(ip.IP.String(), port)); err == nil {
				conn.Close()
				t.Errorf("it listens on %s", ip.IP)
			}
		}
	}
}

func TestToolCalls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tools.gguf")
	if err := practice.Write(path, practice.Script{{When: []string{"SAY-TOOL"}, Say: practice.Call("read_file", "path", "a.go")}, {When: []string{enginetest.Short}, Say: enginetest.Words}}, practice.Options{Tools: true}); err != nil {
		t.Fatal(err)
	}
	_, c := start(t, lifecycle.Spec{Path: path, Context: 4096, Slots: 1})
	tools := []delegate.Tool{{Name: "read_file", Description: "reads a file", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)}}
	messages := user("SAY-TOOL")
	n, exact, err := c.Count(t.Context(), messages, tools)
	if err != nil || !exact {
		t.Fatal(err)
	}
	got, err := c.Complete(t.Context(), delegate.Request{Messages: messages, Tools: tools, Slot: 0})
	if err != nil {
		t.Fatal(err)
	}
	if got.Finish != delegate.FinishTools || len(got.Calls) != 1 || got.Calls[0].Name != "read_file" || !strings.Contains(got.Calls[0].Arguments, `"a.go"`) || got.Calls[0].ID == "" {
		t.Errorf("%+v", got)
	}
	if n != got.Tokens.Prompt {
		t.Errorf("counted %d, the engine saw %d", n, got.Tokens.Prompt)
	}
	next := append(messages, delegate.Message{Role: delegate.Assistant, Calls: got.Calls}, delegate.Message{Role: delegate.ToolRole, CallID: got.Calls[0].ID, Tool: "read_file", Content: "package a"})
	after, err := c.Complete(t.Context(), delegate.Request{Messages: next, Tools: tools, MaxTokens: 4, Slot: 0})
	if err != nil || after.Tokens.Cached < got.Tokens.Prompt-8 {
		t.Errorf("the turn after the tool: %+v, %v; before it %d", after.Tokens, err, got.Tokens.Prompt)
	}
}

func TestThinkingIsNoAnswer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "thinks.gguf")
	if err := practice.Write(path, practice.Script{{Say: "<think>\nLet me see.\n</think>\n\n" + enginetest.Words}}, practice.Options{Think: true}); err != nil {
		t.Fatal(err)
	}
	_, c := start(t, lifecycle.Spec{Path: path, Context: 4096, Slots: 1})
	for _, think := range []bool{false, true} {
		got, err := c.Complete(t.Context(), delegate.Request{Messages: user("anything"), Think: think, Slot: 0})
		if err != nil || strings.TrimSpace(got.Text) != enginetest.Words || (len(got.Thinking) > 0) != think {
			t.Errorf("think %v: %+v (%s), %v", think, got, got.Thinking, err)
		}
	}
}
