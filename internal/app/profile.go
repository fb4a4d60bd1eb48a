package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"localllm/delegate"
	"localllm/internal/config"
	"localllm/internal/engine/anthropic"
	"localllm/internal/engine/ollama"
	"localllm/internal/engine/openai"
	"localllm/internal/engine/remote"
	"localllm/internal/hint"
	"localllm/lifecycle"
)

func (a *App) noProfile(name string) error {
	known := a.profileNames()
	h := "localllm profiles init shows how to add one"
	if len(known) > 0 {
		h = "known are " + strings.Join(known, ", ")
	}
	return hint.Add(&InvalidError{fmt.Sprintf("there is no profile %q in %s", name, a.config.Path)}, h)
}

func (a *App) profileNames() []string {
	known := make([]string, 0, len(a.config.Profiles))
	for n := range a.config.Profiles {
		known = append(known, n)
	}
	slices.Sort(known)
	return known
}

// profileTarget is the endpoint of a profile. It asks the server only where the configuration leaves open what is
// needed: which model, and how large its window is.
func (a *App) profileTarget(name, model, tier string, think bool) (*target, error) {
	p, ok := a.config.Profiles[name]
	if !ok {
		return nil, a.noProfile(name)
	}
	model = cmp.Or(model, p.ModelFor(tier))
	if model == "" {
		var err error
		if model, err = a.onlyModel(name, p); err != nil {
			return nil, err
		}
	}
	if !p.Allows(model) {
		return nil, hint.Add(&InvalidError{fmt.Sprintf("profile %s may not be asked for model %s", name, model)}, "its models are "+strings.Join(p.Models, ", "))
	}
	e, err := endpointOf(name, p, model)
	if err != nil {
		return nil, err
	}
	kind := p.KindFor(model)
	if e.Context == 0 && kind == lifecycle.LlamaServer {
		e.Context = windowOf(e)
	}
	c, err := speak(e, kind)
	if err != nil {
		return nil, err
	}
	return &target{
		Completer: c, key: "profile " + name + " " + p.BaseURL, limits: c.Limits(), think: think, profile: &p, release: func() {},
	}, nil
}

// endpointOf reads the key of a profile from its variable.
func endpointOf(name string, p config.Profile, model string) (remote.Endpoint, error) {
	e := remote.Endpoint{
		Profile: name, BaseURL: p.BaseURL, Model: model, Headers: p.Headers, ExtraBody: p.ExtraBody, Slots: p.Slots, Context: p.Context,
		MaxTokens: p.MaxTokens, Loopback: p.Loopback(), WholeAnswers: p.NoStream, Idle: time.Duration(p.IdleTimeout), Total: time.Duration(p.Timeout),
	}
	if p.APIKeyEnv == "" {
		return e, nil
	}
	if e.Key = strings.TrimSpace(os.Getenv(p.APIKeyEnv)); e.Key == "" {
		return e, hint.Add(&InvalidError{fmt.Sprintf("profile %s needs its key in the variable %s, which is not set", name, p.APIKeyEnv)},
			"export "+p.APIKeyEnv+" where your client starts localllm; the key belongs into no file of ours")
	}
	return e, nil
}

// speak makes the client of a kind. Ollama on this machine is spoken to in its own tongue, which alone can refuse to
// cut a prompt; elsewhere, or behind a key, it is asked by its OpenAI route.
func speak(e remote.Endpoint, kind string) (delegate.Completer, error) {
	switch {
	case kind == "anthropic":
		return anthropic.Connect(e, kind)
	case kind == lifecycle.Ollama && e.Loopback && e.Key == "" && len(e.Headers) == 0:
		base, err := remote.Base(e.BaseURL)
		if err != nil {
			return nil, fmt.Errorf("profile %s: %w", e.Profile, err)
		}
		options := map[string]any{}
		if e.Context > 0 {
			options["num_ctx"] = e.Context
		}
		c, err := ollama.Connect(lifecycle.Endpoint{
			Engine: kind, URL: base.Scheme + "://" + base.Host, Model: e.Model, Context: e.Context, Slots: max(e.Slots, 1), Adopted: true,
			Options: options, KeepAlive: 5 * time.Minute,
		})
		if err != nil {
			return nil, err
		}
		return remote.Watch(c, e), nil
	}
	return openai.Connect(e, kind)
}

