package mcpserver

import (
	"context"
	"encoding/json"
	"math"
	"sync"
	"time"

	"localllm/internal/terminal"
)

const (
	// heartbeat keeps clients that give up after a silent minute, and those that show a line, informed.
	heartbeat = 8 * time.Second
	// pace is the least time between two reports of the same phase.
	pace = 250 * time.Millisecond
)

// sender is how one progress notification goes out for a call.
func (s *service) sender(ctx context.Context, entry *call, token any) func(progress float64, message string) {
	return func(progress float64, message string) {
		params := map[string]any{"progressToken": token, "progress": progress, "message": message}
		if s.guard == nil {
			_ = s.mcp.SendNotificationToClient(ctx, "notifications/progress", params)
			return
		}
		line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
		if err == nil {
			s.guard.progress(entry, append(line, '\n'))
		}
	}
}

// reporter turns an action's reports into notifications: one at once, one at every new phase, at most four a second
// of the same phase, and the last one again when nothing has moved for a while.
type reporter struct {
	send  func(progress float64, message string)
	start time.Time

	mu     sync.Mutex
	latest Progress
	fresh  chan struct{} // holds one token when latest has not been sent
	done   chan struct{}
	ended  chan struct{}
}

// startReporter sends the first notification and starts the goroutine that sends the others; stop ends it.
func startReporter(action string, send func(float64, string)) *reporter {
	r := &reporter{send: send, start: time.Now(), latest: Progress{Phase: action}, fresh: make(chan struct{}, 1),
		done: make(chan struct{}), ended: make(chan struct{})}
	send(0, action+": started")
	go r.run()
	return r
}

// report notes how far the action is, and never waits for the client to read.
func (r *reporter) report(p Progress) {
	r.mu.Lock()
	r.latest = p
	r.mu.Unlock()
	select {
	case r.fresh <- struct{}{}:
	default:
	}
}

// stop returns when the last notification is out.
func (r *reporter) stop() {
	close(r.done)
	<-r.ended
}

func (r *reporter) run() {
	defer close(r.ended)
	// The protocol wants a number that grows with every notification, while phases start over: it is the seconds
	// since the call began, and what the phase counts is in the words.
	sent := 0.0
	phase := ""
	beat := time.NewTimer(heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-r.done:
			return
		case <-r.fresh:
		case <-beat.C:
		}
		r.mu.Lock()
		p := r.latest
		r.mu.Unlock()
		elapsed := time.Since(r.start)
		sent = max(sent+0.001, math.Round(elapsed.Seconds()*1000)/1000)
		r.send(sent, terminal.Describe(p, elapsed))
		beat.Reset(heartbeat)
		if p.Phase == phase {
			select {
			case <-r.done:
				return
			case <-time.After(pace):
			}
		}
		phase = p.Phase
	}
}
