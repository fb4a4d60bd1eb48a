package openai

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"localllm/delegate"
	"localllm/internal/engine/remote"
	"localllm/internal/engine/sse"
)

// chunk is an event of a stream, or with messages instead of deltas a whole answer.
type chunk struct {
	Model   string          `json:"model"`
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Timings *timings        `json:"timings"`
	Error   json.RawMessage `json:"error"`
}

type choice struct {
	Finish  string `json:"finish_reason"`
	Delta   turn   `json:"delta"`
	Message turn   `json:"message"`
}

type turn struct {
	Content          content         `json:"content"`
	ReasoningContent string          `json:"reasoning_content"`
	Reasoning        string          `json:"reasoning"`
	ReasoningDetails json.RawMessage `json:"reasoning_details"`
	Calls            []call          `json:"tool_calls"`
}

type call struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string    `json:"name"`
		Arguments arguments `json:"arguments"`
	} `json:"function"`
}

// arguments are text in the format, and an object from some servers.
type arguments string

func (a *arguments) UnmarshalJSON(data []byte) error {
	var text *string
	if err := json.Unmarshal(data, &text); err != nil {
		*a = arguments(data)
	} else if text != nil {
		*a = arguments(*text)
	}
	return nil
}

// content is text in the format, and a list of parts from some servers.
type content string

func (c *content) UnmarshalJSON(data []byte) error {
	var text *string
	if json.Unmarshal(data, &text) == nil {
		if text != nil {
			*c = content(*text)
		}
		return nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return fmt.Errorf("content: %w", err)
	}
	for _, p := range parts {
		if p.Type == "text" {
			*c += content(p.Text)
		}
	}
	return nil
}

