package llamaserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"localllm/delegate"
	"localllm/internal/engine/loopback"
	"localllm/internal/proc"
	"localllm/lifecycle"
)

// Client talks to a llama-server that the keeper runs.
type Client struct {
	endpoint lifecycle.Endpoint
	key      string
	http     *http.Client

	share sync.Mutex // one Share at a time: each stops the slots that it writes
}

var (
	_ delegate.Completer  = (*Client)(nil)
	_ delegate.SlotSharer = (*Client)(nil)
)

// Connect reads the endpoint's key and makes a client. It asks the server nothing.
func Connect(endpoint lifecycle.Endpoint) (*Client, error) {
	c := &Client{endpoint: endpoint, http: loopback.Client()}
	if endpoint.APIKeyFile != "" {
		key, err := os.ReadFile(endpoint.APIKeyFile)
		if err != nil {
			return nil, fmt.Errorf("reading the engine's key: %w", err)
		}
		c.key = strings.TrimSpace(string(key))
	}
	return c, nil
}

// Close lets go of idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Limits implements delegate.Completer.
func (c *Client) Limits() delegate.Limits {
	return delegate.Limits{
		Context: c.endpoint.Context, Slots: max(c.endpoint.Slots, 1), Loopback: true,
		Engine: lifecycle.LlamaServer, Model: c.endpoint.Model, PinnedSlots: c.endpoint.SlotStates,
	}
}

func (c *Client) call(ctx context.Context, path string, body, out any) error {
	return loopback.JSON(ctx, c.http, c.endpoint.URL+path, c.key, body, out)
}

// chat is a request in the form of /v1/chat/completions, and as far as it goes of /apply-template.
type chat struct {
	Messages    []message      `json:"messages"`
	Tools       []tool         `json:"tools,omitempty"`
	Stream      bool           `json:"stream,omitempty"`
	Options     *streamOptions `json:"stream_options,omitempty"`
	Progress    bool           `json:"return_progress,omitempty"`
	MaxTokens   int            `json:"max_tokens,omitempty"`
	Temperature *float64       `json:"temperature,omitempty"`
	Seed        *int           `json:"seed,omitempty"`
	Slot        *int           `json:"id_slot,omitempty"`
	Cache       bool           `json:"cache_prompt"`
	Template    map[string]any `json:"chat_template_kwargs,omitempty"`
	Budget      *int           `json:"thinking_budget_tokens,omitempty"`
}

type streamOptions struct {
	Usage bool `json:"include_usage"`
}

type message struct {
	Role      string  `json:"role"`
	Content   string  `json:"content"`
	Calls     []call  `json:"tool_calls,omitempty"`
	CallID    string  `json:"tool_call_id,omitempty"`
	Name      string  `json:"name,omitempty"`
	Reasoning *string `json:"reasoning_content,omitempty"`
}

type call struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type tool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
	} `json:"function"`
}

func (c *Client) chat(r delegate.Request) chat {
	q := chat{Cache: true, Template: map[string]any{"enable_thinking": r.Think}}
	if !r.Think {
		// Templates that don't know the switch are held by the budget instead.
		none := 0
		q.Budget = &none
	}
	for _, m := range r.Messages {
		q.Messages = append(q.Messages, encode(m))
	}
	for _, t := range r.Tools {
		u := tool{Type: "function"}
		u.Function.Name, u.Function.Description, u.Function.Parameters = t.Name, t.Description, t.Schema
		q.Tools = append(q.Tools, u)
	}
	if r.Slot >= 0 && r.Slot < max(c.endpoint.Slots, 1) {
		q.Slot = &r.Slot
	}
	return q
}

func encode(m delegate.Message) message {
	n := message{Role: m.Role, Content: m.Content, CallID: m.CallID, Name: m.Tool}
	for _, c := range m.Calls {
		d := call{ID: c.ID, Type: "function"}
		d.Function.Name, d.Function.Arguments = c.Name, c.Arguments
		n.Calls = append(n.Calls, d)
	}
	var reasoning string
	if json.Unmarshal(m.Thinking, &reasoning) == nil && reasoning != "" {
		n.Reasoning = &reasoning
	}
	return n
}

