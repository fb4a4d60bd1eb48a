package keeper

import (
	"context"
	"fmt"
	"time"

	"localllm/internal/session"
	"localllm/lifecycle"
)

// DisableRequest lets go. StopEngine: nil stops where we started it and no other session holds it; false lets go and
// leaves the engine loaded; true together with Force stops it under other sessions too.
type DisableRequest struct {
	Session    session.Binding
	StopEngine *bool
	Force      bool
	Report     func(lifecycle.Progress)
}

// Disabled is what came of it.
type Disabled struct {
	Disabled     bool // the session held the engine, or stops it
	Stopped      bool // our server ended
	Unloaded     bool // our model was unloaded
	Reason       string
	SessionsLeft []lifecycle.Lease
	Released     uint64 // bytes
	ReleaseMS    int64
	HeldBy       []string // who holds the memory where it did not come back
}

// Disable lets go of the session's lease and, where nobody else needs the engine, waits until it is gone.
func (c *Client) Disable(ctx context.Context, r DisableRequest) (*Disabled, error) {
	if err := Repair(c.layout); err != nil {
		return nil, err
	}
	out, waitFor, err := c.letGo(ctx, r)
	if err != nil || waitFor == 0 {
		return out, err
	}
	begin := time.Now()
	status, err := c.awaitOff(ctx, waitFor, r.Report)
	if err != nil {
		return out, err
	}
	out.ReleaseMS = time.Since(begin).Milliseconds()
	if rel := status.Release; rel != nil && rel.Generation >= waitFor-1 {
		out.Stopped, out.Unloaded, out.Released, out.HeldBy = rel.Process, rel.Model, rel.Bytes, rel.HeldBy
	}
	return out, nil
}

// letGo drops the lease and says what is wanted now; waitFor is the generation whose end is to be waited for, or 0.
func (c *Client) letGo(ctx context.Context, r DisableRequest) (out *Disabled, waitFor int, err error) {
	f := c.folder()
	out = &Disabled{}
	if !f.exists() {
		out.Reason = "no engine is enabled"
		return out, 0, nil
	}
	lock, err := f.lock(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer lock.Release()
	s, err := f.situation()
	if err != nil {
		return nil, 0, err
	}
	held, wasPersistBy := c.dropSession(r.Session, s)
	if s.Leases, err = f.observe(); err != nil {
		return nil, 0, err
	}
	out.SessionsLeft = live(s.Leases)
	out.Disabled = held && s.Running() != nil
	if !s.Keeper || s.Running() == nil && s.Status.State != lifecycle.Stopping && s.Status.State != lifecycle.Failed {
		out.Reason = "no engine is enabled"
		return out, 0, nil
	}
	w := s.Wanted
	stop, reason := stopWanted(r, out.SessionsLeft)
	out.Reason = reason
	switch {
	case stop:
		out.Disabled = s.Running() != nil
		w.Generation, w.Stop, w.Persist = max(w.Generation, s.Status.Generation)+1, true, false
		return out, w.Generation, f.writeWanted(w)
	case r.StopEngine != nil && !*r.StopEngine && len(out.SessionsLeft) == 0:
		w.Persist = true
		return out, 0, f.writeWanted(w)
	case w.Persist && wasPersistBy:
		w.Persist = false // who asked for it has let go; the others' leases keep the engine
		return out, 0, f.writeWanted(w)
	}
	return out, 0, nil
}

func stopWanted(r DisableRequest, holders []lifecycle.Lease) (bool, string) {
	left := len(holders)
	switch {
	case r.StopEngine != nil && !*r.StopEngine && left == 0:
		return false, "the engine stays loaded, as asked, until the next disable"
	case r.StopEngine != nil && !*r.StopEngine:
		return false, "the engine stays, as asked"
	case left == 0:
		return true, "no other session holds the engine"
	case r.Force:
		return true, "stopped by force under " + lifecycle.Labels(holders)
	default:
		return false, "still held by " + lifecycle.Labels(holders)
	}
}

// dropSession ends every lease of the session, and reports whether there was one, and whether it was the one that made
// the engine persist. The caller holds the folder's lock.
func (c *Client) dropSession(b session.Binding, s lifecycle.Situation) (held, persistBy bool) {
	f := c.folder()
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.mine(b); h != nil {
		c.forget(h)
	}
	for _, o := range s.Leases {
		// A shell puts the last command of `sh -c` in its own place: what was bound to the shell is bound to us then.
		ours := o.Kind == lifecycle.Bound && o.Client.Is(self())
		if ours || o.Belongs(process(b.Client), b.Session) {
			held, persistBy = true, persistBy || o.Client.Is(s.Wanted.PersistBy)
			f.remove(o.ID)
		}
	}
	return held, persistBy
}

// awaitOff waits until the engine of the generation before stop's is gone.
func (c *Client) awaitOff(ctx context.Context, stop int, report func(lifecycle.Progress)) (lifecycle.Status, error) {
	f := c.folder()
	var shown lifecycle.Progress
	asked := newAsked(stop)
	for {
		alive := f.keeperAlive()
		status, err := f.status()
		if err != nil {
			return status, err
		}
		if !alive {
			// It ended as asked, or was killed: then what it left is ended here.
			return status, Repair(c.layout)
		}
		if status.Generation >= stop && !status.State.Active() && status.State != lifecycle.Stopping || status.Generation > stop {
			return status, nil
		}
		if err := asked.unheard(status); err != nil {
			return status, err
		}
		if report != nil && status.Progress != shown {
			shown = status.Progress
			report(shown)
		}
		select {
		case <-ctx.Done():
			return status, fmt.Errorf("waiting for the engine's end: %w", context.Cause(ctx))
		case <-time.After(glance):
		}
	}
}