type usage struct {
	Prompt    int `json:"prompt_tokens"`
	Generated int `json:"completion_tokens"`
	CacheHits int `json:"prompt_cache_hit_tokens"` // DeepSeek
	Details   struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// timings are llama-server's; times in milliseconds.
type timings struct {
	PromptMS    float64 `json:"prompt_ms"`
	PredictedMS float64 `json:"predicted_ms"`
}

// answer gathers one answer.
type answer struct {
	client   *remote.Client
	say      func(delegate.Generating)
	text     strings.Builder
	thinking strings.Builder
	field    string            // of the reasoning
	details  []json.RawMessage // OpenRouter's, which it wants back as they were
	calls    []delegate.ToolCall
	size     int         // bytes of all that
	places   map[int]int // index in the stream → place in calls
	out      delegate.Completion
	state    delegate.Generating
	begun    bool
	ended    bool
}

// Begun implements remote.Reply.
func (a *answer) Begun() bool { return a.begun }

func (a *answer) tell(phase string) {
	a.state.Phase = phase
	if a.say != nil {
		a.say(a.state)
	}
}

// Event implements remote.Reply.
func (a *answer) Event(e sse.Event) error {
	if string(e.Data) == "[DONE]" {
		a.ended = a.ended || a.begun
		return sse.ErrStop
	}
	var k chunk
	if err := json.Unmarshal(e.Data, &k); err != nil {
		return a.client.Bad("an event of the stream is no valid JSON", err)
	}
	if e.Name == "error" || has(k.Error) {
		return a.client.Told(e.Data)
	}
	a.take(k, false)
	if delegate.Overlong(a.size) {
		a.out.Finish, a.ended = delegate.FinishLength, true
		return sse.ErrStop
	}
	return nil
}

func has(field json.RawMessage) bool { return len(field) > 0 && string(field) != "null" }

// Whole implements remote.Reply.
func (a *answer) Whole(body []byte) error {
	var k chunk
	if err := json.Unmarshal(body, &k); err != nil {
		return a.client.Bad("the answer is no valid JSON", err)
	}
	if has(k.Error) {
		return a.client.Told(body)
	}
	if len(k.Choices) == 0 {
		return a.client.Bad("the answer holds no choices", nil)
	}
	a.take(k, true)
	a.ended = true
	return nil
}

func (a *answer) take(k chunk, whole bool) {
	if k.Model != "" {
		a.out.Model = k.Model
	}
	if len(k.Choices) > 0 { // only one is asked for
		one := k.Choices[0]
		t := one.Delta
		if whole {
			t = one.Message
		}
		a.turn(t)
		if one.Finish != "" {
			a.out.Finish, a.ended = finish(one.Finish), true
		}
	}
	if u := k.Usage; u != nil {
		a.out.Tokens = delegate.Tokens{Prompt: u.Prompt, Cached: max(u.Details.Cached, u.CacheHits), Generated: u.Generated}
	}
	if t := k.Timings; t != nil {
		a.out.Prefill, a.out.Decode = milliseconds(t.PromptMS), milliseconds(t.PredictedMS)
	}
}

func (a *answer) turn(t turn) {
	a.text.WriteString(string(t.Content))
	a.size += len(t.Content) + len(t.ReasoningContent) + len(t.Reasoning) + len(t.ReasoningDetails)
	switch {
	case t.ReasoningContent != "":
		a.field = "reasoning_content"
		a.thinking.WriteString(t.ReasoningContent)
	case t.Reasoning != "":
		a.field = "reasoning"
		a.thinking.WriteString(t.Reasoning)
	}
	a.keep(t.ReasoningDetails)
	for _, c := range t.Calls {
		a.toolCall(c)
	}
	if t.Content != "" || t.ReasoningContent != "" || t.Reasoning != "" || len(t.Calls) > 0 {
		a.begun = true
		a.state.OutputTokens++ // a delta is a token, near enough for showing that it moves
		a.state.ThinkingChars = a.thinking.Len()
		a.tell("generating")
	}
}

// keep joins the pieces of OpenRouter's reasoning: pieces of text go together by their index, others stand alone.
func (a *answer) keep(details json.RawMessage) {
	var pieces []json.RawMessage
	if json.Unmarshal(details, &pieces) != nil {
		return
	}
	for _, piece := range pieces {
		if n := len(a.details); n > 0 {
			if joined, ok := join(a.details[n-1], piece); ok {
				a.details[n-1] = joined
				continue
			}
		}
		a.details = append(a.details, append(json.RawMessage(nil), piece...))
	}
}

func join(a, b json.RawMessage) (json.RawMessage, bool) {
	var x, y map[string]any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil || x["type"] != y["type"] || x["index"] != y["index"] || x["index"] == nil {
		return nil, false
	}
	for field, value := range y {
		more, isText := value.(string)
		had, hadText := x[field].(string)
		switch {
		case (field == "text" || field == "summary" || field == "data") && isText && hadText:
			x[field] = had + more
		case value != nil:
			x[field] = value
		}
	}
	joined, err := json.Marshal(x)
	return joined, err == nil
}

const mostCalls = 256

// toolCall adds a piece of a call. Some servers give no index, or the same one to every call: a new id begins a new
// call then.
func (a *answer) toolCall(c call) {
	index := len(a.calls) - 1
	if c.Index != nil {
		index = *c.Index
	}
	if a.places == nil {
		a.places = map[int]int{}
	}
	place, known := a.places[index]
	if known && c.Index == nil && c.Function.Name != "" && a.calls[place].Name != "" {
		known = false // whole calls, without index and id
	}
	if !known || (c.ID != "" && a.calls[place].ID != "" && a.calls[place].ID != c.ID) {
		if len(a.calls) >= mostCalls {
			return
		}
		place = len(a.calls)
		a.calls = append(a.calls, delegate.ToolCall{})
		if c.Index == nil {
			index = place
		}
		a.places[index] = place
	}
	t := &a.calls[place]
	if c.ID != "" {
		t.ID = c.ID
	}
	t.Name += c.Function.Name
	t.Arguments += string(c.Function.Arguments)
	a.size += len(c.Function.Arguments)
}

func (a *answer) completion() delegate.Completion {
	out := a.out
	out.Model = a.client.Scrub(out.Model)
	out.Text = a.client.Scrub(withoutThinking(a.text.String()))
	for i, c := range a.calls {
		if c.ID == "" {
			c.ID = fmt.Sprintf("call_%d", i)
		}
		c.Arguments = a.client.Scrub(c.Arguments)
		out.Calls = append(out.Calls, c)
	}
	if len(out.Calls) > 0 && out.Finish == delegate.FinishStop {
		out.Finish = delegate.FinishTools
	}
	kept := map[string]any{}
	if a.field != "" {
		kept[a.field] = a.client.Scrub(a.thinking.String())
	}
	if len(a.details) > 0 {
		kept["reasoning_details"] = a.details
	}
	if len(kept) > 0 {
		out.Thinking, _ = json.Marshal(kept)
	}
	return out
}

// withoutThinking takes off the thinking that a server left in front of the answer.
func withoutThinking(text string) string {
	rest, opened := strings.CutPrefix(strings.TrimLeft(text, " \n\r\t"), "<think>")
	if !opened {
		return text
	}
	_, answer, closed := strings.Cut(rest, "</think>")
	if !closed {
		return ""
	}
	return strings.TrimLeft(answer, "\r\n")
}

func finish(reason string) string {
	switch reason {
	case "stop", "length", "tool_calls":
		return reason
	case "function_call":
		return delegate.FinishTools
	}
	return delegate.FinishUnknown
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
