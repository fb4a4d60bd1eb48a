package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"localllm/capability"
	"localllm/internal/hint"
	"localllm/internal/request"
)

// ProfileHealth is how a profile's endpoint is.
type ProfileHealth struct {
	Name      string   `json:"name"`
	OK        bool     `json:"ok"`
	URL       string   `json:"url"`
	Models    []string `json:"models,omitempty"`
	LatencyMS int64    `json:"latency_ms"`
	Error     string   `json:"error,omitempty"`
}

func (a *App) noProfile(name string) error {
	known := make([]string, 0, len(a.config.Profiles))
	for n := range a.config.Profiles {
		known = append(known, n)
	}
	slices.Sort(known)
	h := "localllm profiles init shows how to add one"
	if len(known) > 0 {
		h = "known are " + strings.Join(known, ", ")
	}
	return hint.Add(&InvalidError{fmt.Sprintf("there is no profile %q in %s", name, a.config.Path)}, h)
}

func (a *App) profileTarget(name, model, tier string, think bool) (*target, error) {
	return nil, a.noProfile(name)
}

func (a *App) profileHealth(ctx context.Context, name string) (*ProfileHealth, error) {
	return nil, a.noProfile(name)
}

func (a *App) enableProfile(ctx context.Context, in *request.Enable) (any, error) {
	return nil, a.noProfile(in.Profile)
}

func (a *App) addProfiles(ctx context.Context, r *capability.Report, only string) error {
	if only != "" {
		return a.noProfile(only)
	}
	return nil
}

func (a *App) agents(project string) []capability.Agent { return []capability.Agent{} }
