package app

import (
	"context"
	"sync"

	"localllm/delegate"
	"localllm/internal/slots"
)

// place is the slot of the endpoint that a call holds. A verify may take minutes, in which another session's
// delegation should have the model: a single task gives its place back when it goes to prove, and takes one again when
// it asks the model again.
type place struct {
	pool    slots.Pool
	waiting func()

	mu    sync.Mutex
	slot  *slots.Slot
	index int // of the last slot: what was sent to it is still there, if nobody came between
}

// take returns the slot's index, and waits for one where none is held.
func (p *place) take(ctx context.Context) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.slot != nil {
		return p.index, nil
	}
	slot, err := p.pool.Take(ctx, p.index, p.waiting)
	if err != nil {
		return 0, err
	}
	p.slot, p.index = slot, slot.Index
	return p.index, nil
}

func (p *place) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.slot != nil {
		p.slot.Release()
		p.slot = nil
	}
}

// placed is a model that is asked from the place.
type placed struct {
	delegate.Completer
	place *place
}

// Complete implements delegate.Completer.
func (c placed) Complete(ctx context.Context, r delegate.Request) (delegate.Completion, error) {
	index, err := c.place.take(ctx)
	if err != nil {
		return delegate.Completion{}, err
	}
	if r.Slot >= 0 {
		r.Slot = index
	}
	return c.Completer.Complete(ctx, r)
}

// leaving is a lock before which the place is given back: whoever holds the tree may be waiting for a place.
type leaving struct {
	delegate.Locker
	place *place
}

// Lock implements delegate.Locker.
func (l leaving) Lock(ctx context.Context, waiting func()) (func(), error) {
	l.place.release()
	return l.Locker.Lock(ctx, waiting)
}
