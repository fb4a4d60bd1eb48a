package remote

import (
	"context"
	"math"
	"time"

	"localllm/delegate"
)

// Estimate is about how many tokens messages and tools are, from what the endpoint counted before.
func (c *Client) Estimate(messages []delegate.Message, tools []delegate.Tool) int {
	ratio := 1 / 2.8 // tokens a byte of code, on the careful side
	if seen := c.bytesSeen.Load(); seen > 500 {
		ratio = float64(c.tokensSeen.Load()) / float64(seen) * 1.02
	}
	return int(math.Ceil(float64(size(messages, tools))*ratio)) + 4*len(messages) + 2
}

// Learn keeps what a request's bytes came to.
func (c *Client) Learn(messages []delegate.Message, tools []delegate.Tool, tokens int) {
	if n := size(messages, tools); n > 500 && tokens > 0 {
		c.bytesSeen.Store(int64(n))
		c.tokensSeen.Store(int64(tokens))
	}
}

func size(messages []delegate.Message, tools []delegate.Tool) int {
	n := 0
	for _, m := range messages {
		n += len(m.Content) + len(m.Thinking)
		for _, call := range m.Calls {
			n += len(call.Name) + len(call.Arguments)
		}
	}
	for _, t := range tools {
		n += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return n
}

// Limits is what one request may use, for a backend of that kind.
func (c *Client) Limits(engine string) delegate.Limits {
	return delegate.Limits{
		Context: c.Context, MaxTokens: c.MaxTokens, Slots: max(c.Slots, 1), Loopback: c.Loopback,
		Engine: engine, Model: c.Model, Profile: c.Profile,
	}
}

// Models lists what the endpoint serves, and how long it took to say so.
func (c *Client) Models(ctx context.Context) ([]string, time.Duration, error) {
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	start := time.Now()
	err := c.Get(ctx, "/models", &list)
	names := make([]string, 0, len(list.Data))
	for _, m := range list.Data {
		names = append(names, c.Scrub(m.ID))
	}
	return names, time.Since(start), err
}
