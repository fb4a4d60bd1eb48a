package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"localllm/capability"
	"localllm/internal/hint"
	"localllm/internal/keeper"
	"localllm/internal/request"
	"localllm/internal/session"
	"localllm/internal/survey"
	"localllm/lifecycle"
)

// Enabled is what enable returns; the JSON names are public.
type Enabled struct {
	Enabled     bool     `json:"enabled"`
	Engine      string   `json:"engine"`
	Model       string   `json:"model"`
	Context     int      `json:"context"`
	Slots       int      `json:"slots"`
	Endpoint    string   `json:"endpoint"`
	Started     string   `json:"started"` // cold, joined, adopted
	Owned       bool     `json:"owned"`
	Persist     bool     `json:"persist"`
	LoadMS      int64    `json:"load_ms"`
	WarmMS      int64    `json:"warm_ms"`
	WarmTokens  int      `json:"warm_tokens"`
	GPUFraction float64  `json:"gpu_fraction"`
	Memory      Memory   `json:"memory"`
	Detached    bool     `json:"detached"`
	Sessions    int      `json:"sessions"`
	Session     string   `json:"session,omitempty"` // whose life the engine follows
	Why         []string `json:"why"`
	Warnings    []string `json:"warnings"`
	Profile     string   `json:"profile,omitempty"`
	TaskID      string   `json:"task_id,omitempty"` // in the background
	Status      string   `json:"status,omitempty"`
}

// Memory is what was foretold and what it came to.
type Memory struct {
	EstimatedBytes uint64 `json:"estimated_bytes"`
	MeasuredBytes  uint64 `json:"measured_bytes"` // 0: no probe here could tell
}

// Enable starts, loads and warms a model for the calling session, or joins the one that runs.
func (a *App) Enable(ctx context.Context, in *request.Enable, report func(Progress)) (any, error) {
	if err := oneModel(in); err != nil {
		return nil, err
	}
	if in.Profile != "" {
		return a.enableProfile(ctx, in)
	}
	background := a.wantsBackground(ctx, in.Background)
	if background && (in.Background || !a.servesNow(ctx)) {
		return a.inBackground(ctx, "enable", in, strings.TrimSpace("enable "+in.Model), defaultEnableTime, report)
	}
	a.cleanPromptStates()
	bound, err := a.binding(ctx)
	if err != nil {
		return nil, err
	}
	r := keeper.EnableRequest{
		Persist: in.Persist, IdleLimit: time.Duration(a.config.IdleLimit), Force: in.Force,
		Session: bound, Env: os.Environ(), Report: report,
	}
	got, err := a.join(ctx, in, r)
	if err != nil {
		return nil, err
	}
	if got == nil && background {
		return a.inBackground(ctx, "enable", in, strings.TrimSpace("enable "+in.Model), defaultEnableTime, report)
	}
	if got == nil {
		if got, err = a.start(ctx, in, r, report); err != nil {
			return nil, err
		}
	}
	return a.finishEnable(ctx, in, got, report)
}

// servesNow reports whether an engine is ready: joining it takes milliseconds, and no background task.
func (a *App) servesNow(ctx context.Context) bool {
	st, err := a.client.Status(ctx)
	return err == nil && st.State == lifecycle.Ready
}

// oneModel takes llm apart into model and persist, which may be given instead but not besides.
func oneModel(in *request.Enable) error {
	if in.LLM == "" {
		return nil
	}
	model, persist := in.LLM.Split()
	if model != "" && in.Model != "" && model != in.Model {
		return &request.Error{Action: "enable", Field: "llm", Reason: fmt.Sprintf("llm names %s and model names %s: give one of them", model, in.Model)}
	}
	if model != "" {
		in.Model = model
	}
	in.Persist = in.Persist || persist
	in.LLM = ""
	return nil
}

