package keeper

import (
	"context"
	"fmt"
	"slices"
	"time"

	"localllm/internal/session"
	"localllm/lifecycle"
)

// EnableRequest is what a session wants.
type EnableRequest struct {
	Choices   []lifecycle.Spec // in the order of stepping down; empty: only join what runs
	Match     *lifecycle.Match // what of a running engine would do besides the choices; &Match{}: anything
	Persist   bool
	IdleLimit time.Duration // of a persisted engine; 0: none
	Force     bool          // may push out somebody's model on an adopted server
	Session   session.Binding
	Env       []string // the client's environment; only what matters to an engine is passed on
	Report    func(lifecycle.Progress)
}

// Enable gets the session a lease on a ready engine: it joins one that runs, or has the keeper start one, and waits.
// When ctx ends first, or nothing could be started, the lease is gone again. Errors: *lifecycle.BusyError where
// another session holds another model, *lifecycle.StartError where the engine did not come up.
func (c *Client) Enable(ctx context.Context, r EnableRequest) (*Enabled, error) {
	if r.Report == nil {
		r.Report = func(lifecycle.Progress) {}
	}
	if err := Repair(c.layout); err != nil {
		return nil, err
	}
	if err := c.folder().make(); err != nil {
		return nil, err
	}
	ask := lifecycle.Ask{Choices: r.Choices, Match: r.Match, Client: process(r.Session.Client), Session: r.Session.Session}
	ask.Broken = c.broken(ctx)
	e, verdict, err := c.begin(ctx, r, ask)
	if err != nil {
		return nil, err
	}
	status, err := c.await(ctx, r, e.generation)
	if err != nil {
		if e.fresh {
			c.drop(e.lease)
		}
		return nil, err
	}
	return c.enabled(status, e, verdict, r), nil
}

// Join is Enable where something suitable runs already, and nothing at all (false) where not. It is for callers that
// want to know before they survey the machine: on a ready engine it takes a few milliseconds.
func (c *Client) Join(ctx context.Context, r EnableRequest) (*Enabled, bool, error) {
	if !c.folder().keeperAlive() {
		return nil, false, nil
	}
	if r.Match == nil && len(r.Choices) == 0 {
		r.Match = &lifecycle.Match{}
	}
	r.Choices = nil
	e, err := c.Enable(ctx, r)
	if err == errNothingRuns {
		return nil, false, nil
	}
	return e, err == nil, err
}

// errNothingRuns is what a begin without choices comes to where there is nothing to join.
var errNothingRuns = fmt.Errorf("joining: %w", lifecycle.ErrNotEnabled)

// entry is a lease taken under the folder's lock, and the generation that it waits for.
type entry struct {
	lease      lifecycle.Lease
	fresh      bool
	generation int
	ready      bool // already when we looked
}

// begin does under the folder's lock all that must not happen twice.
func (c *Client) begin(ctx context.Context, r EnableRequest, ask lifecycle.Ask) (entry, lifecycle.Verdict, error) {
	f := c.folder()
	lock, err := f.lock(ctx)
	if err != nil {
		return entry{}, lifecycle.Verdict{}, err
	}
	defer lock.Release()
	f.clean()
	s, err := f.situation()
	if err != nil {
		return entry{}, lifecycle.Verdict{}, err
	}
	v := lifecycle.Decide(s, ask)
	switch v.Move {
	case lifecycle.Nothing:
		return entry{}, v, errNothingRuns
	case lifecycle.Refuse:
		return entry{}, v, &lifecycle.BusyError{Model: v.Running.Model, Holders: v.Holders}
	}
	// The lease comes first: a client that is killed after it leaves only a free file, and one that was killed after
	// saying what it wants would leave a keeper with work for nobody.
	lease, fresh, err := c.take(r.Session, s.Leases)
	if err != nil {
		return entry{}, v, err
	}
	e := entry{lease: lease, fresh: fresh, generation: s.Wanted.Generation}
	e.ready = v.Move == lifecycle.Join && s.Status.State == lifecycle.Ready
	if err := c.want(r, v, s, &e); err != nil {
		if fresh {
			c.dropLocked(lease)
		}
		return entry{}, v, err
	}
	return e, v, nil
}

// want writes what the keeper has to do and makes sure that there is a keeper. The caller holds the folder's lock.
func (c *Client) want(r EnableRequest, v lifecycle.Verdict, s lifecycle.Situation, e *entry) error {
	f := c.folder()
	w := s.Wanted
	if v.Move != lifecycle.Join {
		w = lifecycle.Wanted{
			Generation: max(s.Wanted.Generation, s.Status.Generation) + 1,
			Choices:    r.Choices, Env: RelevantEnv(r.Env), Force: r.Force,
		}
	}
	if r.Persist {
		w.Persist, w.PersistBy, w.IdleLimit = true, e.lease.Client, r.IdleLimit
	}
	if v.Move != lifecycle.Join || r.Persist {
		if err := f.writeWanted(w); err != nil {
			return err
		}
	}
	e.generation = w.Generation
	if s.Keeper {
		return nil
	}
	return c.spawn()
}

// dropLocked is drop for one who holds the folder's lock.
func (c *Client) dropLocked(l lifecycle.Lease) {
	if l.Kind == lifecycle.Bound {
		c.folder().remove(l.ID)
		return
	}
	c.drop(l)
}

func (c *Client) enabled(status lifecycle.Status, e entry, v lifecycle.Verdict, r EnableRequest) *Enabled {
	out := &Enabled{Status: status, Started: StartedCold, Persist: status.Persist || r.Persist, Lease: e.lease, Fresh: e.fresh, Why: v.Why, Warnings: status.Warnings}
	switch {
	case v.Move == lifecycle.Join:
		out.Started = StartedJoined
	case status.Endpoint != nil && status.Endpoint.Adopted:
		out.Started = StartedAdopted
	}
	if status.Endpoint != nil {
		out.Warnings = append(out.Warnings[:len(out.Warnings):len(out.Warnings)], status.Endpoint.Warnings...)
	}
	if note := NetworkFolder(c.layout.Run); note != "" {
		out.Warnings = append(out.Warnings, note)
	}
	seen, _ := c.folder().observe()
	out.Sessions = live(seen)
	out.Detached = !session.Inside(status.Keeper.PID, identity(self()), r.Session.Client)
	return out
}

// live are the sessions that hold a lease, each once: a client's server and a command line below the same client are
// one session.
func live(seen []lifecycle.Observed) []lifecycle.Lease {
	var leases []lifecycle.Lease
	for _, o := range seen {
		again := slices.ContainsFunc(leases, func(l lifecycle.Lease) bool { return o.Kind != lifecycle.Task && l.Belongs(o.Client, "") })
		if o.Counts() && !again {
			leases = append(leases, o.Lease)
		}
	}
	return leases
}
