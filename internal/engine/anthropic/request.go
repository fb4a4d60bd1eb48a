package anthropic

import (
	"bytes"
	"encoding/json"
	"strings"

	"localllm/delegate"
)

type request struct {
	Model       string    `json:"model"`
	MaxTokens   int       `json:"max_tokens,omitempty"`
	System      []block   `json:"system,omitempty"`
	Messages    []message `json:"messages"`
	Tools       []tool    `json:"tools,omitempty"`
	Stream      bool      `json:"stream,omitempty"`
	Temperature *float64  `json:"temperature,omitempty"`
	Thinking    *thinking `json:"thinking,omitempty"`
}

type thinking struct {
	Type   string `json:"type"`
	Budget int    `json:"budget_tokens,omitempty"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"input_schema"`
	Cache       *mark           `json:"cache_control,omitempty"`
}

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

// block is a piece of a turn. raw is sent as it came: a signature holds for the very bytes.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   string          `json:"content,omitempty"`
	Cache     *mark           `json:"cache_control,omitempty"`

	raw json.RawMessage
}

func (b block) MarshalJSON() ([]byte, error) {
	if b.raw != nil {
		return b.raw, nil
	}
	type plain block
	return json.Marshal(plain(b))
}

// mark tells Anthropic that what ends here will come again.
type mark struct {
	Type string `json:"type"`
}

var ephemeral = &mark{"ephemeral"}

// encode gives the history the format's shape: the system text apart, and one turn for neighbours of one role, so
// that the results of parallel calls stand in a single one.
func (c *Client) encode(r delegate.Request) request {
	q := request{Model: c.Model, Messages: []message{}}
	if r.Model != "" {
		q.Model = r.Model
	}
	for _, m := range r.Messages {
		if m.Role == delegate.System && len(q.Messages) == 0 {
			if strings.TrimSpace(m.Content) != "" {
				q.System = append(q.System, block{Type: "text", Text: m.Content})
			}
			continue
		}
		role, blocks := encodeTurn(m)
		if len(blocks) == 0 {
			continue // the format has no empty turns
		}
		if n := len(q.Messages); n > 0 && q.Messages[n-1].Role == role {
			q.Messages[n-1].Content = append(q.Messages[n-1].Content, blocks...)
			continue
		}
		q.Messages = append(q.Messages, message{role, blocks})
	}
	for _, t := range r.Tools {
		schema := t.Schema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object"}`)
		}
		q.Tools = append(q.Tools, tool{Name: t.Name, Description: t.Description, Schema: schema})
	}
	if !c.GivenUp("cache_control") {
		q.mark()
	}
	return q
}

// mark sets three of the four marks that a request may have: after the tools, the system text, and the last turn. The
// last one moves on with the history; Anthropic looks back from it for what it has.
func (q *request) mark() {
	if n := len(q.Tools); n > 0 {
		q.Tools[n-1].Cache = ephemeral
	}
	if n := len(q.System); n > 0 {
		q.System[n-1].Cache = ephemeral
	}
	for i := len(q.Messages) - 1; i >= 0; i-- {
		turn := q.Messages[i].Content
		if b := &turn[len(turn)-1]; b.raw == nil { // thinking can't be marked
			b.Cache = ephemeral
			return
		}
	}
}

func encodeTurn(m delegate.Message) (string, []block) {
	var blocks []block
	switch m.Role {
	case delegate.ToolRole:
		return delegate.User, []block{{Type: "tool_result", ToolUseID: m.CallID, Content: m.Content}}
	case delegate.Assistant:
		blocks = kept(m.Thinking)
		if strings.TrimSpace(m.Content) != "" {
			blocks = append(blocks, block{Type: "text", Text: m.Content})
		}
		for _, call := range m.Calls {
			blocks = append(blocks, block{Type: "tool_use", ID: call.ID, Name: call.Name, Input: input(call.Arguments)})
		}
		return delegate.Assistant, blocks
	}
	if strings.TrimSpace(m.Content) != "" {
		blocks = []block{{Type: "text", Text: m.Content}}
	}
	return delegate.User, blocks
}

// kept are the thinking blocks of a turn, where they are of this format.
func kept(thinking json.RawMessage) []block {
	var raw []json.RawMessage
	if json.Unmarshal(thinking, &raw) != nil {
		return nil
	}
	var blocks []block
	for _, r := range raw {
		var b struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(r, &b) == nil && (b.Type == "thinking" || b.Type == "redacted_thinking") {
			blocks = append(blocks, block{Type: b.Type, raw: r})
		}
	}
	return blocks
}

// input is a call's arguments as the format has them: always an object.
func input(arguments string) json.RawMessage {
	text := bytes.TrimSpace([]byte(arguments))
	switch {
	case len(text) == 0:
		return json.RawMessage("{}")
	case text[0] == '{' && json.Valid(text):
		return text
	}
	data, _ := json.Marshal(map[string]string{"malformed": arguments})
	return data
}