// asker is the transport alone, for questions about the server.
func asker(e remote.Endpoint, kind string) (*remote.Client, error) {
	if kind == "anthropic" {
		c, err := anthropic.Connect(e, kind)
		if err != nil {
			return nil, err
		}
		return c.Client, nil
	}
	return remote.Open(e, remote.Bearer)
}

// onlyModel is the one model that a server on this machine has.
func (a *App) onlyModel(name string, p config.Profile) (string, error) {
	var models []string
	if p.Loopback() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		var err error
		if models, _, err = a.profileModels(ctx, name, p); err != nil {
			return "", err
		}
		if len(models) == 1 {
			return models[0], nil
		}
	}
	err := &InvalidError{fmt.Sprintf("profile %s names no model", name)}
	if len(models) > 0 {
		return "", hint.Add(err, "name one with model, or in the profile; it has "+strings.Join(models[:min(len(models), 12)], ", "))
	}
	return "", hint.Add(err, "name one with model, or in the profile", "localllm profiles test "+name+" lists what it has")
}

func (a *App) profileModels(ctx context.Context, name string, p config.Profile) ([]string, time.Duration, error) {
	e, err := endpointOf(name, p, p.Model)
	if err != nil {
		return nil, 0, err
	}
	c, err := asker(e, p.KindFor(p.Model))
	if err != nil {
		return nil, 0, err
	}
	defer c.Close()
	return c.Models(ctx)
}

// windowOf is how large llama-server says its window is; 0 where it does not.
func windowOf(e remote.Endpoint) int {
	c, err := remote.Open(e, remote.Bearer)
	if err != nil {
		return 0
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	var props struct {
		Defaults struct {
			Context int `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	if c.Get(ctx, "//props", &props) != nil {
		return 0
	}
	return props.Defaults.Context
}

// annotate adds what is known of the endpoint to a result: what it cost, where the profile names prices, and warnings.
func (t *target) annotate(res *delegate.Result) {
	res.Warnings = append(res.Warnings, t.warnings...)
	if t.profile == nil || res.CostUSD != nil {
		return
	}
	if cost, known := t.profile.Cost(res.Tokens.Prompt, res.Tokens.Cached, res.Tokens.Generated); known {
		res.CostUSD = &cost
	}
}

// ProfileHealth is how a profile's endpoint is.
type ProfileHealth struct {
	Name      string   `json:"name"`
	OK        bool     `json:"ok"`
	URL       string   `json:"url"`
	Models    []string `json:"models,omitempty"`
	LatencyMS int64    `json:"latency_ms"`
	Error     string   `json:"error,omitempty"`
	Note      string   `json:"note,omitempty"`
	Answer    string   `json:"answer,omitempty"` // of a test that asked
}

func (a *App) profileHealth(ctx context.Context, name string) (*ProfileHealth, error) {
	p, ok := a.config.Profiles[name]
	if !ok {
		return nil, a.noProfile(name)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	h := &ProfileHealth{Name: name, URL: p.BaseURL}
	models, took, err := a.profileModels(ctx, name, p)
	h.LatencyMS = took.Milliseconds()
	var e *remote.Error
	switch {
	case err == nil:
		h.OK = true
		for _, m := range models {
			if p.Allows(m) {
				h.Models = append(h.Models, m)
			}
		}
		if len(h.Models) == 0 && len(models) > 0 {
			h.Note = "none of its models is on the profile's list"
		} else if p.Model != "" && len(models) > 0 && !slices.Contains(models, p.Model) {
			h.Note = "it does not list the profile's model " + p.Model
		}
	case errors.As(err, &e) && (e.Status == 404 || e.Status == 405):
		h.OK, h.Note = true, "it answers, and does not list its models"
	default:
		h.Error = err.Error()
	}
	return h, nil
}
