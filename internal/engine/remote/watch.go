package remote

import (
	"context"
	"errors"

	"localllm/delegate"
)

// Watched holds another backend's client to an endpoint's limits of time and names its profile.
type Watched struct {
	delegate.Completer
	limits Client
}

// Watch wraps c.
func Watch(c delegate.Completer, e Endpoint) *Watched {
	if e.First == 0 {
		e.First = or(e.Idle, defaultFirst)
	}
	e.Idle, e.Total = or(e.Idle, defaultIdle), or(e.Total, defaultTotal)
	return &Watched{Completer: c, limits: Client{Endpoint: e}}
}

// Complete implements delegate.Completer. Whatever makes progress counts as an event.
func (w *Watched) Complete(ctx context.Context, r delegate.Request) (delegate.Completion, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	dog := watch(&w.limits, cancel)
	defer dog.stop()
	if w.limits.MaxTokens > 0 && (r.MaxTokens == 0 || r.MaxTokens > w.limits.MaxTokens) {
		r.MaxTokens = w.limits.MaxTokens
	}
	if r.Model != "" && r.Model != w.limits.Model {
		return delegate.Completion{}, errors.New("the model of this client is another one")
	}
	say := r.Progress
	r.Progress = func(g delegate.Generating) {
		if g.Phase != "waiting" {
			dog.event()
		}
		if say != nil {
			say(g)
		}
	}
	out, err := w.Completer.Complete(ctx, r)
	if stalled := (*Error)(nil); err != nil && errors.As(context.Cause(ctx), &stalled) {
		err = stalled
	}
	return out, err
}

// Limits implements delegate.Completer.
func (w *Watched) Limits() delegate.Limits {
	l := w.Completer.Limits()
	l.Profile, l.MaxTokens, l.Loopback = w.limits.Profile, w.limits.MaxTokens, w.limits.Loopback
	return l
}

// Close lets go of what the client holds.
func (w *Watched) Close() {
	if c, ok := w.Completer.(interface{ Close() }); ok {
		c.Close()
	}
}
