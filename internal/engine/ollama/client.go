package ollama

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/ollama/ollama/api"

	"localllm/delegate"
	"localllm/internal/engine/loopback"
	"localllm/lifecycle"
)

// Client talks to a model that is loaded on Ollama.
type Client struct {
	endpoint lifecycle.Endpoint
	http     *http.Client
	api      *api.Client
	runner   atomic.Pointer[string] // URL of the runner's tokenizer, where it can be found
	noRunner bool                   // don't look for it: for tests
	ratio    atomic.Uint64          // bits of tokens a byte, as last counted by the engine; 0: never counted
}

var _ delegate.Completer = (*Client)(nil)

// Connect makes a client for an endpoint. It asks the server nothing.
func Connect(endpoint lifecycle.Endpoint) (*Client, error) {
	h := loopback.Client()
	a, err := client(endpoint.URL, h)
	if err != nil {
		return nil, fmt.Errorf("connecting to Ollama: %w", err)
	}
	return &Client{endpoint: endpoint, http: h, api: a}, nil
}

// Close lets go of idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Limits implements delegate.Completer.
func (c *Client) Limits() delegate.Limits {
	return delegate.Limits{
		Context: c.endpoint.Context, Slots: max(c.endpoint.Slots, 1), Loopback: true,
		Engine: lifecycle.Ollama, Model: c.endpoint.Model,
	}
}

// request has the fields that every request shares, so that none of them reloads the model.
func (c *Client) request(r delegate.Request) *api.ChatRequest {
	options := map[string]any{}
	maps.Copy(options, c.endpoint.Options)
	options["temperature"] = r.Temperature
	if r.MaxTokens > 0 {
		options["num_predict"] = r.MaxTokens
	}
	if r.Seed != 0 {
		options["seed"] = r.Seed
	}
	q := &api.ChatRequest{
		Model: c.endpoint.Model, Options: options, Shift: shift(c.endpoint), Truncate: &noTruncate,
		KeepAlive: &api.Duration{Duration: c.endpoint.KeepAlive}, Think: &api.ThinkValue{Value: r.Think},
	}
	for _, m := range r.Messages {
		q.Messages = append(q.Messages, encode(m))
	}
	for _, t := range r.Tools {
		u := api.Tool{Type: "function", Function: api.ToolFunction{Name: t.Name, Description: t.Description}}
		_ = json.Unmarshal(t.Schema, &u.Function.Parameters) // the schemas are ours
		q.Tools = append(q.Tools, u)
	}
	return q
}

func encode(m delegate.Message) api.Message {
	n := api.Message{Role: m.Role, Content: m.Content, ToolName: m.Tool, ToolCallID: m.CallID}
	_ = json.Unmarshal(m.Thinking, &n.Thinking)
	for _, c := range m.Calls {
		arguments := api.NewToolCallFunctionArguments()
		if json.Unmarshal([]byte(c.Arguments), &arguments) != nil {
			arguments = api.NewToolCallFunctionArguments()
			arguments.Set("malformed", c.Arguments)
		}
		n.ToolCalls = append(n.ToolCalls, api.ToolCall{ID: c.ID, Function: api.ToolCallFunction{Name: c.Name, Arguments: arguments}})
	}
	return n
}

// Complete implements delegate.Completer. Request.Slot is not looked at: Ollama picks its slots itself.
func (c *Client) Complete(ctx context.Context, r delegate.Request) (delegate.Completion, error) {
	state := delegate.Generating{Phase: "waiting"}
	say := func() {
		if r.Progress != nil {
			r.Progress(state)
		}
	}
	say()
	if c.endpoint.Adopted && r.MaxTokens == 0 && c.endpoint.Context > 0 {
		// Past the window this server would shift the prompt's beginning out.
		n, _, err := c.Count(ctx, r.Messages, r.Tools)
		if err != nil {
			return delegate.Completion{}, err
		}
		r.MaxTokens = max(c.endpoint.Context-n, 1)
	}
	var text, thinking strings.Builder
	var calls []delegate.ToolCall
	var last *api.ChatResponse
	size := 0
	err := c.api.Chat(ctx, c.request(r), func(k api.ChatResponse) error {
		text.WriteString(k.Message.Content)
		thinking.WriteString(k.Message.Thinking)
		for _, call := range k.Message.ToolCalls {
			arguments, err := json.Marshal(call.Function.Arguments)
			if err != nil {
				return err
			}
			calls = append(calls, delegate.ToolCall{ID: call.ID, Name: call.Function.Name, Arguments: string(arguments)})
			size += len(arguments)
		}
		if size += len(k.Message.Content) + len(k.Message.Thinking); delegate.Overlong(size) {
			return errEnough
		}
		if k.Done {
			last = &k
			return nil
		}
		state.Phase = "generating"
		state.OutputTokens++
		state.ThinkingChars = thinking.Len()
		say()
		return nil
	})
	out := delegate.Completion{Text: text.String(), Calls: calls, Model: c.endpoint.Model}
	if r.Think && thinking.Len() > 0 {
		out.Thinking, _ = json.Marshal(thinking.String())
	}
	if errors.Is(err, errEnough) {
		out.Finish = delegate.FinishLength
		return out, nil
	}
	if err != nil {
		return out, refusal(err)
	}
	if last == nil {
		return out, errors.New("the engine's answer broke off")
	}
	out.Finish = finish(last.DoneReason, len(calls))
	out.Tokens = counts(last.Metrics)
	if c.endpoint.Context > 0 && out.Tokens.Prompt+out.Tokens.Generated > c.endpoint.Context {
		out.Finish = delegate.FinishLength // the rest was written without the prompt's beginning
	}
	out.Load, out.Prefill, out.Decode = last.LoadDuration, last.PromptEvalDuration, last.EvalDuration
	c.learn(r, out.Tokens.Prompt)
	return out, nil
}

