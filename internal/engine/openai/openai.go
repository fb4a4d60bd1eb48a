// Package openai asks models in the format of chat completions, as OpenAI, vLLM, LM Studio, LiteLLM, llama-server,
// OpenRouter, DeepSeek, Groq and many others speak it. It starts nothing and never shows a model's thinking as its answer.
package openai

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"localllm/delegate"
	"localllm/internal/engine/remote"
)

// Client asks one model of one endpoint.
type Client struct {
	*remote.Client
	engine  string
	dialect dialect
}

var _ delegate.Completer = (*Client)(nil)

// Connect makes a client; engine is its name in results. It asks the server nothing.
func Connect(e remote.Endpoint, engine string) (*Client, error) {
	c, err := remote.Open(e, remote.Bearer)
	if err != nil {
		return nil, err
	}
	return &Client{Client: c, engine: engine, dialect: dialectOf(c, engine)}, nil
}

// Limits implements delegate.Completer.
func (c *Client) Limits() delegate.Limits { return c.Client.Limits(c.engine) }

// Complete implements delegate.Completer. Request.Slot is not looked at: the server shares out its places itself.
func (c *Client) Complete(ctx context.Context, r delegate.Request) (delegate.Completion, error) {
	var out delegate.Completion
	err := c.Adapt(func() (err error) {
		out, err = c.complete(ctx, r)
		return err
	}, named)
	return out, err
}

func (c *Client) complete(ctx context.Context, r delegate.Request) (delegate.Completion, error) {
	var a *answer
	err := c.Ask(ctx, "/chat/completions", c.request(r), func() remote.Reply {
		a = &answer{client: c.Client, say: r.Progress}
		a.tell("waiting")
		return a
	})
	if err == nil && !a.ended {
		err = c.Bad("the answer broke off before its end", nil)
	}
	out := a.completion()
	if err == nil {
		c.Learn(r.Messages, r.Tools, out.Tokens.Prompt)
	}
	return out, err
}

// Count implements delegate.Completer. It is exact on llama-server, which renders and counts for whoever asks; the
// format itself has no way to count.
func (c *Client) Count(ctx context.Context, messages []delegate.Message, tools []delegate.Tool) (int, bool, error) {
	if c.dialect.tokenizes && !c.GivenUp("tokenize") {
		n, err := c.tokenize(ctx, messages, tools)
		if err == nil {
			return n, true, nil
		}
		if ctx.Err() != nil {
			return 0, false, context.Cause(ctx)
		}
		c.GiveUp("tokenize")
	}
	return c.Estimate(messages, tools), false, nil
}

func (c *Client) tokenize(ctx context.Context, messages []delegate.Message, tools []delegate.Tool) (int, error) {
	var rendered struct {
		Prompt string `json:"prompt"`
	}
	q := c.request(delegate.Request{Messages: messages, Tools: tools})
	body := map[string]any{}
	for _, field := range []string{"messages", "tools", "chat_template_kwargs"} {
		if v, ok := q[field]; ok {
			body[field] = v
		}
	}
	if err := c.Post(ctx, "//apply-template", body, &rendered); err != nil {
		return 0, err
	}
	var counted struct {
		Tokens []json.Number `json:"tokens"`
	}
	body = map[string]any{"content": rendered.Prompt, "add_special": true, "parse_special": true}
	if err := c.Post(ctx, "//tokenize", body, &counted); err != nil {
		return 0, err
	}
	if len(counted.Tokens) == 0 {
		return 0, errors.New("it counted no tokens")
	}
	return len(counted.Tokens), nil
}

// request is the body to send. It is a map because servers differ in what they take at all.
func (c *Client) request(r delegate.Request) map[string]any {
	q := map[string]any{"model": first(r.Model, c.Model), "messages": messages(r.Messages)}
	if len(r.Tools) > 0 {
		q["tools"] = tools(r.Tools)
	}
	limit := r.MaxTokens
	if c.MaxTokens > 0 && (limit == 0 || limit > c.MaxTokens) {
		limit = c.MaxTokens
	}
	if limit > 0 {
		q[c.dialect.limitField] = limit
		if c.GivenUp("max_tokens") {
			delete(q, "max_tokens")
			q["max_completion_tokens"] = limit
		}
	}
	if !c.WholeAnswers {
		q["stream"] = true
		c.put(q, "stream_options", map[string]any{"include_usage": true})
	}
	c.put(q, "temperature", r.Temperature)
	if r.Seed != 0 {
		c.put(q, "seed", r.Seed)
	}
	if c.dialect.thinking != nil {
		field, value := c.dialect.thinking(r.Think)
		c.put(q, field, value)
	}
	return q
}

