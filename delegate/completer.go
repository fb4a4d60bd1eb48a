package delegate

import (
	"context"
	"encoding/json"
	"time"
)

// Roles of a message.
const (
	System    = "system"
	User      = "user"
	Assistant = "assistant"
	ToolRole  = "tool"
)

// Message is one turn. Its text is sent as it is: the prefix that an engine can reuse ends at the first byte that differs.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`

	// Calls are the tools an assistant turn asked for; CallID and Tool belong to the tool turn that answers one.
	Calls  []ToolCall `json:"calls,omitempty"`
	CallID string     `json:"call_id,omitempty"`
	Tool   string     `json:"tool,omitempty"`

	// Thinking is kept between turns where the provider requires it, in its own form, and is never shown as the answer.
	Thinking json.RawMessage `json:"thinking,omitempty"`
}

// ToolCall is one call as the model wrote it; Arguments may be malformed.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Tool is what the model may call. Schema is a JSON Schema object.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage
}

// Request is one completion to ask for.
type Request struct {
	Messages    []Message
	Tools       []Tool
	MaxTokens   int // 0: what is left of the window
	Temperature float64
	Seed        int  // 0: none
	Think       bool // off unless the tier says so
	Slot        int  // llama-server's slot to use; -1: any
	Model       string
	Progress    func(Generating) // may be nil; called from one goroutine, must not block
}

// Generating is how far a completion is.
type Generating struct {
	Phase         string // "waiting", "prefill", "generating"
	PromptTokens  int    // processed so far, in prefill
	PromptTotal   int
	OutputTokens  int
	ThinkingChars int
}

// Finish reasons, of all backends alike.
const (
	FinishStop    = "stop"
	FinishLength  = "length" // cut off by the token limit
	FinishTools   = "tool_calls"
	FinishUnknown = ""
)

// Completion is a whole answer.
type Completion struct {
	Text     string
	Thinking json.RawMessage // see Message.Thinking
	Calls    []ToolCall
	Finish   string
	Tokens   Tokens
	Model    string

	// Load is the time that the engine spent loading the model for this request: over a few ms it reloaded.
	Load    time.Duration
	Prefill time.Duration
	Decode  time.Duration
}

// Tokens are the engine's own counts. Prompt includes the cached ones.
type Tokens struct {
	Prompt    int `json:"prompt"`
	Cached    int `json:"cached"`
	Generated int `json:"generated"`
}

// Add sums two counts.
func (t Tokens) Add(u Tokens) Tokens {
	return Tokens{t.Prompt + u.Prompt, t.Cached + u.Cached, t.Generated + u.Generated}
}

// Completer is a model behind an endpoint. Its methods may be called from many goroutines.
type Completer interface {
	// Complete streams one answer. When ctx ends, the request is ended at the engine too, so that its slot is free
	// within a second. Errors are of the transport or of the engine; a bad answer is not an error.
	Complete(ctx context.Context, r Request) (Completion, error)

	// Count is how many tokens the engine will see for these messages, its chat template included. exact is false
	// where the endpoint can't say and the number is an estimate.
	Count(ctx context.Context, messages []Message, tools []Tool) (n int, exact bool, err error)

	// Limits is what one request may use.
	Limits() Limits
}

// Limits of an endpoint.
type Limits struct {
	Context   int  // tokens for prompt and answer together; 0: unknown
	MaxTokens int  // of one answer; 0: no limit of its own
	Slots     int  // requests at once
	Loopback  bool // nothing leaves this machine
	Engine    string
	Model     string
	Profile   string

	// PinnedSlots: Request.Slot is honoured, and a slot's state can be saved and restored (SlotSharer).
	PinnedSlots bool
}

// SlotSharer copies a warm slot's state to others (llama-server with slot states).
type SlotSharer interface {
	// Share saves the state of slot from and restores it into each of to.
	Share(ctx context.Context, from int, to []int) error
}