// errEnough ends the stream of an answer that is longer than any that is read.
var errEnough = errors.New("the answer is too long")

func counts(m api.Metrics) delegate.Tokens {
	t := delegate.Tokens{Prompt: m.PromptEvalCount, Generated: m.EvalCount}
	if m.PromptEvalCachedCount != nil {
		t.Cached = *m.PromptEvalCachedCount
	}
	return t
}

func finish(reason string, calls int) string {
	switch {
	case calls > 0:
		return delegate.FinishTools
	case reason == "stop" || reason == "length":
		return reason
	}
	return delegate.FinishUnknown
}

// refusal gives Ollama's errors the form of the other engines'.
func refusal(err error) error {
	var status api.StatusError
	if !errors.As(err, &status) {
		return err
	}
	body, _ := json.Marshal(map[string]string{"error": status.ErrorMessage})
	return loopback.Refusal(status.StatusCode, body)
}

// Warm prefills what every request that begins like r will share, at the cost of one token of output; r's last
// message is taken as the beginning of the message to come.
func (c *Client) Warm(ctx context.Context, r delegate.Request) (delegate.Tokens, error) {
	r.MaxTokens, r.Progress = 1, nil
	if n := len(r.Messages); n > 0 && r.Messages[n-1].Role == delegate.System {
		r.Messages = append(r.Messages[:n:n], delegate.Message{Role: delegate.User})
	}
	out, err := c.Complete(ctx, r)
	if err != nil {
		return delegate.Tokens{}, fmt.Errorf("warming the prompt's prefix: %w", err)
	}
	out.Tokens.Generated = 0
	return out.Tokens, nil
}

// Count implements delegate.Completer. It is exact where Ollama's runner is a process of this user, whose tokenizer
// can be asked; else it is an estimate by what the engine counted before.
func (c *Client) Count(ctx context.Context, messages []delegate.Message, tools []delegate.Tool) (int, bool, error) {
	r := delegate.Request{Messages: messages, Tools: tools}
	prompt, err := c.render(ctx, r)
	if err != nil {
		return 0, false, fmt.Errorf("counting tokens: %w", refusal(err))
	}
	if n, ok := c.tokenize(ctx, prompt); ok {
		return n, true, nil
	}
	ratio := math.Float64frombits(c.ratio.Load())
	if ratio == 0 {
		ratio = 1 / 2.8 // bytes of code a token, on the careful side
	}
	return int(math.Ceil(float64(len(prompt))*ratio*1.02)) + 2, false, nil
}

// render is the prompt's text by the model's own template, without a run.
func (c *Client) render(ctx context.Context, r delegate.Request) (string, error) {
	q := c.request(r)
	q.DebugRenderOnly, q.Stream = true, &noStream
	var text string
	err := c.api.Chat(ctx, q, func(k api.ChatResponse) error {
		if k.DebugInfo != nil {
			text = k.DebugInfo.RenderedTemplate
		}
		return nil
	})
	if err == nil && text == "" {
		for _, m := range r.Messages {
			text += m.Content + "\n<|im_start|>\n"
		}
	}
	return text, err
}

// learn keeps what a byte costs in tokens, for estimates.
func (c *Client) learn(r delegate.Request, tokens int) {
	size := 0
	for _, m := range r.Messages {
		size += len(m.Content)
	}
	if size > 500 && tokens > 0 {
		c.ratio.Store(math.Float64bits(float64(tokens) / float64(size)))
	}
}

func (c *Client) tokenize(ctx context.Context, prompt string) (int, bool) {
	for _, look := range []bool{false, true} {
		address := c.runner.Load()
		if look {
			if c.noRunner {
				return 0, false
			}
			found, ok := c.findRunner(ctx)
			if !ok {
				return 0, false
			}
			address = &found
			c.runner.Store(address)
		}
		if address == nil {
			continue
		}
		var answer struct {
			Tokens []json.RawMessage `json:"tokens"`
		}
		body := map[string]any{"content": prompt, "add_special": true, "parse_special": true}
		if err := loopback.JSON(ctx, c.http, *address+"/tokenize", "", body, &answer); err == nil && len(answer.Tokens) > 0 {
			return len(answer.Tokens), true
		}
	}
	return 0, false
}

func (c *Client) findRunner(ctx context.Context) (string, bool) {
	info, err := c.api.Show(ctx, &api.ShowRequest{Model: c.endpoint.Model})
	if err != nil {
		return "", false
	}
	blob := Read(info).Blob
	if blob == "" {
		return "", false
	}
	port, ok := runnerPort(blob)
	return "http://127.0.0.1:" + port, ok
}
