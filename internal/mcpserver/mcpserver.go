// Package mcpserver is the door for coding agents: one MCP tool over stdio or loopback HTTP, with progress and
// cancellation. It decides nothing about models; what an action does comes through Actions.
package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"runtime/debug"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"localllm/internal/hint"
	"localllm/internal/request"
	"localllm/internal/terminal"
)

// Name is both the server's and its one tool's.
const Name = "local_llm"

// Progress is how far an action is, in words and, where it can be known, in numbers.
type Progress = terminal.Step

// Actions carries the actions out. Do is called from many goroutines at once; in is what request.Decode returns for
// the action. The result is marshalled to a JSON object. report never blocks, and does nothing after Do has returned.
// Do returns soon after ctx has ended: the client is gone or has cancelled, and nobody reads the result.
type Actions interface {
	Do(ctx context.Context, action string, in any, report func(Progress)) (any, error)
}

// Config is what a server needs to run.
type Config struct {
	Version string
	Actions Actions

	// Leaving is called once, at the first sign that the client goes: end of input, a signal, a broken pipe. It comes
	// before the calls in flight are ended, and clients kill the process as early as 33 ms later. May be nil.
	Leaving func()
}

type service struct {
	cfg     Config
	mcp     *server.MCPServer
	guard   *guard // nil over HTTP
	project projectFinder
}

func newService(cfg Config, g *guard) *service {
	s := &service{cfg: cfg, guard: g}
	hooks := &server.Hooks{}
	if g != nil {
		hooks.AddBeforeCallTool(func(_ context.Context, id any, r *mcp.CallToolRequest) { attach(g, id, r) })
	}
	s.mcp = server.NewMCPServer(Name, cfg.Version,
		server.WithToolCapabilities(false),
		server.WithLogging(),
		server.WithInstructions(Instructions),
		server.WithHooks(hooks))
	s.mcp.AddTool(tool(), s.call)
	s.mcp.AddNotificationHandler("notifications/roots/list_changed", func(context.Context, mcp.JSONRPCNotification) { s.project.forget() })
	return s
}

func tool() mcp.Tool {
	no := false
	return mcp.Tool{
		Name:            Name,
		Title:           "Local model",
		Description:     Description(),
		RawInputSchema:  request.Schema(),
		RawOutputSchema: json.RawMessage(outputSchema),
		// It writes only the files that the caller declares, and puts them back where they are not accepted.
		Annotations: mcp.ToolAnnotation{Title: "Local model", ReadOnlyHint: &no, DestructiveHint: &no, IdempotentHint: &no, OpenWorldHint: &no},
		Meta:        &mcp.Meta{AdditionalFields: map[string]any{"anthropic/alwaysLoad": true}},
	}
}

// call serves one tools/call. It never panics and never returns an error of its own: what went wrong is for the model
// to read, so it is a result with isError.
func (s *service) call(ctx context.Context, r mcp.CallToolRequest) (result *mcp.CallToolResult, _ error) {
	defer func() {
		if p := recover(); p != nil {
			log.Printf("panic in a call: %v\n%s", p, debug.Stack())
			result = mcp.NewToolResultError(fmt.Sprintf("internal error: %v\nhint: the server goes on; its log has the stack", p))
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	entry := attached(r)
	if s.guard != nil && entry != nil && !s.guard.onCancel(entry, cancel) {
		return failure(context.Canceled), nil
	}
	raw := r.Params.RawArguments
	if len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	action, in, err := request.Parse(raw)
	if err != nil {
		return failure(err), nil
	}
	var token any
	if r.Params.Meta != nil {
		token = r.Params.Meta.ProgressToken
	}
	ctx = context.WithValue(ctx, progressKey{}, token != nil)
	if token == nil {
		return s.do(s.project.into(ctx, s.mcp), action, in, func(Progress) {}), nil
	}
	reporter := startReporter(action, s.sender(ctx, entry, token))
	defer reporter.stop()
	return s.do(s.project.into(ctx, s.mcp), action, in, reporter.report), nil
}

func (s *service) do(ctx context.Context, action string, in any, report func(Progress)) *mcp.CallToolResult {
	out, err := s.cfg.Actions.Do(ctx, action, in, report)
	if err != nil {
		return failure(err)
	}
	raw, err := json.Marshal(out)
	if err == nil && (len(raw) == 0 || raw[0] != '{') {
		err = errors.New("it is no object")
	}
	if err != nil {
		return failure(fmt.Errorf("writing the result of %s: %w", action, err))
	}
	return &mcp.CallToolResult{
		Content:           []mcp.Content{mcp.NewTextContent(Text(out))},
		StructuredContent: json.RawMessage(raw),
	}
}

// failure is an error as the model reads it: one sentence, then a line for each hint.
func failure(err error) *mcp.CallToolResult {
	lines := []string{strings.Join(strings.Fields(err.Error()), " ")}
	for _, h := range hint.Of(err) {
		lines = append(lines, "hint: "+h)
	}
	return mcp.NewToolResultError(strings.Join(lines, "\n"))
}

type progressKey struct{}

// HasProgress reports whether the caller sees progress. It is false only inside a tool call whose client sent no
// progress token: such a client may give up on a call that takes longer than it likes.
func HasProgress(ctx context.Context) bool {
	has, ok := ctx.Value(progressKey{}).(bool)
	return has || !ok
}

func logTo(f *os.File) {
	log.SetOutput(f)
	log.SetFlags(0)
	log.SetPrefix("localllm: ")
}
