package llamaserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"localllm/delegate"
	"localllm/internal/engine/loopback"
	"localllm/internal/engine/sse"
)

// timings are the server's own account of one request; times in milliseconds.
type timings struct {
	Cached      int     `json:"cache_n"`
	Prompt      int     `json:"prompt_n"`
	PromptMS    float64 `json:"prompt_ms"`
	Predicted   int     `json:"predicted_n"`
	PredictedMS float64 `json:"predicted_ms"`
}

type chunk struct {
	Model   string `json:"model"`
	Choices []struct {
		Finish string `json:"finish_reason"`
		Delta  struct {
			Content   string `json:"content"`
			Reasoning string `json:"reasoning_content"`
			Calls     []call `json:"tool_calls"`
		} `json:"delta"`
	} `json:"choices"`
	Usage *struct {
		Prompt    int `json:"prompt_tokens"`
		Generated int `json:"completion_tokens"`
		Details   struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Timings  *timings `json:"timings"`
	Progress *struct {
		Total     int `json:"total"`
		Cached    int `json:"cache"`
		Processed int `json:"processed"`
	} `json:"prompt_progress"`
	Error json.RawMessage `json:"error"`
}

// errCut means that the stream ended before the server said how the answer ends.
var errCut = errors.New("the engine's answer broke off")

// Complete implements delegate.Completer.
func (c *Client) Complete(ctx context.Context, r delegate.Request) (delegate.Completion, error) {
	q := c.chat(r)
	q.Stream, q.Options, q.Progress = true, &streamOptions{Usage: true}, true
	q.MaxTokens, q.Temperature = r.MaxTokens, &r.Temperature
	if r.Seed != 0 {
		q.Seed = &r.Seed
	}
	req, err := loopback.Request(ctx, c.endpoint.URL+"/v1/chat/completions", c.key, q)
	if err != nil {
		return delegate.Completion{}, err
	}
	a := answer{say: r.Progress, think: r.Think}
	a.tell("waiting")
	resp, err := loopback.Do(c.http, req)
	if err != nil {
		return delegate.Completion{}, err
	}
	// Closing the connection is what ends the request at the server.
	defer resp.Body.Close()
	if err := sse.Read(resp.Body, a.take); err != nil {
		return a.completion(), err
	}
	if !a.ended {
		return a.completion(), errCut
	}
	return a.completion(), nil
}

// answer gathers a stream.
type answer struct {
	say      func(delegate.Generating)
	think    bool
	text     strings.Builder
	thinking strings.Builder
	calls    []delegate.ToolCall
	size     int // bytes of all that
	out      delegate.Completion
	state    delegate.Generating
	ended    bool
}

func (a *answer) tell(phase string) {
	a.state.Phase = phase
	if a.say != nil {
		a.say(a.state)
	}
}

func (a *answer) take(e sse.Event) error {
	if string(e.Data) == "[DONE]" {
		a.ended = true
		return sse.ErrStop
	}
	var k chunk
	if err := json.Unmarshal(e.Data, &k); err != nil {
		return fmt.Errorf("reading the stream: %w", err)
	}
	if len(k.Error) > 0 {
		return loopback.Refusal(0, e.Data)
	}
	if k.Model != "" {
		a.out.Model = k.Model
	}
	if p := k.Progress; p != nil {
		a.state.PromptTokens, a.state.PromptTotal = p.Processed, p.Total
		a.tell("prefill")
	}
	for _, choice := range k.Choices {
		a.text.WriteString(choice.Delta.Content)
		a.thinking.WriteString(choice.Delta.Reasoning)
		a.size += len(choice.Delta.Content) + len(choice.Delta.Reasoning)
		for _, d := range choice.Delta.Calls {
			a.toolCall(d)
		}
		if choice.Finish != "" {
			a.out.Finish = finish(choice.Finish)
		}
		if choice.Delta.Content != "" || choice.Delta.Reasoning != "" || len(choice.Delta.Calls) > 0 {
			a.state.OutputTokens++ // a delta is a token, near enough for showing that it moves
			a.state.ThinkingChars = a.thinking.Len()
			a.tell("generating")
		}
	}
	if u := k.Usage; u != nil {
		a.out.Tokens = delegate.Tokens{Prompt: u.Prompt, Cached: u.Details.Cached, Generated: u.Generated}
	}
	if t := k.Timings; t != nil {
		a.out.Prefill, a.out.Decode = milliseconds(t.PromptMS), milliseconds(t.PredictedMS)
		a.out.Tokens.Prompt, a.out.Tokens.Cached = t.Cached+t.Prompt, t.Cached
	}
	if delegate.Overlong(a.size) {
		a.out.Finish, a.ended = delegate.FinishLength, true
		return sse.ErrStop
	}
	return nil
}

const mostCalls = 256

func (a *answer) toolCall(d call) {
	if d.Index < 0 || d.Index >= mostCalls {
		return
	}
	for len(a.calls) <= d.Index {
		a.calls = append(a.calls, delegate.ToolCall{})
	}
	t := &a.calls[d.Index]
	if d.ID != "" {
		t.ID = d.ID
	}
	t.Name += d.Function.Name
	t.Arguments += d.Function.Arguments
	a.size += len(d.Function.Arguments)
}

func (a *answer) completion() delegate.Completion {
	out := a.out
	out.Text, out.Calls = a.text.String(), a.calls
	if a.think && a.thinking.Len() > 0 {
		out.Thinking, _ = json.Marshal(a.thinking.String())
	}
	return out
}

func finish(reason string) string {
	switch reason {
	case "stop", "length", "tool_calls":
		return reason
	}
	return delegate.FinishUnknown
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