// render is the text that the server makes of a request by the model's own template.
func (c *Client) render(ctx context.Context, r delegate.Request) (string, error) {
	var answer struct {
		Prompt string `json:"prompt"`
	}
	q := c.chat(r)
	q.Slot = nil
	err := c.call(ctx, "/apply-template", q, &answer)
	return answer.Prompt, err
}

// Count implements delegate.Completer. The count is exact: it is what the server's own tokenizer makes of its own
// template.
func (c *Client) Count(ctx context.Context, messages []delegate.Message, tools []delegate.Tool) (int, bool, error) {
	prompt, err := c.render(ctx, delegate.Request{Messages: messages, Tools: tools, Slot: -1})
	if err != nil {
		return 0, false, fmt.Errorf("counting tokens: %w", err)
	}
	n, err := c.tokens(ctx, prompt)
	return n, err == nil, err
}

func (c *Client) tokens(ctx context.Context, prompt string) (int, error) {
	var answer struct {
		Tokens []json.Number `json:"tokens"`
	}
	q := map[string]any{"content": prompt, "add_special": true, "parse_special": true}
	if err := c.call(ctx, "/tokenize", q, &answer); err != nil {
		return 0, fmt.Errorf("counting tokens: %w", err)
	}
	return len(answer.Tokens), nil
}

// Warm prefills the part that every request beginning like r will share: r's last message is taken as the beginning
// of the message to come. It makes no output. The counts say how much of it was there already.
func (c *Client) Warm(ctx context.Context, r delegate.Request) (delegate.Tokens, error) {
	prefix, err := c.prefix(ctx, r)
	if err != nil || prefix == "" {
		return delegate.Tokens{}, err
	}
	q := map[string]any{"prompt": prefix, "n_predict": 0, "cache_prompt": true, "temperature": 0}
	if r.Slot >= 0 && r.Slot < max(c.endpoint.Slots, 1) {
		q["id_slot"] = r.Slot
	}
	var answer struct {
		Timings timings `json:"timings"`
	}
	if err := c.call(ctx, "/completion", q, &answer); err != nil {
		return delegate.Tokens{}, fmt.Errorf("warming the prompt's prefix: %w", err)
	}
	return delegate.Tokens{Prompt: answer.Timings.Cached + answer.Timings.Prompt, Cached: answer.Timings.Cached}, nil
}

// prefix is what two requests that go on differently after r have in common, by the model's own template.
func (c *Client) prefix(ctx context.Context, r delegate.Request) (string, error) {
	if len(r.Messages) == 0 {
		return "", nil
	}
	var text [2]string
	for i, more := range []string{"alpha", "Omega"} {
		q := r
		q.Messages = append([]delegate.Message(nil), r.Messages...)
		last := &q.Messages[len(q.Messages)-1]
		if last.Role == delegate.User {
			last.Content += more
		} else {
			q.Messages = append(q.Messages, delegate.Message{Role: delegate.User, Content: more})
		}
		rendered, err := c.render(ctx, q)
		if err != nil {
			return "", fmt.Errorf("warming the prompt's prefix: %w", err)
		}
		text[i] = rendered
	}
	n := 0
	for n < len(text[0]) && n < len(text[1]) && text[0][n] == text[1][n] {
		n++
	}
	return text[0][:n], nil
}

// Share implements delegate.SlotSharer.
func (c *Client) Share(ctx context.Context, from int, to []int) error {
	if !c.endpoint.SlotStates {
		return fmt.Errorf("sharing slot %d: %s keeps no slot states for this model", from, c.endpoint.Engine)
	}
	c.share.Lock()
	defer c.share.Unlock()
	name := "share-" + proc.NewNonce() + ".bin"
	defer os.Remove(filepath.Join(slotFolder(c.endpoint.APIKeyFile), name))
	file := map[string]string{"filename": name}
	if err := c.call(ctx, fmt.Sprintf("/slots/%d?action=save", from), file, nil); err != nil {
		return fmt.Errorf("saving slot %d: %w", from, err)
	}
	for _, slot := range to {
		if slot == from {
			continue
		}
		if err := c.call(ctx, fmt.Sprintf("/slots/%d?action=restore", slot), file, nil); err != nil {
			return fmt.Errorf("restoring slot %d: %w", slot, err)
		}
	}
	return nil
}