// join takes a share in what runs already, without a survey: milliseconds. It is nil where nothing suitable runs.
func (a *App) join(ctx context.Context, in *request.Enable, r keeper.EnableRequest) (*keeper.Enabled, error) {
	match := &lifecycle.Match{Engine: in.Engine, Context: in.Context, KVType: in.KVType, Slots: in.Slots}
	if in.Model != "" {
		match.Models = modelNames(in.Model)
	}
	r.Match = match
	got, ok, err := a.client.Join(ctx, r)
	if err != nil && !errors.Is(err, lifecycle.ErrNotEnabled) {
		return nil, err
	}
	if !ok {
		return nil, nil
	}
	return got, nil
}

// modelNames are the spellings of one model.
func modelNames(model string) []string {
	names := []string{model}
	if ref, err := capability.ParseRef(model); err == nil && !slices.Contains(names, ref.Name()) {
		names = append(names, ref.Name())
	}
	return names
}

// start surveys the machine, picks, downloads if that was asked for, and has the keeper start the engine.
func (a *App) start(ctx context.Context, in *request.Enable, r keeper.EnableRequest, report func(Progress)) (*keeper.Enabled, error) {
	if err := fileThere(in.Model); err != nil {
		return nil, err
	}
	report(Progress{Phase: "looking at this machine"})
	sv, err := a.survey(ctx, survey.Options{Model: in.Model, Context: in.Context, KVType: in.KVType, Engine: in.Engine, Slots: in.Slots})
	if err != nil {
		return nil, err
	}
	choice := sv.Recommended
	switch {
	case choice == nil:
		return nil, cannotEnable(sv)
	case choice.Verdict == capability.No && !in.Force:
		return nil, hint.Add(fmt.Errorf("%w: %s needs %s and %s is free", ErrCannotEnable, choice.Model, capability.GiB(choice.NeedBytes), capability.GiB(choice.FreeBytes)),
			append(slices.Clone(sv.Hints), "force: true tries all the same, an estimate can be wrong")...)
	case !choice.Installed && !in.Pull:
		return nil, hint.Add(fmt.Errorf("%w: %s is not installed", ErrCannotEnable, choice.Model),
			fmt.Sprintf("pull: true, or «localllm enable --model %s --pull», downloads it (%s)", choice.Model, downloadSize(choice.SizeBytes)))
	case !choice.Installed:
		if err := a.pull(ctx, choice, report); err != nil {
			return nil, err
		}
	}
	choices := append([]capability.Choice{*choice}, installedOnly(sv.Fallbacks)...)
	choices, asked := a.askDryRun(ctx, choices)
	r.Choices = specs(choices, in)
	got, err := a.client.Enable(ctx, r)
	if err != nil {
		return nil, err
	}
	got.Why = append(append(slices.Clone(choices[0].Why), asked...), got.Why...)
	return got, nil
}

// fileThere refuses a path that leads nowhere before anything is asked of the machine.
func fileThere(model string) error {
	ref, err := capability.ParseRef(model)
	if err != nil || ref.Kind != capability.FileRef {
		return nil
	}
	if info, err := os.Stat(ref.Path); err != nil || !info.Mode().IsRegular() {
		return hint.Add(&lifecycle.StartError{Cause: lifecycle.NoSuchModel, Reason: fmt.Sprintf("model: there is no file %s", ref.Path)},
			"localllm capability lists the models that are here")
	}
	return nil
}

// cannotEnable says why, with what is nearest to the model that was asked for.
func cannotEnable(sv *capability.Report) error {
	err := ErrCannotEnable
	switch {
	case len(sv.Rejected) > 0:
		err = fmt.Errorf("%w: %s", ErrCannotEnable, sv.Rejected[0])
	case len(sv.Reasons) > 0:
		err = fmt.Errorf("%w: %s", ErrCannotEnable, sv.Reasons[len(sv.Reasons)-1])
	}
	return hint.Add(err, sv.Hints...)
}

func downloadSize(n int64) string {
	if n <= 0 {
		return "its size is not known"
	}
	return capability.GB(n)
}

