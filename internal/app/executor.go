package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"localllm/delegate"
	"localllm/internal/executor"
)

// withExecutor checks what tasks say of executors, and reports whether any names one: such a task is always carried
// out by a task runner. A task with an executor is in mode agent.
func (a *App) withExecutor(t *delegate.Task) (*delegate.Task, bool, error) {
	out := *t
	external := out.Executor != ""
	if external && len(out.Tasks) == 0 {
		if err := executor.Check(out, a.config.AllowShell); err != nil {
			return nil, false, err
		}
		out.Mode = delegate.ModeAgent
		return &out, true, nil
	}
	out.Tasks = append([]delegate.Task(nil), t.Tasks...)
	for i, sub := range out.Tasks {
		sub.Executor = first(sub.Executor, out.Executor)
		if sub.Executor == "" {
			continue
		}
		if err := executor.Check(sub, a.config.AllowShell); err != nil {
			return nil, false, err
		}
		sub.Mode, external = delegate.ModeAgent, true
		out.Tasks[i] = sub
	}
	return &out, external, nil
}

// addExecutor lets tasks that name an executor be done by it.
func (a *App) addExecutor(w *work, dir string, t *delegate.Task) error {
	used := t.Executor != ""
	for _, sub := range t.Tasks {
		used = used || sub.Executor != ""
	}
	if !used {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	limits := w.to.limits
	e := executor.Endpoint{Model: first(t.Model, limits.Model), Loopback: limits.Loopback, Context: limits.Context, MaxTokens: limits.MaxTokens}
	if managed := w.to.endpoint; managed != nil {
		e.URL, e.Model = managed.URL, managed.Model
		if managed.APIKeyFile != "" {
			key, err := os.ReadFile(managed.APIKeyFile)
			if err != nil {
				return fmt.Errorf("reading the engine's key: %w", err)
			}
			e.Key = strings.TrimSpace(string(key))
		}
	} else {
		p := a.config.Profiles[limits.Profile]
		e.URL, e.Anthropic = p.BaseURL, p.Kind == "anthropic"
		if p.APIKeyEnv != "" {
			e.Key = os.Getenv(p.APIKeyEnv)
		}
	}
	w.runner.Worker = &executor.Worker{
		Dir: dir, Scratch: filepath.Join(a.layout.State, "executors"), Endpoint: e, AllowShell: a.config.AllowShell, Self: self, Next: w.runner.Worker,
	}
	return nil
}
