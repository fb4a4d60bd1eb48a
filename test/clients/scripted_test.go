//go:build clients

package clients

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// scripted is a model provider on loopback that, whatever it is asked, calls our tool with one step's arguments after
// the other and then says it is done. It speaks Anthropic's Messages and OpenAI's two APIs.
type scripted struct {
	*httptest.Server
	steps []map[string]any

	between map[int]func() // what happens before a step is asked for
	mu      sync.Mutex
	results []string // what the client sent back for each step
	shown   string   // all that the first full request held: what the model got to see
}

func newScripted(t *testing.T, steps ...map[string]any) *scripted {
	s := &scripted{steps: steps}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// script is one delegation from the first look to the last.
func script(w *world, llm any) []map[string]any {
	return []map[string]any{
		{"action": "capability"},
		{"action": "enable", "llm": llm},
		{"action": "analyze", "task": ask + ": write slug.txt from the pattern", "output_files": []any{map[string]any{"path": "slug.txt"}}, "verify": prove},
		{"action": "delegate", "task": ask + ": write slug.txt", "output_files": []any{map[string]any{"path": "slug.txt"}}, "verify": prove},
		{"action": "stats", "since": "1d"},
		{"action": "disable"},
	}
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var q query
	_ = json.Unmarshal(body, &q)
	switch {
	case strings.HasSuffix(r.URL.Path, "/count_tokens"):
		fmt.Fprint(w, `{"input_tokens":100}`)
	case strings.HasSuffix(r.URL.Path, "/messages"):
		s.messages(w, q, string(body))
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		s.chat(w, q, string(body))
	case strings.HasSuffix(r.URL.Path, "/responses"):
		s.responses(w, q, string(body))
	default:
		http.NotFound(w, r)
	}
}

// query is what all three request forms have of interest.
type query struct {
	Stream   bool              `json:"stream"`
	Tools    []json.RawMessage `json:"tools"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Input []struct {
		Type   string          `json:"type"`
		Output json.RawMessage `json:"output"`
	} `json:"input"`
}

// next notes what came back so far, and gives the next step's arguments: "" when there is none, or when the request has
// nothing to do with our tool (clients ask for titles and the like on the side).
func (s *scripted) next(q query, body string, results []string) (arguments, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !strings.Contains(body, "local_llm") || len(q.Tools) == 0 {
		return "", ""
	}
	if s.shown == "" {
		s.shown = body
	}
	if len(results) > len(s.results) {
		s.results = results
	}
	if len(results) >= len(s.steps) {
		return "", ""
	}
	if f := s.between[len(results)]; f != nil {
		f()
	}
	raw, _ := json.Marshal(s.steps[len(results)])
	return string(raw), fmt.Sprintf("call_%d", len(results))
}

// got is what came back for a step.
func (s *scripted) got(t *testing.T, step int) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if step >= len(s.results) {
		t.Fatalf("only %d of %d steps came back: %s", len(s.results), len(s.steps), s.results)
	}
	return s.results[step]
}

func event(w io.Writer, name string, data any) {
	raw, _ := json.Marshal(data)
	if name != "" {
		fmt.Fprintf(w, "event: %s\n", name)
	}
	fmt.Fprintf(w, "data: %s\n\n", raw)
}

type fields = map[string]any

func (s *scripted) messages(w http.ResponseWriter, q query, body string) {
	var results []string
	for _, m := range q.Messages {
		var blocks []struct {
			Type    string          `json:"type"`
			Content json.RawMessage `json:"content"`
		}
		_ = json.Unmarshal(m.Content, &blocks)
		for _, b := range blocks {
			if b.Type == "tool_result" {
				results = append(results, string(b.Content))
			}
		}
	}
	arguments, id := s.next(q, body, results)
	usage := fields{"input_tokens": 10, "output_tokens": 5}
	block, reason := fields{"type": "text", "text": ""}, "end_turn"
	delta := fields{"type": "text_delta", "text": "All done."}
	if arguments != "" {
		block, reason = fields{"type": "tool_use", "id": "toolu_" + id, "name": "mcp__plugin_workflow_local_llm__local_llm", "input": fields{}}, "tool_use"
		delta = fields{"type": "input_json_delta", "partial_json": arguments}
	}
	if !q.Stream {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(fields{"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted",
			"content": []any{fields{"type": "text", "text": "ok"}}, "stop_reason": "end_turn", "usage": usage})
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	event(w, "message_start", fields{"type": "message_start", "message": fields{"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": []any{}, "stop_reason": nil, "usage": usage}})
	event(w, "content_block_start", fields{"type": "content_block_start", "index": 0, "content_block": block})
	event(w, "content_block_delta", fields{"type": "content_block_delta", "index": 0, "delta": delta})
	event(w, "content_block_stop", fields{"type": "content_block_stop", "index": 0})
	event(w, "message_delta", fields{"type": "message_delta", "delta": fields{"stop_reason": reason}, "usage": usage})
	event(w, "message_stop", fields{"type": "message_stop"})
}

func (s *scripted) chat(w http.ResponseWriter, q query, body string) {
	var results []string
	for _, m := range q.Messages {
		if m.Role == "tool" {
			results = append(results, string(m.Content))
		}
	}
	arguments, id := s.next(q, body, results)
	delta, reason := fields{"role": "assistant", "content": "All done."}, "stop"
	if arguments != "" {
		delta, reason = fields{"role": "assistant", "tool_calls": []any{fields{"index": 0, "id": id, "type": "function",
			"function": fields{"name": "local_llm_local_llm", "arguments": arguments}}}}, "tool_calls"
	}
	w.Header().Set("Content-Type", "text/event-stream")
	chunk := func(delta fields, reason any) {
		event(w, "", fields{"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": []any{fields{"index": 0, "delta": delta, "finish_reason": reason}}})
	}
	chunk(delta, nil)
	chunk(fields{}, reason)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func (s *scripted) responses(w http.ResponseWriter, q query, body string) {
	var results []string
	for _, in := range q.Input {
		if in.Type == "function_call_output" {
			results = append(results, string(in.Output))
		}
	}
	arguments, id := s.next(q, body, results)
	item := fields{"type": "message", "id": "m", "role": "assistant", "content": []any{fields{"type": "output_text", "text": "All done."}}}
	if arguments != "" {
		item = fields{"type": "function_call", "id": "f_" + id, "call_id": id, "namespace": "mcp__local_llm", "name": "local_llm", "arguments": arguments}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	event(w, "response.created", fields{"type": "response.created", "response": fields{"id": "r"}})
	event(w, "response.output_item.done", fields{"type": "response.output_item.done", "output_index": 0, "item": item})
	event(w, "response.completed", fields{"type": "response.completed", "response": fields{"id": "r",
		"usage": fields{"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "input_tokens_details": nil, "output_tokens_details": nil}}})
}
