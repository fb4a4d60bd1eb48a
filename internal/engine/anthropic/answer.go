package anthropic

import (
	"encoding/json"
	"strings"

	"localllm/delegate"
	"localllm/internal/engine/remote"
	"localllm/internal/engine/sse"
)

// event is one of a stream; a whole answer has the fields of its message.
type event struct {
	Type    string          `json:"type"`
	Index   int             `json:"index"`
	Message *reply          `json:"message"`
	Block   json.RawMessage `json:"content_block"`
	Delta   struct {
		Type      string `json:"type"`
		Text      string `json:"text"`
		Partial   string `json:"partial_json"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
		Stop      string `json:"stop_reason"`
	} `json:"delta"`
	Usage *usage `json:"usage"`
}

type reply struct {
	Model   string            `json:"model"`
	Content []json.RawMessage `json:"content"`
	Stop    string            `json:"stop_reason"`
	Usage   *usage            `json:"usage"`
}

type usage struct {
	Input     *int `json:"input_tokens"`
	Created   *int `json:"cache_creation_input_tokens"`
	Read      *int `json:"cache_read_input_tokens"`
	Generated *int `json:"output_tokens"`
}

// piece is a content block as it grows.
type piece struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`

	raw      json.RawMessage // as it began
	text     strings.Builder
	thinking strings.Builder
	parts    strings.Builder // of a call's input
}

// answer gathers one answer.
type answer struct {
	client *remote.Client
	say    func(delegate.Generating)
	pieces []*piece
	places map[int]*piece
	size   int // bytes of the pieces
	counts struct{ input, created, read, generated int }
	out    delegate.Completion
	state  delegate.Generating
	begun  bool
	ended  bool
}

// Begun implements remote.Reply.
func (a *answer) Begun() bool { return a.begun }

func (a *answer) tell(phase string) {
	a.state.Phase = phase
	if a.say != nil {
		a.say(a.state)
	}
}

// Whole implements remote.Reply.
func (a *answer) Whole(body []byte) error {
	var r struct {
		reply
		Type  string          `json:"type"`
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return a.client.Bad("the answer is no valid JSON", err)
	}
	if r.Type == "error" || len(r.Error) > 0 && string(r.Error) != "null" {
		return a.client.Told(body)
	}
	if r.Stop == "" && len(r.Content) == 0 {
		return a.client.Bad("the answer holds no content", nil)
	}
	for i, b := range r.Content {
		if err := a.open(i, b); err != nil {
			return err
		}
	}
	a.start(&r.reply)
	a.ended = true
	return nil
}

func (a *answer) start(r *reply) {
	if r.Model != "" {
		a.out.Model = r.Model
	}
	if r.Stop != "" {
		a.out.Finish = finish(r.Stop)
	}
	a.count(r.Usage)
}

// count takes figures as they come: the last word on each holds. Ollama begins with an estimate that knows of no
// cache, and Anthropic leaves out at the end what it said at the beginning.
func (a *answer) count(u *usage) {
	if u == nil {
		return
	}
	c := &a.counts
	for to, said := range map[*int]*int{&c.input: u.Input, &c.created: u.Created, &c.read: u.Read, &c.generated: u.Generated} {
		if said != nil {
			*to = max(*said, 0)
		}
	}
}

// Event implements remote.Reply.
func (a *answer) Event(e sse.Event) error {
	var v event
	if err := json.Unmarshal(e.Data, &v); err != nil {
		return a.client.Bad("an event of the stream is no valid JSON", err)
	}
	switch v.Type {
	case "error":
		return a.client.Told(e.Data)
	case "message_start":
		if v.Message != nil {
			a.start(v.Message)
		}
	case "content_block_start":
		if err := a.open(v.Index, v.Block); err != nil {
			return err
		}
	case "content_block_delta":
		a.grow(v)
	case "message_delta":
		if v.Delta.Stop != "" {
			a.out.Finish, a.ended = finish(v.Delta.Stop), true
		}
		a.count(v.Usage)
	case "message_stop":
		a.ended = true
		return sse.ErrStop
	}
	if delegate.Overlong(a.size) {
		a.out.Finish, a.ended = delegate.FinishLength, true
		return sse.ErrStop
	}
	return nil
}

const mostBlocks = 1024

func (a *answer) open(index int, raw json.RawMessage) error {
	p := &piece{raw: append(json.RawMessage(nil), raw...)}
	if err := json.Unmarshal(raw, p); err != nil {
		return a.client.Bad("a block of the answer is no valid JSON", err)
	}
	if len(a.pieces) >= mostBlocks {
		return a.client.Bad("the answer has too many blocks", nil)
	}
	p.text.WriteString(p.Text)
	p.thinking.WriteString(p.Thinking)
	a.size += len(raw)
	if a.places == nil {
		a.places = map[int]*piece{}
	}
	a.places[index] = p
	a.pieces = append(a.pieces, p)
	a.moved()
	return nil
}

func (a *answer) moved() {
	a.begun = true
	a.state.OutputTokens++ // a delta is a few tokens, near enough for showing that it moves
	a.tell("generating")
}

func (a *answer) grow(v event) {
	p := a.places[v.Index]
	if p == nil {
		return
	}
	p.text.WriteString(v.Delta.Text)
	p.thinking.WriteString(v.Delta.Thinking)
	p.Signature += v.Delta.Signature
	a.size += len(v.Delta.Text) + len(v.Delta.Thinking) + len(v.Delta.Signature) + len(v.Delta.Partial)
	p.parts.WriteString(v.Delta.Partial)
	a.state.ThinkingChars += len(v.Delta.Thinking)
	a.moved()
}

func (a *answer) completion() delegate.Completion {
	out := a.out
	out.Model = a.client.Scrub(out.Model)
	var text strings.Builder
	var thoughts []json.RawMessage
	for _, p := range a.pieces {
		switch p.Type {
		case "text":
			text.WriteString(p.text.String())
		case "tool_use":
			out.Calls = append(out.Calls, delegate.ToolCall{ID: p.ID, Name: p.Name, Arguments: a.client.Scrub(p.arguments())})
		case "thinking", "redacted_thinking":
			if kept := p.thought(); kept != nil {
				thoughts = append(thoughts, kept)
			}
		}
	}
	out.Text = a.client.Scrub(text.String())
	if len(thoughts) > 0 {
		out.Thinking, _ = json.Marshal(thoughts)
	}
	c := a.counts
	out.Tokens = delegate.Tokens{Prompt: c.input + c.created + c.read, Cached: c.read, Generated: c.generated}
	if len(out.Calls) > 0 && out.Finish == delegate.FinishStop {
		out.Finish = delegate.FinishTools
	}
	return out
}

// arguments are a call's input as the model wrote it, maybe cut off.
func (p *piece) arguments() string {
	if p.parts.Len() > 0 {
		return p.parts.String()
	}
	if len(p.Input) > 0 && string(p.Input) != "null" {
		return string(p.Input)
	}
	return "{}"
}

// thought is a thinking block to send back. One that came whole goes back byte for byte.
func (p *piece) thought() json.RawMessage {
	var began piece
	if json.Unmarshal(p.raw, &began) == nil && began.Thinking == p.thinking.String() && began.Signature == p.Signature {
		if p.Type == "thinking" && began.Thinking == "" && p.Signature == "" {
			return nil
		}
		return p.raw
	}
	whole := map[string]any{}
	_ = json.Unmarshal(p.raw, &whole) // what a provider added beside stays
	whole["thinking"], whole["signature"] = p.thinking.String(), p.Signature
	kept, _ := json.Marshal(whole)
	return kept
}

func finish(reason string) string {
	switch reason {
	case "end_turn", "stop_sequence", "stop":
		return delegate.FinishStop
	case "max_tokens", "model_context_window_exceeded", "length":
		return delegate.FinishLength
	case "tool_use":
		return delegate.FinishTools
	}
	return delegate.FinishUnknown
}
