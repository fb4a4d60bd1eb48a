package app

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"localllm/capability"
	"localllm/delegate"
	"localllm/internal/config"
	"localllm/internal/hint"
	"localllm/internal/paths"
	"localllm/internal/request"
)

// enableProfile looks whether a profile can be delegated to. There is nothing to start, and nothing is held: its
// server is somebody else's.
func (a *App) enableProfile(ctx context.Context, in *request.Enable) (any, error) {
	to, err := a.profileTarget(in.Profile, in.Model, "", false)
	if err != nil {
		return nil, err
	}
	defer to.close()
	start := time.Now()
	h, err := a.profileHealth(ctx, in.Profile)
	if err != nil {
		return nil, err
	}
	if !h.OK {
		return nil, hint.Add(fmt.Errorf("%w: %s", ErrCannotEnable, h.Error), "localllm profiles test "+in.Profile)
	}
	l := to.limits
	out := &Enabled{
		Enabled: true, Engine: l.Engine, Model: l.Model, Context: l.Context, Slots: l.Slots, Endpoint: to.profile.BaseURL, Started: "adopted",
		Persist: in.Persist, LoadMS: time.Since(start).Milliseconds(), Profile: in.Profile, Warnings: []string{},
		Why: []string{"profile " + in.Profile + " answers; its server is not ours to start or stop"},
	}
	if a.config.Profile != in.Profile {
		out.Why = append(out.Why, fmt.Sprintf("say profile %q in delegate, or profile = %q at the top of %s", in.Profile, in.Profile, a.config.Path))
	}
	if in.Context != 0 || in.KVType != "" || in.Engine != "" || in.Pull || in.Slots > 1 || len(in.WarmFiles) > 0 {
		out.Warnings = append(out.Warnings, "context, kv_type, engine, pull, slots and warm_files say how to start an engine: without effect on a profile")
	}
	if h.Note != "" {
		out.Warnings = append(out.Warnings, h.Note)
	}
	return out, nil
}

// Loopback servers are asked how they are while the rest is looked at; others are not, unless one is named: a look
// at the machine must neither wait for the network nor show a key to it.
const (
	quickLook  = 150 * time.Millisecond
	namedLook  = 5 * time.Second
	notAskedOf = "not asked; «localllm status --profile %s» asks"
)

