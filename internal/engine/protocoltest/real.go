package protocoltest

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"localllm/delegate"
	"localllm/internal/engine/remote"
	"localllm/internal/practice"
)

// Script is what the practice model says to the checks of Real.
var Script = practice.Script{
	{When: []string{"WHO-ARE-YOU"}, Say: "I am the practice model, and this is a whole sentence."},
	{When: []string{"READ-BOTH"}, Say: practice.Call("read_file", "path", "a.go") + "\n" + practice.Call("read_file", "path", "b.go")},
	{When: []string{"READ-BOTH", "PACKAGE-B"}, Say: "Both were read."},
}

// Real holds a backend to what a real engine does: an answer, its end by the limit, parallel calls and what follows
// their results, the cache's counts, and a request that is given up.
func Real(t *testing.T, c delegate.Completer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	system := delegate.Message{Role: delegate.System, Content: "You help. " + strings.Repeat("All of this comes first each time. ", 20)}
	ask := func(r delegate.Request) delegate.Completion {
		t.Helper()
		r.Slot = -1
		out, err := c.Complete(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		if out.Tokens.Prompt < 50 || out.Tokens.Generated == 0 {
			t.Errorf("counts %+v", out.Tokens)
		}
		return out
	}
	who := []delegate.Message{system, {Role: delegate.User, Content: "WHO-ARE-YOU"}}
	once := ask(delegate.Request{Messages: who, MaxTokens: 200})
	if once.Text != Script[0].Say || once.Finish != delegate.FinishStop {
		t.Errorf("answer %q, %q", once.Text, once.Finish)
	}
	again := ask(delegate.Request{Messages: who, MaxTokens: 3})
	if again.Finish != delegate.FinishLength || !strings.HasPrefix(Script[0].Say, again.Text) {
		t.Errorf("cut answer %q, %q", again.Text, again.Finish)
	}
	if again.Tokens.Cached < again.Tokens.Prompt/2 || again.Tokens.Prompt != once.Tokens.Prompt {
		t.Errorf("the same prompt again: %+v, at first %+v", again.Tokens, once.Tokens)
	}
	if n, exact, err := c.Count(ctx, who, nil); err != nil || (exact && n != again.Tokens.Prompt) || n < again.Tokens.Prompt/3 {
		t.Errorf("counted %d (exact: %v, %v), the engine says %d", n, exact, err, again.Tokens.Prompt)
	}
	tools := []delegate.Tool{{Name: "read_file", Description: "reads a file", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)}}
	history := []delegate.Message{system, {Role: delegate.User, Content: "READ-BOTH"}}
	out := ask(delegate.Request{Messages: history, Tools: tools, MaxTokens: 300})
	if out.Finish != delegate.FinishTools || len(out.Calls) != 2 || out.Calls[0].ID == out.Calls[1].ID {
		t.Fatalf("calls %+v, finish %q, text %q", out.Calls, out.Finish, out.Text)
	}
	for i, want := range []string{"a.go", "b.go"} {
		var arguments struct{ Path string }
		if err := json.Unmarshal([]byte(out.Calls[i].Arguments), &arguments); err != nil || arguments.Path != want || out.Calls[i].Name != "read_file" {
			t.Errorf("call %d: %+v", i, out.Calls[i])
		}
	}
	history = append(history, delegate.Message{Role: delegate.Assistant, Content: out.Text, Calls: out.Calls, Thinking: out.Thinking},
		delegate.Message{Role: delegate.ToolRole, CallID: out.Calls[0].ID, Tool: "read_file", Content: "package a"},
		delegate.Message{Role: delegate.ToolRole, CallID: out.Calls[1].ID, Tool: "read_file", Content: "PACKAGE-B"})
	if out := ask(delegate.Request{Messages: history, Tools: tools, MaxTokens: 100}); out.Text != "Both were read." || out.Finish != delegate.FinishStop {
		t.Errorf("after the results: %q %q", out.Text, out.Finish)
	}
}

// At is an endpoint for a real engine on this machine.
func At(url, model string) remote.Endpoint {
	return remote.Endpoint{Profile: "real", BaseURL: url, Model: model, Loopback: true, Slots: 1, Context: 8192}
}
