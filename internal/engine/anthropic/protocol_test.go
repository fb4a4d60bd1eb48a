package anthropic

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
	Connect: func(e remote.Endpoint) (delegate.Completer, error) { return Connect(e, "anthropic") },
	Event:   "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}}\n\n",
	Error:   "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
}

func TestProtocol(t *testing.T) {
	defer goleak.VerifyNone(t)
	t.Run("suite", format.Run)
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestThinkingGoesBackWithItsSignature(t *testing.T) {
	for _, file := range []string{"thinking.sse", "thinking.json"} {
		first, _ := format.Exchange(t, file, protocoltest.Ask)
		next := protocoltest.Ask
		next.Messages = append(append([]delegate.Message{}, next.Messages...),
			delegate.Message{Role: delegate.Assistant, Content: first.Text, Thinking: first.Thinking, Calls: []delegate.ToolCall{
				{ID: "a", Name: "read_file", Arguments: `{"path":"a.go"}`}, {ID: "b", Name: "read_file", Arguments: `{"path":`}, {ID: "c", Name: "read_file"}}},
			delegate.Message{Role: delegate.ToolRole, CallID: "a", Content: "package a"},
			delegate.Message{Role: delegate.ToolRole, CallID: "b", Content: "malformed"},
			delegate.Message{Role: delegate.ToolRole, CallID: "c", Content: "malformed"},
			delegate.Message{Role: delegate.User, Content: "Go on."})
		_, sent := format.Exchange(t, "text.sse", next)
		all := sent.Body["messages"].([]any)
		if len(all) != 3 {
			t.Fatalf("%s: %d turns, want 3: results of parallel calls stand in one: %s", file, len(all), sent.Raw)
		}
		blocks := all[1].(map[string]any)["content"].([]any)
		for i, want := range []string{
			`{"signature":"EqQBCgIYAhIM+/sig==","thinking":"Let me see.","type":"thinking"}`,
			`{"data":"EmwKAhgBEgy3va3pzix/LafPsn4a","type":"redacted_thinking"}`,
			`{"text":"Done.","type":"text"}`,
			`{"id":"a","input":{"path":"a.go"},"name":"read_file","type":"tool_use"}`,
			`{"id":"b","input":{"malformed":"{\"path\":"},"name":"read_file","type":"tool_use"}`,
			`{"id":"c","input":{},"name":"read_file","type":"tool_use"}`,
		} {
			if got := marshal(t, blocks[i]); got != want {
				t.Errorf("%s: block %d went back as %s, want %s", file, i, got, want)
			}
		}
		if results := all[2].(map[string]any)["content"].([]any); len(results) != 4 || results[1].(map[string]any)["tool_use_id"] != "b" {
			t.Errorf("%s: results %s", file, marshal(t, results))
		}
	}
}

func TestCachingMarks(t *testing.T) {
	_, sent := format.Exchange(t, "text.sse", protocoltest.Ask)
	for what, want := range map[string]string{
		"system":   `[{"cache_control":{"type":"ephemeral"},"text":"Be brief.","type":"text"}]`,
		"messages": `[{"content":[{"cache_control":{"type":"ephemeral"},"text":"Say hello.","type":"text"}],"role":"user"}]`,
	} {
		if got := marshal(t, sent.Body[what]); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	if n := strings.Count(sent.Raw, "cache_control"); n != 3 {
		t.Errorf("%d marks, want 3 (the format allows 4)", n)
	}
	// The history before the last turn is the same bytes each time, marks apart.
	next := protocoltest.Ask
	next.Messages = append(append([]delegate.Message{}, next.Messages...), delegate.Message{Role: delegate.Assistant, Content: "Hello."}, delegate.Message{Role: delegate.User, Content: "Again."})
	_, later := format.Exchange(t, "text.sse", next)
	bare := func(s string) string { return strings.ReplaceAll(s, `,"cache_control":{"type":"ephemeral"}`, "") }
	start, _, _ := strings.Cut(bare(sent.Raw), `"}]}],"tools"`)
	if !strings.HasPrefix(bare(later.Raw), start) {
		t.Errorf("the prefix changed:\n%s\n%s", start, bare(later.Raw))
	}
}

func TestWhatAServerRefusesIsLeftOut(t *testing.T) {
	refuse := func(text string) protocoltest.Step {
		return protocoltest.Answer(400, "application/json", `{"type":"error","error":{"type":"invalid_request_error","message":"`+text+`"}}`)
	}
	s := protocoltest.Serve(t, refuse("system.0.cache_control: Extra inputs are not permitted"),
		refuse("thinking.type.enabled is not supported for this model. Use thinking.type.adaptive"), protocoltest.File(t, "text.sse"))
	c, err := Connect(protocoltest.Endpoint(s), "anthropic")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r := protocoltest.Ask
	r.Think, r.MaxTokens = true, 8000
	for range 2 {
		if _, err := c.Complete(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	last := s.Last(t)
	if n := len(s.Requests()); n != 4 || strings.Contains(last.Raw, "cache_control") || marshal(t, last.Body["thinking"]) != `{"type":"adaptive"}` {
		t.Errorf("%d requests, the last: %s", n, last.Raw)
	}
}

func TestThinkingIsSwitched(t *testing.T) {
	for _, c := range []struct {
		think bool
		limit int
		want  string
	}{
		{false, 500, `{"type":"disabled"}`}, {true, 500, "null"}, {true, 8000, `{"budget_tokens":4000,"type":"enabled"}`}, {true, 100000, `{"budget_tokens":16000,"type":"enabled"}`},
	} {
		r := protocoltest.Ask
		r.Think, r.MaxTokens = c.think, c.limit
		_, sent := format.Exchange(t, "text.sse", r)
		if got := marshal(t, sent.Body["thinking"]); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
		// With thinking the format takes no temperature.
		if _, has := sent.Body["temperature"]; has == strings.Contains(c.want, "enabled") {
			t.Errorf("%+v: temperature sent: %v", c, has)
		}
	}
}

func TestKeyAndVersionHeaders(t *testing.T) {
	_, sent := format.Exchange(t, "text.sse", protocoltest.Ask)
	h := sent.Header
	if sent.Path != "/v1/messages" || h.Get("X-Api-Key") != protocoltest.Key || h.Get("Authorization") != "Bearer "+protocoltest.Key || h.Get("Anthropic-Version") != version {
		t.Errorf("%s %v", sent.Path, h)
	}
}

func TestLimitIsAlwaysSent(t *testing.T) {
	for _, c := range []struct{ asked, profile, window, want int }{
		{500, 0, 0, 500}, {0, 0, 0, answerTokens}, {0, 4000, 0, 4000}, {9000, 4000, 0, 4000}, {0, 0, 1_000_000, 2 * answerTokens}, {0, 0, 200, 256},
	} {
		client, err := Connect(remote.Endpoint{BaseURL: "http://127.0.0.1:1", MaxTokens: c.profile, Context: c.window}, "anthropic")
		if err != nil {
			t.Fatal(err)
		}
		if got := client.limit(delegate.Request{MaxTokens: c.asked, Messages: protocoltest.Ask.Messages}); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

func TestCount(t *testing.T) {
	s := protocoltest.Serve(t, protocoltest.Answer(200, "application/json", `{"input_tokens":42}`), protocoltest.Answer(404, "text/plain", "404 page not found"))
	c, err := Connect(protocoltest.Endpoint(s), "anthropic")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n, exact, err := c.Count(context.Background(), protocoltest.Ask.Messages, nil); n != 42 || !exact || err != nil {
		t.Errorf("%d %v %v", n, exact, err)
	}
	for range 2 {
		if n, exact, err := c.Count(context.Background(), protocoltest.Ask.Messages, nil); n == 0 || exact || err != nil {
			t.Errorf("%d %v %v", n, exact, err)
		}
	}
	if n := len(s.Requests()); n != 2 || s.Last(t).Path != "/v1/messages/count_tokens" {
		t.Errorf("%d requests: a server that can't count is not asked again", n)
	}
}

func FuzzAnswer(f *testing.F) {
	protocoltest.Seeds(f, "text.sse", "calls.sse", "thinking.sse", "text.json", "calls.json", "thinking.json")
	f.Fuzz(func(t *testing.T, data []byte) {
		a := answer{client: &remote.Client{}}
		_ = sse.Read(strings.NewReader(string(data)), a.Event)
		_ = a.Whole(data)
		out := a.completion()
		c := &Client{Client: &remote.Client{}}
		q := c.encode(delegate.Request{Messages: []delegate.Message{{Role: delegate.Assistant, Thinking: out.Thinking, Content: out.Text, Calls: out.Calls}}})
		if _, err := json.Marshal(q); err != nil {
			t.Errorf("what came can't go back: %v", err)
		}
	})
}