func (a *App) addProfiles(ctx context.Context, r *capability.Report, only string) error {
	names := a.profileNames()
	limit := quickLook
	if only != "" {
		if !slices.Contains(names, only) {
			return a.noProfile(only)
		}
		names, limit, r.Engines = []string{only}, namedLook, nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	found := make([]capability.EngineInfo, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		p := a.config.Profiles[name]
		all.Go(func() { found[i] = a.lookAt(ctx, name, p, only != "" || p.Loopback()) })
	}
	all.Wait()
	r.Engines = append(r.Engines, found...)
	if only != "" {
		judgeProfile(r, found[0])
	}
	return nil
}

// judgeProfile makes the report one of a profile's endpoint: what this machine could run itself is beside the point.
func judgeProfile(r *capability.Report, e capability.EngineInfo) {
	r.CanEnable, r.Recommended = e.State == capability.Running, nil
	r.Models, r.Rejected = []capability.ModelReport{}, []capability.Rejection{}
	if r.CanEnable {
		r.Reasons = []string{fmt.Sprintf("profile %s answers at %s", e.Name, e.URL)}
		r.Hints = []string{fmt.Sprintf("say profile %q in delegate", e.Name)}
		return
	}
	why := strings.TrimPrefix(e.Detail, "profile "+e.Name+": ") // errors of an endpoint name it too
	r.Reasons = []string{fmt.Sprintf("profile %s can't be used: %s", e.Name, why)}
	r.Hints = []string{"localllm profiles test " + e.Name}
}

func (a *App) lookAt(ctx context.Context, name string, p config.Profile, ask bool) capability.EngineInfo {
	e := capability.EngineInfo{Name: name, State: capability.Installed, URL: p.BaseURL, Detail: fmt.Sprintf(notAskedOf, name)}
	switch {
	case p.APIKeyEnv != "" && os.Getenv(p.APIKeyEnv) == "":
		e.State, e.Detail = capability.Unreachable, p.APIKeyEnv+" is not set"
	case ask:
		h, err := a.profileHealth(ctx, name)
		if err != nil || !h.OK {
			e.State, e.Detail = capability.Unreachable, "it did not answer"
			if err == nil && ctx.Err() == nil {
				e.Detail = h.Error
			}
			return e
		}
		e.State, e.Models, e.Detail = capability.Running, len(h.Models), h.Note
	}
	return e
}

// ProfileInfo is a profile as list and show tell it.
type ProfileInfo struct {
	Name    string `json:"name"`
	Default bool   `json:"default,omitempty"`
	config.Profile
	KeySet   bool     `json:"key_set"` // whether the variable of its key holds one
	Local    bool     `json:"local"`   // nothing leaves this machine
	Tiers    []string `json:"for_tiers,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// Profiles lists the configured ones.
func (a *App) Profiles() []ProfileInfo {
	all := []ProfileInfo{}
	for _, name := range a.profileNames() {
		all = append(all, a.describe(name, a.config.Profiles[name]))
	}
	return all
}

// Profile is one of them.
func (a *App) Profile(name string) (*ProfileInfo, error) {
	p, ok := a.config.Profiles[name]
	if !ok {
		return nil, a.noProfile(name)
	}
	info := a.describe(name, p)
	return &info, nil
}

func (a *App) describe(name string, p config.Profile) ProfileInfo {
	info := ProfileInfo{Name: name, Default: name == a.config.Profile, Profile: p, Local: p.Loopback()}
	info.KeySet = p.APIKeyEnv != "" && os.Getenv(p.APIKeyEnv) != ""
	for _, tier := range config.TierNames {
		if a.config.Tiers[tier].Profile == name {
			info.Tiers = append(info.Tiers, tier)
		}
	}
	if p.APIKeyEnv != "" && !p.Loopback() && strings.HasPrefix(p.BaseURL, "http://") {
		info.Warnings = append(info.Warnings, "the key goes over the network in the clear: use https")
	}
	return info
}

// TestProfile asks a profile's server how it is, and with ask a question too.
func (a *App) TestProfile(ctx context.Context, name, model string, ask bool) (*ProfileHealth, error) {
	h, err := a.profileHealth(ctx, name)
	if err != nil || !h.OK || !ask {
		return h, err
	}
	to, err := a.profileTarget(name, model, "", false)
	if err != nil {
		return nil, err
	}
	defer to.close()
	start := time.Now()
	out, err := to.Complete(ctx, delegate.Request{
		Messages: []delegate.Message{{Role: delegate.User, Content: "Answer with the one word: ready"}}, MaxTokens: 64, Slot: -1,
	})
	h.LatencyMS = time.Since(start).Milliseconds()
	if err != nil {
		h.OK, h.Error = false, err.Error()
		return h, nil
	}
	h.Answer = strings.TrimSpace(out.Text)
	return h, nil
}

// InitProfiles adds presets, or what other tools left, to the configuration file, and makes it if there is none.
func (a *App) InitProfiles(presets []string, takeOver, dry bool) (*config.Added, []string, error) {
	add := config.Addition{Profiles: map[string]config.Profile{}, Comments: map[string]string{}, Tiers: map[string]string{}}
	for _, name := range presets {
		p, ok := config.FindPreset(name)
		if !ok {
			return nil, nil, hint.Add(&InvalidError{fmt.Sprintf("there is no preset %q", name)}, "presets are "+strings.Join(config.PresetNames(), ", "))
		}
		add.Profiles[name], add.Comments[name] = p.Profile, p.About
	}
	var told []string
	if takeOver {
		home, err := paths.UserHome()
		if err != nil {
			return nil, nil, err
		}
		found := config.FindOthers(home, os.LookupEnv)
		for name, p := range found.Profiles {
			add.Profiles[name], add.Comments[name] = p, "from "+found.Origin(name)
		}
		add.Tiers, add.Default, add.Notes = found.Tiers, found.Default, found.Notes
		told = append(found.Found, found.Notes...)
		if len(found.Found) == 0 {
			told = append(told, "nothing of claude-code-delegate-local, agent-delegate or sub-agent-mcp was found")
		}
	}
	added, err := config.Extend(a.config.Path, add, dry)
	return &added, told, err
}
