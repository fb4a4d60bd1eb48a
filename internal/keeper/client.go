package keeper

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"localllm/internal/paths"
	"localllm/internal/session"
	"localllm/lifecycle"
)

// Client is a session's side: it takes and lets go of leases, says what is wanted, and waits for the keeper. It
// never runs an engine itself. Its methods may be called from any goroutine.
type Client struct {
	layout     paths.Layout
	executable string
	environ    []string

	mu    sync.Mutex
	holds []*hold // what this process locks
}

// ClientOptions make a client. Executable is the localllm to run as keeper; empty means this very program.
type ClientOptions struct {
	Layout     paths.Layout
	Executable string
	Environ    []string // of the keeper; nil means what of this process's environment matters to it
}

// NewClient prepares a client. It touches no file.
func NewClient(o ClientOptions) *Client {
	return &Client{layout: o.Layout, executable: o.Executable, environ: o.Environ}
}

func (c *Client) folder() folder { return folder{c.layout} }

// Enabled is what a session got.
type Enabled struct {
	Status   lifecycle.Status // ready; Spec and Endpoint are set
	Started  string           // "cold", "joined" or "adopted"
	Detached bool             // the keeper is outside of the client's process tree
	Persist  bool
	Lease    lifecycle.Lease
	Fresh    bool              // the session had no lease before
	Sessions []lifecycle.Lease // every live one, this included
	Why      []string
	Warnings []string
}

// How an engine was come by.
const (
	StartedCold    = "cold"
	StartedJoined  = "joined"
	StartedAdopted = "adopted"
)

// Report is what Status found.
type Report struct {
	lifecycle.Status
	KeeperAlive bool
	Leases      []lifecycle.Lease // live ones
	Health      Health
}

// Uptime of the keeper, 0 where none lives.
func (r Report) Uptime() time.Duration {
	if !r.KeeperAlive || r.KeeperAt.IsZero() {
		return 0
	}
	return time.Since(r.KeeperAt)
}

// mine finds the lock that this process holds for a session. The caller holds c.mu.
func (c *Client) mine(b session.Binding) *hold {
	for _, h := range c.holds {
		if h.lease.Kind == lifecycle.Held && h.lease.Belongs(process(b.Client), b.Session) {
			return h
		}
	}
	return nil
}

// take makes sure that the session has one lease, and only one. The caller holds the folder's lock. An orphan of the
// same client is what its server left when it died: it is replaced.
func (c *Client) take(b session.Binding, seen []lifecycle.Observed) (l lifecycle.Lease, fresh bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.folder()
	client := process(b.Client)
	if h := c.mine(b); h != nil && b.Held {
		if slices.ContainsFunc(seen, func(o lifecycle.Observed) bool { return o.ID == h.lease.ID && !o.Ended }) {
			return h.lease, false, nil
		}
		c.forget(h) // another process of the same session let go of it: a command line below the client
	}
	var previous []string
	for _, o := range seen {
		if !o.Belongs(client, b.Session) {
			continue
		}
		if o.Kind == lifecycle.Bound && !b.Held && o.ClientAlive && !o.Ended && o.Client.Is(client) {
			return o.Lease, false, nil
		}
		if o.Orphan() || o.Kind == lifecycle.Bound && b.Held && o.Client.Is(client) {
			previous = append(previous, o.ID)
		}
	}
	lease := lifecycle.Lease{Kind: lifecycle.Bound, Session: b.Session, Who: b.Who, Client: client, Project: b.Project}
	if b.Held {
		lease.Kind, lease.Holder = lifecycle.Held, self()
	}
	h, err := f.createLease(lease)
	if err != nil {
		return lifecycle.Lease{}, false, err
	}
	if b.Held {
		c.holds = append(c.holds, h)
	}
	for _, id := range previous {
		f.remove(id)
	}
	return h.lease, true, nil
}