// A step down must not begin with a download that nobody asked for.
func installedOnly(choices []capability.Choice) []capability.Choice {
	return slices.DeleteFunc(slices.Clone(choices), func(c capability.Choice) bool { return !c.Installed })
}

func specs(choices []capability.Choice, in *request.Enable) []lifecycle.Spec {
	made := make([]lifecycle.Spec, 0, len(choices))
	for _, c := range choices {
		made = append(made, lifecycle.Spec{
			Engine: c.Engine, Model: c.Model, Path: c.Path, Digest: c.Digest,
			Context: c.Context, KVType: c.KVType, Slots: max(c.Slots, in.Slots, 1), Devices: c.Devices, Need: uint64(max(c.NeedBytes, 0)),
		})
	}
	return made
}

// finishEnable warms what was started and words the result.
func (a *App) finishEnable(ctx context.Context, in *request.Enable, got *keeper.Enabled, report func(Progress)) (*Enabled, error) {
	st := got.Status
	out := &Enabled{
		Enabled: true, Engine: st.Endpoint.Engine, Model: st.Spec.Model, Context: st.Endpoint.Context, Slots: st.Endpoint.Slots,
		Endpoint: st.Endpoint.URL, Started: got.Started, Owned: st.Endpoint.Owned, Persist: got.Persist,
		LoadMS: st.LoadMS, GPUFraction: st.Memory.GPUFraction(), Detached: got.Detached, Sessions: len(got.Sessions), Session: got.Lease.Label(),
		Memory: Memory{st.Memory.EstimatedBytes, st.Memory.MeasuredBytes},
		Why:    orEmpty(got.Why), Warnings: orEmpty(got.Warnings),
	}
	if in.Context > out.Context {
		out.Warnings = append(out.Warnings, fmt.Sprintf("the context is %d tokens, and %d were asked for", out.Context, in.Context))
	}
	// Who joins an engine that somebody has persisted is told so, whether or not the keeper has noted it yet.
	if now, err := a.client.Status(ctx); err == nil {
		out.Persist = out.Persist || now.Persist
	}
	if !got.Detached {
		out.Warnings = append(out.Warnings, "the keeper could not leave this client's process tree: when the client ends it by force, the engine goes at once and is not shared further")
	}
	if got.Started == keeper.StartedJoined && len(in.WarmFiles) == 0 {
		return out, nil
	}
	warmed, err := a.warm(ctx, in.WarmFiles, report)
	if ctx.Err() != nil {
		return nil, a.withdraw(ctx, got)
	}
	if err != nil {
		out.Warnings = append(out.Warnings, "warming: "+err.Error())
		return out, nil
	}
	out.WarmMS, out.WarmTokens = warmed.took.Milliseconds(), warmed.tokens
	return out, nil
}

// withdraw lets go of what an enable that was ended while it warmed had got. What the session had before stays.
func (a *App) withdraw(ctx context.Context, got *keeper.Enabled) error {
	err := fmt.Errorf("warming: %w", context.Cause(ctx))
	if got.Started == keeper.StartedJoined && !got.Fresh {
		return err
	}
	bound, berr := a.binding(ctx)
	if berr == nil {
		_, berr = a.client.Disable(context.WithoutCancel(ctx), keeper.DisableRequest{Session: bound})
	}
	return errors.Join(err, berr)
}

func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// binding is whose session this call belongs to.
func (a *App) binding(ctx context.Context) (session.Binding, error) {
	call := callOf(ctx)
	var b session.Binding
	var err error
	switch {
	case call.Binding != nil:
		b = *call.Binding
	case call.Held:
		b, err = session.ForServer(os.Getenv)
	default:
		b, err = session.ForCommand(os.Getenv)
	}
	if err != nil {
		return b, err
	}
	if b.Project == "" {
		b.Project, _ = call.project()
	}
	return b, nil
}
