package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"localllm/delegate"
	"localllm/internal/config"
	"localllm/internal/engine/llamaserver"
	"localllm/internal/engine/ollama"
	"localllm/internal/hint"
	"localllm/internal/keeper"
	"localllm/internal/request"
	"localllm/internal/session"
	"localllm/lifecycle"
)

// target is where a delegation goes.
type target struct {
	delegate.Completer
	key      string // of the endpoint: sessions and slots are kept by it
	limits   delegate.Limits
	think    bool
	profile  *config.Profile     // nil: the managed engine
	endpoint *lifecycle.Endpoint // of the managed engine
	warnings []string            // about the choice of it, for the results
	release  func()
}

// target resolves a task's profile, tier and model to an endpoint that answers.
func (a *App) target(ctx context.Context, t *delegate.Task, report func(Progress)) (*target, error) {
	profile, model, think := t.Profile, t.Model, false
	applied := false
	if tier, ok := a.config.Tiers[t.Tier]; ok {
		think = tier.Think
		if profile == "" || profile == tier.Profile { // a tier's model is its profile's, and no other's
			profile, model, applied = tier.Profile, cmp.Or(model, tier.Model), true
		}
	}
	profile = cmp.Or(profile, a.config.Profile)
	var warnings []string
	if !applied {
		warnings = a.tierWarnings(t, profile)
	}
	if profile != "" {
		to, err := a.profileTarget(profile, model, t.Tier, think)
		if err == nil {
			to.warnings = warnings
		}
		return to, err
	}
	st, release, err := a.ready(ctx, model, taskLimit(t), report)
	if err != nil {
		return nil, err
	}
	c, err := connect(*st.Endpoint)
	if err != nil {
		release()
		return nil, err
	}
	return &target{
		Completer: c, key: st.Endpoint.URL, limits: c.Limits(), think: think, endpoint: st.Endpoint, warnings: warnings, release: release,
	}, nil
}

// tierWarnings says that a tier was asked for and nothing stands for it: then it is the usual model that answers.
func (a *App) tierWarnings(t *delegate.Task, profile string) []string {
	if t.Tier == "" || t.Tier == "default" || t.Model != "" {
		return nil
	}
	if a.config.Profiles[profile].Tiers[t.Tier] != "" {
		return nil
	}
	where := "[tiers]"
	if profile != "" {
		where = "profile " + profile
	}
	return []string{fmt.Sprintf("tier %s is not configured in %s of %s: the usual model was asked", t.Tier, where, a.config.Path)}
}

// connect speaks to the managed engine.
func connect(e lifecycle.Endpoint) (delegate.Completer, error) {
	if e.Engine == lifecycle.Ollama {
		return ollama.Connect(e)
	}
	return llamaserver.Connect(e)
}

// ready is the managed engine once it serves, and a lease on it for as long as this call lasts, but no longer than limit.
func (a *App) ready(ctx context.Context, model string, limit time.Duration, report func(Progress)) (*keeper.Report, func(), error) {
	st, err := a.client.Status(ctx)
	if err != nil {
		return nil, nil, err
	}
	if !st.KeeperAlive || !st.State.Active() {
		if !a.config.AutoEnable {
			return nil, nil, notEnabled(st)
		}
		if _, err := a.Enable(ctx, &request.Enable{Model: model}, report); err != nil {
			return nil, nil, err
		}
	}
	bound, err := a.binding(ctx)
	if err != nil {
		return nil, nil, err
	}
	release := func() {}
	if !callOf(ctx).InRunner && !slices.ContainsFunc(st.Leases, func(l lifecycle.Lease) bool { return belongs(l, bound) }) {
		hold, err := a.client.HoldTask(ctx, "delegation for "+bound.Who, bound.Session, bound.Project, time.Now().Add(limit))
		if err != nil {
			return nil, nil, err
		}
		release = hold.Release
	}
	if st, err = a.awaitReady(ctx, report); err != nil {
		release()
		return nil, nil, err
	}
	if model != "" && !slices.Contains(modelNames(model), st.Spec.Model) && model != st.Spec.Path {
		release()
		return nil, nil, hint.Add(&InvalidError{fmt.Sprintf("model %s is not the enabled one, %s", model, st.Spec.Model)},
			fmt.Sprintf("localllm enable --model %s", model), "leave model out")
	}
	return st, release, nil
}

func notEnabled(st *keeper.Report) error {
	err := error(ErrNotEnabled)
	if st.State == lifecycle.Failed && st.LastError != "" {
		err = fmt.Errorf("%w: the last one failed: %s", ErrNotEnabled, st.LastError)
	}
	return hint.Add(err, `enable one first (action "enable", or «localllm enable»)`, "auto_enable = true in the configuration lets delegate do that by itself")
}

// awaitReady waits while the engine starts, or starts again after a crash.
func (a *App) awaitReady(ctx context.Context, report func(Progress)) (*keeper.Report, error) {
	for {
		st, err := a.client.Status(ctx)
		switch {
		case err != nil:
			return nil, err
		case st.State == lifecycle.Ready && st.Endpoint != nil && st.Spec != nil:
			return st, nil
		case !st.State.Active():
			return nil, notEnabled(st)
		}
		p := st.Progress
		if p.Phase == "" {
			p.Phase = "waiting for the engine"
		}
		report(p)
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func belongs(l lifecycle.Lease, b session.Binding) bool {
	return l.Belongs(lifecycle.Process{PID: b.Client.PID, Start: b.Client.Start, Boot: b.Client.Boot}, b.Session)
}