func (c *Client) put(q map[string]any, field string, value any) {
	if !c.GivenUp(field) {
		q[field] = value
	}
}

// optional are the fields that an answer can do without, the ones that servers are known to refuse.
var optional = []string{"max_tokens", "stream_options", "temperature", "seed", "chat_template_kwargs", "reasoning", "thinking"}

// named are those of them that a refusal names.
func named(message string) []string {
	var fields []string
	for _, field := range optional {
		// Too many tokens are not the field's fault, unless another name for it is told.
		if strings.Contains(message, field) && (field != "max_tokens" || strings.Contains(message, "max_completion_tokens")) {
			fields = append(fields, field)
		}
	}
	return fields
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func messages(all []delegate.Message) []map[string]any {
	out := make([]map[string]any, 0, len(all))
	for _, m := range all {
		n := map[string]any{"role": m.Role, "content": m.Content}
		if m.Role == delegate.ToolRole {
			n["tool_call_id"] = m.CallID
		}
		if len(m.Calls) > 0 {
			n["tool_calls"] = calls(m.Calls)
		}
		for field, value := range reasoning(m.Thinking) {
			n[field] = value
		}
		out = append(out, n)
	}
	return out
}

func calls(all []delegate.ToolCall) []map[string]any {
	out := make([]map[string]any, 0, len(all))
	for _, c := range all {
		arguments := c.Arguments
		if !json.Valid([]byte(arguments)) {
			// Servers parse the history's arguments, and fail on what the model wrote wrong.
			wrapped := map[string]string{"malformed": arguments}
			if strings.TrimSpace(arguments) == "" {
				wrapped = map[string]string{}
			}
			data, _ := json.Marshal(wrapped)
			arguments = string(data)
		}
		out = append(out, map[string]any{"id": c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": arguments}})
	}
	return out
}

func tools(all []delegate.Tool) []map[string]any {
	out := make([]map[string]any, 0, len(all))
	for _, t := range all {
		f := map[string]any{"name": t.Name, "description": t.Description}
		if len(t.Schema) > 0 {
			f["parameters"] = t.Schema
		}
		out = append(out, map[string]any{"type": "function", "function": f})
	}
	return out
}

// Fields that servers keep a model's reasoning in. What came in one goes back in the same.
var reasoningFields = []string{"reasoning_content", "reasoning", "reasoning_details"}

// reasoning is what a kept thinking puts into its turn. Other backends' forms put nothing, but for plain text.
func reasoning(kept json.RawMessage) map[string]json.RawMessage {
	var text string
	if json.Unmarshal(kept, &text) == nil && text != "" {
		return map[string]json.RawMessage{"reasoning_content": kept}
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(kept, &fields) != nil {
		return nil
	}
	out := map[string]json.RawMessage{}
	for _, f := range reasoningFields {
		if v, ok := fields[f]; ok {
			out[f] = v
		}
	}
	return out
}

// dialect is in what a server differs from the format.
type dialect struct {
	limitField string
	tokenizes  bool // it has llama-server's routes
	thinking   func(on bool) (string, any)
}

func dialectOf(c *remote.Client, engine string) dialect {
	d := dialect{limitField: "max_tokens"}
	host, _, _ := strings.Cut(c.Host(), ":")
	switch {
	case host == "api.openai.com":
		d.limitField = "max_completion_tokens"
	case host == "openrouter.ai":
		d.thinking = func(on bool) (string, any) { return "reasoning", map[string]any{"enabled": on} }
	case host == "api.deepseek.com":
		kind := map[bool]string{true: "enabled", false: "disabled"}
		d.thinking = func(on bool) (string, any) { return "thinking", map[string]any{"type": kind[on]} }
	case c.Loopback || engine == "llama-server":
		d.thinking = func(on bool) (string, any) { return "chat_template_kwargs", map[string]any{"enable_thinking": on} }
	}
	d.tokenizes = engine == "llama-server"
	return d
}
