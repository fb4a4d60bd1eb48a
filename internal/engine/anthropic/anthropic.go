// Package anthropic asks models in the format of Anthropic's messages, as Anthropic, LiteLLM, llama-server, Ollama
// and others speak it. It starts nothing and never shows a model's thinking as its answer.
package anthropic

import (
	"context"
	"net/http"
	"strings"

	"localllm/delegate"
	"localllm/internal/engine/remote"
)

// version of the format that is spoken here.
const version = "2023-06-01"

// answerTokens is asked for where neither the request, the profile nor the window says: the format wants a number.
const answerTokens = 16384

// Client asks one model of one endpoint.
type Client struct {
	*remote.Client
	engine string
	own    bool // Anthropic's own server
}

var _ delegate.Completer = (*Client)(nil)

// Connect makes a client; engine is its name in results. It asks the server nothing.
func Connect(e remote.Endpoint, engine string) (*Client, error) {
	headers := map[string]string{"anthropic-version": version}
	for name, value := range e.Headers {
		headers[strings.ToLower(name)] = value
	}
	e.Headers = headers
	own := strings.Contains(e.BaseURL, "://api.anthropic.com")
	c, err := remote.Open(e, func(h http.Header, key string) {
		h.Set("X-Api-Key", key)
		if !own {
			remote.Bearer(h, key) // proxies look there
		}
	})
	if err != nil {
		return nil, err
	}
	return &Client{Client: c, engine: engine, own: own}, nil
}

// Limits implements delegate.Completer.
func (c *Client) Limits() delegate.Limits { return c.Client.Limits(c.engine) }

// Complete implements delegate.Completer. Request.Slot is not looked at, and Seed has no place in the format.
func (c *Client) Complete(ctx context.Context, r delegate.Request) (delegate.Completion, error) {
	var out delegate.Completion
	err := c.Adapt(func() (err error) {
		out, err = c.complete(ctx, r)
		return err
	}, named)
	return out, err
}

func (c *Client) complete(ctx context.Context, r delegate.Request) (delegate.Completion, error) {
	q := c.encode(r)
	q.MaxTokens = c.limit(r)
	q.Stream = !c.WholeAnswers
	if !c.GivenUp("temperature") {
		q.Temperature = &r.Temperature
	}
	c.think(&q, r.Think)
	var a *answer
	err := c.Ask(ctx, "/messages", q, func() remote.Reply {
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

// limit is the format's obligatory max_tokens.
func (c *Client) limit(r delegate.Request) int {
	n := r.MaxTokens
	if n == 0 && c.Context > 0 {
		n = max(c.Context-c.Estimate(r.Messages, r.Tools), 256)
		n = min(n, 2*answerTokens)
	}
	if n == 0 {
		n = answerTokens
	}
	if c.MaxTokens > 0 {
		n = min(n, c.MaxTokens)
	}
	return n
}

// think switches thinking. Anthropic's own models are off by default; others may need to be told.
func (c *Client) think(q *request, on bool) {
	switch {
	case !on && (c.own || c.GivenUp("thinking")):
	case !on:
		q.Thinking = &thinking{Type: "disabled"}
	case q.MaxTokens < 2048: // no room for the least budget beside an answer
	case c.GivenUp("budget"):
		q.Thinking, q.Temperature = &thinking{Type: "adaptive"}, nil
	case !c.GivenUp("thinking"):
		q.Thinking, q.Temperature = &thinking{Type: "enabled", Budget: max(1024, min(q.MaxTokens/2, 16000))}, nil
	}
}

// Count implements delegate.Completer. It is exact where the server counts for us.
func (c *Client) Count(ctx context.Context, messages []delegate.Message, tools []delegate.Tool) (int, bool, error) {
	if !c.GivenUp("count_tokens") {
		q := c.encode(delegate.Request{Messages: messages, Tools: tools})
		var answer struct {
			Tokens int `json:"input_tokens"`
		}
		err := c.Post(ctx, "/messages/count_tokens", q, &answer)
		if err == nil && answer.Tokens > 0 {
			return answer.Tokens, true, nil
		}
		if ctx.Err() != nil {
			return 0, false, context.Cause(ctx)
		}
		c.GiveUp("count_tokens")
	}
	return c.Estimate(messages, tools), false, nil
}

// named is what a refusal names that we can do without.
func named(message string) []string {
	switch has := func(s string) bool { return strings.Contains(message, s) }; {
	case has("cache_control"):
		return []string{"cache_control"}
	case has("thinking") && has("adaptive"), has("budget_tokens"):
		return []string{"budget"}
	case has("thinking") && !has("signature") && !has("thinking block"):
		return []string{"thinking"}
	case has("temperature"):
		return []string{"temperature"}
	}
	return nil
}