// forget ends a lock of this process. The caller holds c.mu.
func (c *Client) forget(h *hold) {
	h.end()
	c.holds = slices.DeleteFunc(c.holds, func(other *hold) bool { return other == h })
}

// drop lets go of one lease that take made. The caller holds no lock.
func (c *Client) drop(l lifecycle.Lease) {
	c.mu.Lock()
	if i := slices.IndexFunc(c.holds, func(h *hold) bool { return h.lease.ID == l.ID }); i >= 0 {
		c.forget(c.holds[i])
	}
	c.mu.Unlock()
	if l.Kind != lifecycle.Bound {
		return
	}
	f := c.folder()
	if lock, err := f.lock(context.Background()); err == nil {
		f.remove(l.ID)
		_ = lock.Release()
	}
}

// Close ends every lease that this process holds, in an orderly way: there is no grace after it. It takes
// microseconds, for clients give their servers no more than milliseconds.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.holds {
		h.end()
	}
	c.holds = nil
}

// Hold is one more lease of this process.
type Hold struct {
	client *Client
	lease  lifecycle.Lease
}

// Lease is what is held.
func (h *Hold) Lease() lifecycle.Lease { return h.lease }

// Release lets go. It may be called twice.
func (h *Hold) Release() { h.client.drop(h.lease) }

// HoldTask takes one more lease for a background task that this process runs: the engine stays until the lease is
// released, the process dies or the deadline comes. It is ErrNotEnabled where no engine runs or comes.
func (c *Client) HoldTask(ctx context.Context, who, sessionID, project string, until time.Time) (*Hold, error) {
	f := c.folder()
	if err := f.make(); err != nil {
		return nil, err
	}
	lock, err := f.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	s, err := f.situation()
	if err != nil {
		return nil, err
	}
	if s.Running() == nil {
		return nil, fmt.Errorf("holding the engine for %s: %w", who, lifecycle.ErrNotEnabled)
	}
	h, err := f.createLease(lifecycle.Lease{
		Kind: lifecycle.Task, Session: sessionID, Who: who, Holder: self(), Client: self(), Project: project, Until: until.UTC(),
	})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.holds = append(c.holds, h)
	c.mu.Unlock()
	return &Hold{client: c, lease: h.lease}, nil
}

// TakeOver gives a server that its client has started again the lease that the dead one left. It reports whether
// there was one. A server calls it once when it begins; it costs one look at a folder where there is nothing.
func (c *Client) TakeOver(ctx context.Context, b session.Binding) (bool, error) {
	f := c.folder()
	seen, err := f.observe()
	if err != nil || !anyOrphan(seen, b) {
		return false, err
	}
	lock, err := f.lock(ctx)
	if err != nil {
		return false, err
	}
	defer lock.Release()
	if seen, err = f.observe(); err != nil || !f.keeperAlive() || !anyOrphan(seen, b) {
		return false, err
	}
	b.Held = true
	_, _, err = c.take(b, seen)
	return err == nil, err
}

func anyOrphan(seen []lifecycle.Observed, b session.Binding) bool {
	for _, o := range seen {
		if o.Orphan() && o.Belongs(process(b.Client), b.Session) {
			return true
		}
	}
	return false
}

// SessionEnded is for the client's own hook: what is left of the session's leases and held by nobody goes at once,
// without the forgiveness that a crashed server gets. A lease that a living server locks stays until that ends. It
// returns how many went.
func (c *Client) SessionEnded(ctx context.Context, b session.Binding) (int, error) {
	f := c.folder()
	seen, err := f.observe()
	if err != nil || len(seen) == 0 {
		return 0, err
	}
	lock, err := f.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer lock.Release()
	if seen, err = f.observe(); err != nil {
		return 0, err
	}
	gone := 0
	f.sweepLeases(seen, func(o lifecycle.Observed) bool {
		ours := o.Belongs(process(b.Client), b.Session) && (o.Kind == lifecycle.Bound || o.Orphan())
		if ours {
			gone++
		}
		return ours
	})
	return gone, nil
}
