package keeper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"localllm/lifecycle"
)

// Health is what a look at the running engine found.
type Health string

// The findings.
const (
	HealthNone    Health = ""         // no engine runs
	HealthOK      Health = "ok"       // it answered, whatever it answered
	HealthSilent  Health = "silent"   // connected, no answer in time: busy, or stuck
	HealthStopped Health = "stopped"  // its process is suspended (SIGSTOP)
	HealthGone    Health = "unserved" // nobody listens there
)

const healthPatience = 1500 * time.Millisecond

// Status looks: at the keeper's lock, its status file, the leases and, where an engine should serve, at the engine.
// A status that a killed keeper left behind is repaired first, so it is never shown.
func (c *Client) Status(ctx context.Context) (*Report, error) {
	f := c.folder()
	if !f.exists() {
		return &Report{Status: lifecycle.Status{State: lifecycle.Off}}, nil
	}
	if err := Repair(c.layout); err != nil {
		return nil, err
	}
	s, err := f.situation()
	if err != nil {
		return nil, err
	}
	r := &Report{Status: s.Status, KeeperAlive: s.Keeper, Leases: live(s.Leases)}
	if !s.Keeper && (s.Status.State.Active() || s.Status.State == lifecycle.Stopping) {
		// Between a kill and its repair, or between two writes: nothing serves.
		r.Status = lifecycle.Status{State: lifecycle.Off, Generation: s.Status.Generation, LastError: s.Status.LastError}
	}
	if s.Keeper && s.Wanted.Generation > s.Status.Generation && !s.Wanted.Stop && !s.Status.State.Active() {
		r.State = lifecycle.Starting // asked for, and not begun yet
	}
	if r.KeeperAlive {
		r.Persist = s.Wanted.Persist
		r.Health = health(ctx, s.Status)
	}
	switch r.Health {
	case HealthStopped:
		r.LastError = "the engine's process is suspended and answers nobody"
	case HealthGone:
		r.LastError = "nobody answers at the engine's address"
	}
	if s.Keeper && identity(s.Status.Keeper).Suspended() {
		r.LastError = fmt.Sprintf("the keeper (pid %d) is suspended and answers nobody", s.Status.Keeper.PID)
	}
	return r, nil
}

// health asks the engine for a sign of life.
func health(ctx context.Context, s lifecycle.Status) Health {
	if s.State != lifecycle.Ready || s.Endpoint == nil {
		return HealthNone
	}
	if identity(s.Server).Suspended() {
		return HealthStopped
	}
	ctx, cancel := context.WithTimeout(ctx, healthPatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Endpoint.URL+"/health", nil)
	if err != nil {
		return HealthGone
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close()
		return HealthOK
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" && ctx.Err() == nil {
		return HealthGone
	}
	return HealthSilent
}

// broken reports whether the running engine can't serve a session that joins: suspended, or nobody there. One that
// is merely silent may be at a long prompt.
func (c *Client) broken(ctx context.Context) bool {
	f := c.folder()
	if !f.keeperAlive() {
		return false
	}
	s, err := f.status()
	if err != nil {
		return false
	}
	h := health(ctx, s)
	return h == HealthStopped || h == HealthGone
}
