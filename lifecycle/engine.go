// Package lifecycle decides when an engine starts, who shares it, and when it has to go. It starts no process and
// opens no socket itself: internal/engine and internal/keeper do, by the interfaces here.
package lifecycle

import (
	"context"
	"time"

	"localllm/capability"
)

// Engine names.
const (
	Ollama      = capability.Ollama
	LlamaServer = capability.LlamaServer
)

// Spec is what to load, complete: two equal specs are the same loaded model.
type Spec struct {
	Engine  string   `json:"engine"`            // Ollama or LlamaServer
	Model   string   `json:"model"`             // as the user names it: a tag, a GGUF path, a Hugging Face reference
	Path    string   `json:"path,omitempty"`    // the GGUF file to run, where llama-server runs a local one
	Digest  string   `json:"digest,omitempty"`  // of the model, where known: the key of measured memory
	Context int      `json:"context"`           // tokens per slot
	KVType  string   `json:"kv_type,omitempty"` // f16, q8_0, q4_0
	Slots   int      `json:"slots"`
	Devices []string `json:"devices,omitempty"` // GPU UUIDs; empty: whatever the engine sees
	Need    uint64   `json:"need,omitempty"`    // estimated bytes, for telling a spill and for comparing afterwards
}

// Host is what an engine is given by the process that runs it.
type Host struct {
	Dir     string         // private folder of this run: sockets, key files, slot states
	LogPath string         // the server's output goes here, the last run's beside it with .1
	Nonce   string         // put into the child's environment: proof that it is ours
	Env     []string       // environment of the child: the relevant variables of the enabling client
	Force   bool           // may push out somebody's model on an adopted server
	Report  func(Progress) // called as loading moves on; never nil, never blocks

	// Record is called with the child's identity-to-be before it starts (PID 0) and again right after (its PID), so
	// that a crash of the caller leaves a trace of what to end. An error stops the start.
	Record func(pid int) error
}

// Progress is one step of loading, in words and, where it can be known, in numbers.
type Progress struct {
	Phase   string `json:"phase"`            // "starting", "downloading", "loading", "warming", …
	Done    int64  `json:"done,omitempty"`   // of Total, in Unit
	Total   int64  `json:"total,omitempty"`  // 0: unknown
	Unit    string `json:"unit,omitempty"`   // "bytes", "tokens", "percent"
	Detail  string `json:"detail,omitempty"` // the engine's own words, one line
	Seconds int    `json:"seconds"`          // since the phase began
}

// Engine is one kind of server.
type Engine interface {
	// Start brings up a server with spec loaded, or adopts one that runs already and can serve it, and returns once
	// a real one-token completion has come back. ctx bounds the start only. The deadline for a load is renewed while
	// output or memory moves. On error nothing of it is left behind, and the error is a *StartError where the cause
	// is known.
	Start(ctx context.Context, spec Spec, host Host) (Server, error)
}

// Server is a ready engine. Its methods may be called from any goroutine.
type Server interface {
	Endpoint() Endpoint

	// Done is closed when the server has ended by itself or can't be reached any more; Err then has its last words.
	Done() <-chan struct{}
	Err() error

	// Renew keeps an adopted model loaded for a little longer; a server of ours needs no renewal and returns nil.
	Renew(ctx context.Context) error

	// Memory is what the engine itself says it holds, 0 where it doesn't say.
	Memory(ctx context.Context) (Memory, error)

	// Stop unloads our model and, where we started the server, ends it with all that it started. It returns when
	// every recorded process is gone, and is safe to call twice.
	Stop(ctx context.Context) (Stopped, error)
}

// Memory is an engine's own account.
type Memory struct {
	TotalBytes uint64 `json:"total_bytes"`
	GPUBytes   uint64 `json:"gpu_bytes"`
}

// Stopped says what Stop did.
type Stopped struct {
	Process bool // a server of ours was ended
	Model   bool // our model was unloaded
}

// Endpoint is where prompts go and what is served there. It is written to the status file, so it holds no secret.
type Endpoint struct {
	Engine     string   `json:"engine"`
	URL        string   `json:"url"`                    // http://127.0.0.1:PORT
	Model      string   `json:"model"`                  // the name to ask for at the endpoint
	APIKeyFile string   `json:"api_key_file,omitempty"` // 0600; empty: no key
	Context    int      `json:"context"`                // effective tokens per slot, as the engine says
	Slots      int      `json:"slots"`
	KVType     string   `json:"kv_type,omitempty"`
	Version    string   `json:"version,omitempty"`
	Owned      bool     `json:"owned"`             // we started the server
	Adopted    bool     `json:"adopted,omitempty"` // we use somebody's server
	SlotStates bool     `json:"slot_states,omitempty"`
	Warnings   []string `json:"warnings,omitempty"`

	// Options is Ollama's one canonical option set, sent with preload and with every request: any difference would
	// reload the model.
	Options map[string]any `json:"options,omitempty"`
	// KeepAlive goes with every request to Ollama; seconds, negative for ever.
	KeepAlive time.Duration `json:"keep_alive,omitempty"`
	// Reliable prefix: false for models whose cache rewinds only at checkpoints (hybrid, sliding window).
	PrefixReuse bool `json:"prefix_reuse"`
}

// Cause sorts start failures by what can be done about them.
type Cause string

// The causes that callers branch on.
const (
	OutOfMemory  Cause = "out-of-memory"  // step down
	NotInstalled Cause = "not-installed"  // the engine is missing
	TooOld       Cause = "engine-too-old" // it lacks what we need
	NoSuchModel  Cause = "no-such-model"  // pull it or name another
	BadModel     Cause = "bad-model"      // not a GGUF, broken, unknown architecture
	BadOption    Cause = "bad-option"     // context over the model's limit and the like
	Displaces    Cause = "displaces"      // would push out somebody's model; needs force
	Crashed      Cause = "crashed"        // ended before it was ready
	TimedOut     Cause = "timed-out"      // nothing moved until the deadline
	NoDisk       Cause = "no-disk"        // no room, or the store can't be read
)

// StartError is a start that did not work out, with the engine's own last words as one sentence.
type StartError struct {
	Cause  Cause
	Reason string   // one sentence
	Hints  []string // what the user can do
	Err    error    // underneath, may be nil
}

func (e *StartError) Error() string { return e.Reason }
func (e *StartError) Unwrap() error { return e.Err }
