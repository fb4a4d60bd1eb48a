package mcpserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// maxMessage bounds one message: what comes after it, up to the next line end, is dropped.
const maxMessage = 64 << 20

// guard stands between the protocol library and the two pipes. It is the only writer of the output; it lets no
// progress out after a call's answer and no answer out to a call that was cancelled, and it can cancel a call that
// still waits for a worker, none of which the library does.
type guard struct {
	out  io.Writer
	gone func() // the output is broken; called with mu held, must not block

	mu     sync.Mutex
	broken bool
	calls  map[string]*call // requests in flight, by id
	idle   chan struct{}    // closed when none is in flight; nil while nobody waits
}

// call is a request; only a tools/call can be cancelled.
type call struct {
	key       string
	tool      bool
	cancelled bool
	answered  bool
	cancel    func()
}

func newGuard(out io.Writer, gone func()) *guard {
	return &guard{out: out, gone: gone, calls: map[string]*call{}}
}

// envelope is what the guard needs to know of a message.
type envelope struct {
	ID     any             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

func key(id any) string { return fmt.Sprintf("%T %v", id, id) }

// pump copies messages from in to the library until the input ends, and notes calls and cancellations on the way.
// Empty lines and what follows the last line end are no messages.
func (g *guard) pump(in io.Reader, library io.Writer) error {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := readLine(r)
		switch {
		case err == errTooLong:
			g.send([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the message is over 64 MiB"}}` + "\n"))
			continue
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if !g.note(line) {
			continue
		}
		if _, err := library.Write(line); err != nil {
			return err
		}
	}
}

var errTooLong = fmt.Errorf("a message is over %d bytes", maxMessage)

func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	tooLong := false
	for {
		part, err := r.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull {
			return nil, err
		}
		if tooLong = tooLong || len(line)+len(part) > maxMessage; tooLong {
			line = nil
		} else {
			line = append(line, part...)
		}
		if err == nil && tooLong {
			return nil, errTooLong
		}
		if err == nil {
			return line, nil
		}
	}
}

// note reports whether the library may see the message: it would answer a malformed notification, which has no id to
// answer to.
func (g *guard) note(line []byte) bool {
	var m envelope
	if json.Unmarshal(line, &m) != nil {
		return true
	}
	switch {
	case m.Method != "" && m.ID != nil:
		g.mu.Lock()
		g.calls[key(m.ID)] = &call{key: key(m.ID), tool: m.Method == "tools/call"}
		g.mu.Unlock()
	case m.Method == "notifications/cancelled" && m.ID == nil:
		g.cancel(m.Params)
	}
	return m.Method == "" || m.ID != nil || len(m.Params) == 0 || m.Params[0] == '{'
}

func (g *guard) cancel(params json.RawMessage) {
	var p struct {
		RequestID any `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil || p.RequestID == nil {
		return
	}
	g.mu.Lock()
	var cancel func()
	if c := g.calls[key(p.RequestID)]; c != nil && c.tool && !c.cancelled {
		c.cancelled = true
		cancel = c.cancel
	}
	g.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// onCancel makes cancel the way to end c. False means that c was cancelled before it began.
func (g *guard) onCancel(c *call, cancel func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	c.cancel = cancel
	return !c.cancelled
}

// Write takes one whole message from the library.
func (g *guard) Write(line []byte) (int, error) {
	var m envelope
	if err := json.Unmarshal(line, &m); err != nil {
		return 0, fmt.Errorf("the protocol library wrote something else than a message: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if m.Method == "" && m.ID != nil {
		if c := g.calls[key(m.ID)]; c != nil {
			c.answered = true
			delete(g.calls, c.key)
			if len(g.calls) == 0 && g.idle != nil {
				close(g.idle)
				g.idle = nil
			}
			if c.cancelled {
				return len(line), nil
			}
		}
	}
	return len(line), g.write(line)
}

// progress sends a notification on behalf of c, unless c is over.
func (g *guard) progress(c *call, line []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c != nil && (c.answered || c.cancelled) {
		return
	}
	_ = g.write(line) // a broken output ends the session by gone
}

func (g *guard) send(line []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.write(line)
}

func (g *guard) write(line []byte) error {
	if g.broken {
		return io.ErrClosedPipe
	}
	_, err := g.out.Write(line)
	if err != nil {
		g.broken = true
		g.gone()
	}
	return err
}

// drain waits until no request is in flight, but no longer than limit.
func (g *guard) drain(limit time.Duration) {
	g.mu.Lock()
	if len(g.calls) == 0 || g.broken {
		g.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	g.idle = idle
	g.mu.Unlock()
	select {
	case <-idle:
	case <-time.After(limit):
	}
}

// entryField carries a call's entry from the library's hook, which knows the id, to the handler, which doesn't.
const entryField = "localllm/entry"

func attach(g *guard, id any, r *mcp.CallToolRequest) {
	if m, ok := id.(mcp.RequestId); ok {
		id = m.Value()
	}
	g.mu.Lock()
	c := g.calls[key(id)]
	g.mu.Unlock()
	if c == nil {
		return
	}
	if r.Params.Meta == nil {
		r.Params.Meta = &mcp.Meta{}
	}
	if r.Params.Meta.AdditionalFields == nil {
		r.Params.Meta.AdditionalFields = map[string]any{}
	}
	r.Params.Meta.AdditionalFields[entryField] = c
}

func attached(r mcp.CallToolRequest) *call {
	if r.Params.Meta == nil {
		return nil
	}
	c, _ := r.Params.Meta.AdditionalFields[entryField].(*call)
	return c
}
