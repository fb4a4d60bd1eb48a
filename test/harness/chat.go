package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Message is one turn of a conversation.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Reply is what an engine said, with its own counters.
type Reply struct {
	Text         string
	Thinking     string
	Finish       string // as the engine says it: stop, length, tool_calls, …
	PromptTokens int    // the whole prompt, cached tokens included
	CachedTokens int
	Tokens       int // generated
	Tools        []ToolCall
}

// ToolCall is a call that the engine found in the model's answer.
type ToolCall struct {
	Name      string
	Arguments string // JSON
}

// Chat sends a conversation at temperature 0. fields are added to the request as they are. It fails the test on any
// status but 200.
func (s *Server) Chat(messages []Message, fields map[string]any) Reply {
	s.t.Helper()
	request := map[string]any{"model": s.Model, "messages": messages, "stream": false}
	path := "/v1/chat/completions"
	if s.Kind == Ollama {
		path = "/api/chat"
		request["options"] = map[string]any{"temperature": 0, "num_ctx": 16384}
		request["truncate"] = false
		request["shift"] = false
	} else {
		request["temperature"] = 0
	}
	for name, value := range fields {
		request[name] = value
	}
	answer := s.Post(path, request)
	if s.Kind == Ollama {
		return s.ollamaReply(answer)
	}
	return s.openAIReply(answer)
}

// Ask is Chat with one turn.
func (s *Server) Ask(prompt string) Reply {
	s.t.Helper()
	return s.Chat([]Message{{"user", prompt}}, nil)
}

// Post sends JSON and returns the body of a reply with status 200.
func (s *Server) Post(path string, request any) []byte {
	s.t.Helper()
	body, err := json.Marshal(request)
	if err != nil {
		s.t.Fatal(err)
	}
	response, err := http.Post(s.URL+path, "application/json", bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		s.t.Fatalf("%s%s answered %s: %.500s", s.Kind, path, response.Status, answer)
	}
	return answer
}

func (s *Server) decode(answer []byte, into any) {
	s.t.Helper()
	if err := json.Unmarshal(answer, into); err != nil {
		s.t.Fatalf("%s answered %.500s: %v", s.Kind, answer, err)
	}
}

func (s *Server) ollamaReply(answer []byte) Reply {
	s.t.Helper()
	var got struct {
		Message struct {
			Content, Thinking string
			ToolCalls         []struct {
				Function struct {
					Name      string
					Arguments json.RawMessage
				}
			} `json:"tool_calls"`
		}
		DoneReason string `json:"done_reason"`
		Prompt     int    `json:"prompt_eval_count"`
		Cached     int    `json:"prompt_eval_cached_count"`
		Tokens     int    `json:"eval_count"`
	}
	s.decode(answer, &got)
	reply := Reply{Text: got.Message.Content, Thinking: got.Message.Thinking, Finish: got.DoneReason,
		PromptTokens: got.Prompt, CachedTokens: got.Cached, Tokens: got.Tokens}
	for _, call := range got.Message.ToolCalls {
		reply.Tools = append(reply.Tools, ToolCall{call.Function.Name, string(call.Function.Arguments)})
	}
	return reply
}

func (s *Server) openAIReply(answer []byte) Reply {
	s.t.Helper()
	var got struct {
		Choices []struct {
			Message struct {
				Content   string
				Reasoning string `json:"reasoning_content"`
				ToolCalls []struct {
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
			Finish string `json:"finish_reason"`
		}
		Usage struct {
			Prompt     int `json:"prompt_tokens"`
			Completion int `json:"completion_tokens"`
			Details    struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
	}
	s.decode(answer, &got)
	if len(got.Choices) != 1 {
		s.t.Fatalf("%s answered with %d choices: %.500s", s.Kind, len(got.Choices), answer)
	}
	message := got.Choices[0].Message
	reply := Reply{Text: message.Content, Thinking: message.Reasoning, Finish: got.Choices[0].Finish,
		PromptTokens: got.Usage.Prompt, CachedTokens: got.Usage.Details.Cached, Tokens: got.Usage.Completion}
	for _, call := range message.ToolCalls {
		reply.Tools = append(reply.Tools, ToolCall{call.Function.Name, call.Function.Arguments})
	}
	return reply
}

// Tokens is how many tokens llama-server makes of a text.
func (s *Server) Tokens(text string) int {
	s.t.Helper()
	if s.Kind != LlamaServer {
		s.t.Fatal(fmt.Errorf("%s does not tokenize", s.Kind))
	}
	var got struct{ Tokens []int }
	s.decode(s.Post("/tokenize", map[string]any{"content": text}), &got)
	return len(got.Tokens)
}
