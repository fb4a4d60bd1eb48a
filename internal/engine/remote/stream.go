package remote

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"localllm/internal/engine/sse"
)

// Reply takes one answer apart, in a stream or in one piece. A new one is made for each try.
type Reply interface {
	// Event takes the next event of a stream. sse.ErrStop ends it.
	Event(sse.Event) error
	// Whole takes an answer that came in one piece.
	Whole(body []byte) error
	// Begun reports whether output has come: then the request is not tried again.
	Begun() bool
}

// Ask sends body to route and has the answer read by what reply makes, trying again where that may help. reply is
// called once a try. The error is ctx's own when ctx ended.
func (c *Client) Ask(ctx context.Context, route string, body any, reply func() Reply) error {
	for n := 1; ; n++ {
		r := reply()
		err := c.once(ctx, route, body, r)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var e *Error
		if !errors.As(err, &e) {
			return err
		}
		e.Tries = n
		wait := c.wait(n, e.RetryAfter)
		if !e.again() || r.Begun() || n == tries {
			return err
		}
		if deadline, ok := ctx.Deadline(); (ok && time.Until(deadline) < wait) || e.RetryAfter > mostPatience {
			e.Message += fmt.Sprintf(" (it asks to wait %s)", wait.Round(time.Second))
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// mostPatience is the longest wait that a server may ask for.
const mostPatience = 2 * time.Minute

// wait is how long to pause after try n. What the server asks for is never undercut; the jitter keeps many that
// failed together from coming back together.
func (c *Client) wait(n int, asked time.Duration) time.Duration {
	if asked > 0 {
		return asked + rand.N(min(asked/4, 5*time.Second)+time.Millisecond)
	}
	base := c.Backoff << (n - 1)
	return base/2 + rand.N(base/2+1)
}

func (c *Client) once(ctx context.Context, route string, body any, r Reply) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := watch(c, cancel)
	defer w.stop()
	err := c.read(ctx, route, body, r, w)
	// What the HTTP client says of a request that we ended is only the echo of that.
	if stalled := (*Error)(nil); err != nil && errors.As(context.Cause(ctx), &stalled) {
		return stalled
	}
	return err
}

func (c *Client) read(ctx context.Context, route string, body any, r Reply, w *watchdog) error {
	resp, err := c.send(ctx, route, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch mediaType(resp) {
	case "application/json":
		data, err := c.body(resp)
		var told *Error
		if err != nil && !errors.As(err, &told) {
			return c.broke(err)
		}
		if err != nil {
			return err
		}
		return r.Whole(data)
	case "text/event-stream":
	default:
		return c.wrongType(resp)
	}
	err = sse.Read(resp.Body, func(e sse.Event) error {
		w.event()
		return r.Event(e)
	})
	var told *Error
	if err != nil && !errors.As(err, &told) {
		return c.broke(err)
	}
	return err
}

// Bad is an answer that can't be read.
func (c *Client) Bad(what string, err error) error {
	return &Error{Profile: c.Profile, Kind: Broken, Message: what, cause: err}
}

func (c *Client) broke(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &Error{Profile: c.Profile, Kind: Broken, Message: "the answer broke off: " + c.Scrub(reason(err)), cause: err, passing: true}
}

// watchdog ends a request that makes no progress. Only whole events count: a server that dribbles bytes or comments
// says nothing. The total limit holds for one that dribbles events.
type watchdog struct {
	mu     sync.Mutex
	client *Client
	cancel context.CancelCauseFunc
	idle   *time.Timer
	total  *time.Timer
	events int
}

func watch(c *Client, cancel context.CancelCauseFunc) *watchdog {
	w := &watchdog{client: c, cancel: cancel}
	first := c.First
	if c.WholeAnswers {
		first = c.Total
	}
	w.idle = time.AfterFunc(first, func() { w.end(fmt.Sprintf("nothing came for %s", w.limit(first))) })
	w.total = time.AfterFunc(c.Total, func() { w.end(fmt.Sprintf("the answer was not complete after %s", c.Total)) })
	return w
}

func (w *watchdog) limit(first time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.events == 0 {
		return first
	}
	return w.client.Idle
}

func (w *watchdog) end(message string) {
	w.cancel(&Error{Profile: w.client.Profile, Kind: Stalled, Message: message})
}

func (w *watchdog) event() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events++
	w.idle.Reset(w.client.Idle)
}

func (w *watchdog) stop() {
	w.idle.Stop()
	w.total.Stop()
}
