package openai

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"localllm/delegate"
	"localllm/internal/engine/protocoltest"
	"localllm/internal/engine/remote"
	"localllm/internal/engine/sse"
)

var format = protocoltest.Format{
	Connect: func(e remote.Endpoint) (delegate.Completer, error) { return Connect(e, "openai") },
	Event:   "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n",
	Error:   "data: {\"error\":{\"message\":\"Overloaded\",\"code\":529}}\n\n",
}

func TestProtocol(t *testing.T) {
	defer goleak.VerifyNone(t)
	t.Run("suite", format.Run)
}

func TestReasoningGoesBackAsItCame(t *testing.T) {
	for _, file := range []string{"thinking.sse", "thinking.json", "openrouter.sse"} {
		first, _ := format.Exchange(t, file, protocoltest.Ask)
		if strings.Contains(first.Text, "Let me") {
			t.Errorf("%s: thinking in the answer: %q", file, first.Text)
		}
		next := protocoltest.Ask
		next.Messages = append(append([]delegate.Message{}, next.Messages...),
			delegate.Message{Role: delegate.Assistant, Content: first.Text, Thinking: first.Thinking, Calls: []delegate.ToolCall{{ID: "c", Name: "read_file", Arguments: `{"path":`}}},
			delegate.Message{Role: delegate.ToolRole, CallID: "c", Tool: "read_file", Content: "package a"})
		_, sent := format.Exchange(t, "text.sse", next)
		all := sent.Body["messages"].([]any)
		assistant := all[2].(map[string]any)
		if file == "openrouter.sse" {
			details, _ := json.Marshal(assistant["reasoning_details"])
			if want := `[{"format":"f","index":0,"signature":"sig","text":"Let me see.","type":"reasoning.text"}]`; string(details) != want {
				t.Errorf("details went back as %s, want %s", details, want)
			}
		} else if assistant["reasoning_content"] != "Let me see." {
			t.Errorf("%s: went back as %v", file, assistant)
		}
		call := assistant["tool_calls"].([]any)[0].(map[string]any)["function"].(map[string]any)
		if !json.Valid([]byte(call["arguments"].(string))) {
			t.Errorf("malformed arguments went back, which servers fail on: %v", call)
		}
		if all[3].(map[string]any)["tool_call_id"] != "c" {
			t.Errorf("tool turn: %v", all[3])
		}
	}
}

func TestThinkingInTheText(t *testing.T) {
	for text, want := range map[string]string{
		"<think>\nhm\n</think>\n\nYes.": "Yes.", "<think>never closed": "", "a <think> b": "a <think> b", "  <think></think>x": "x",
	} {
		if got := withoutThinking(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestCallsOfOtherServers(t *testing.T) {
	for name, chunks := range map[string][]string{
		"no index":       {`{"id":"a","function":{"name":"f","arguments":"{}"}}`, `{"id":"b","function":{"name":"g","arguments":"{}"}}`},
		"index 0 always": {`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`, `{"index":0,"id":"b","function":{"name":"g","arguments":"{}"}}`},
		"no id":          {`{"function":{"name":"f","arguments":"{}"}}`, `{"function":{"name":"g","arguments":"{}"}}`},
		"objects":        {`{"index":0,"id":"a","function":{"name":"f","arguments":{}}}`, `{"index":1,"id":"b","function":{"name":"g","arguments":{}}}`},
		"from index 1":   {`{"index":1,"id":"a","function":{"name":"f","arguments":"{}"}}`, `{"index":2,"id":"b","function":{"name":"g","arguments":"{}"}}`},
	} {
		a := answer{client: &remote.Client{}}
		for _, c := range chunks {
			if err := a.Event(sse.Event{Data: []byte(`{"choices":[{"delta":{"tool_calls":[` + c + `]},"finish_reason":"stop"}]}`)}); err != nil {
				t.Fatal(err)
			}
		}
		out := a.completion()
		if len(out.Calls) != 2 || out.Calls[0].Name != "f" || out.Calls[1].Name != "g" || out.Calls[0].Arguments != "{}" || out.Calls[1].Arguments != "{}" || out.Finish != delegate.FinishTools {
			t.Errorf("%s: %+v %s", name, out.Calls, out.Finish)
		}
		if out.Calls[0].ID == "" || out.Calls[0].ID == out.Calls[1].ID {
			t.Errorf("%s: the ids must tell calls apart: %+v", name, out.Calls)
		}
	}
}

func TestWhatAServerRefusesIsLeftOut(t *testing.T) {
	refuse := func(text string) protocoltest.Step {
		return protocoltest.Answer(400, "application/json", `{"error":{"message":"`+text+`","type":"invalid_request_error"}}`)
	}
	s := protocoltest.Serve(t,
		refuse("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."),
		refuse("Unsupported value: 'temperature' does not support 0 with this model."),
		refuse("property 'chat_template_kwargs' is unsupported"),
		protocoltest.File(t, "text.sse"))
	c, err := Connect(protocoltest.Endpoint(s), "openai")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 2 {
		if _, err := c.Complete(context.Background(), protocoltest.Ask); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.Requests()); n != 5 {
		t.Errorf("%d requests, want 5: what was learned must be kept", n)
	}
	last := s.Last(t).Body
	if last["max_completion_tokens"] != 500.0 || last["max_tokens"] != nil || last["temperature"] != nil || last["chat_template_kwargs"] != nil {
		t.Errorf("sent %v", last)
	}
	// A refusal that names a field which was given up already is final.
	s = protocoltest.Serve(t, refuse("temperature is wrong"))
	if c, err = Connect(protocoltest.Endpoint(s), "openai"); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Complete(context.Background(), protocoltest.Ask); err == nil || len(s.Requests()) != 2 {
		t.Errorf("%v after %d requests, want an error after 2", err, len(s.Requests()))
	}
}

func TestRequest(t *testing.T) {
	r := protocoltest.Ask
	r.Model, r.Seed, r.MaxTokens = "m-2", 7, 0
	_, sent := format.Exchange(t, "text.sse", r, func(e *remote.Endpoint) {
		e.MaxTokens, e.Headers, e.ExtraBody = 900, map[string]string{"X-Title": "t"}, map[string]any{"provider": map[string]any{"sort": "price"}}
		e.BaseURL += "/openai/v1/chat/completions"
	})
	if sent.Path != "/openai/v1/chat/completions" || sent.Header.Get("Authorization") != "Bearer "+protocoltest.Key || sent.Header.Get("X-Title") != "t" {
		t.Errorf("%s %v", sent.Path, sent.Header)
	}
	if b := sent.Body; b["model"] != "m-2" || b["seed"] != 7.0 || b["max_tokens"] != 900.0 || b["temperature"] != 0.0 || b["provider"] == nil {
		t.Errorf("%v", b)
	}
}

func TestEstimateLearns(t *testing.T) {
	s := protocoltest.Serve(t, protocoltest.File(t, "text.sse"))
	c, err := Connect(protocoltest.Endpoint(s), "openai")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	long := []delegate.Message{{Role: delegate.User, Content: strings.Repeat("word ", 200)}}
	before, exact, err := c.Count(context.Background(), long, nil)
	if err != nil || exact || before < 300 {
		t.Errorf("%d %v %v", before, exact, err)
	}
	if _, err := c.Complete(context.Background(), delegate.Request{Messages: long, Slot: -1}); err != nil {
		t.Fatal(err)
	}
	if after, _, _ := c.Count(context.Background(), long, nil); after >= 60 || after < 25 {
		t.Errorf("after an answer that counted 25 tokens the estimate is %d, it was %d", after, before)
	}
}

func FuzzAnswer(f *testing.F) {
	protocoltest.Seeds(f, "text.sse", "calls.sse", "thinking.sse", "openrouter.sse", "text.json", "calls.json")
	f.Fuzz(func(t *testing.T, data []byte) {
		a := answer{client: &remote.Client{}}
		_ = sse.Read(strings.NewReader(string(data)), a.Event)
		_ = a.Whole(data)
		out := a.completion()
		if len(out.Calls) > mostCalls {
			t.Errorf("%d calls", len(out.Calls))
		}
		_ = messages([]delegate.Message{{Role: delegate.Assistant, Thinking: out.Thinking, Calls: out.Calls}})
	})
}
