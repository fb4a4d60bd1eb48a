package app

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"localllm/delegate"
	"localllm/internal/executor"
	"localllm/internal/hint"
	"localllm/lifecycle"
)

// withExecutor checks what tasks say of executors, and reports whether any names one: such a task is always carried
// out by a task runner. A task with an executor is in mode agent.
func (a *App) withExecutor(t *delegate.Task) (*delegate.Task, bool, error) {
	out := *t
	external := out.Executor != ""
	if external && len(out.Tasks) == 0 {
		if err := a.checkExecutor(out); err != nil {
			return nil, false, err
		}
		out.Mode = delegate.ModeAgent
		return &out, true, nil
	}
	out.Tasks = append([]delegate.Task(nil), t.Tasks...)
	for i, sub := range out.Tasks {
		sub.Executor = cmp.Or(sub.Executor, out.Executor)
		if sub.Executor == "" {
			continue
		}
		if err := a.checkExecutor(sub); err != nil {
			return nil, false, err
		}
		sub.Mode, external = delegate.ModeAgent, true
		out.Tasks[i] = sub
	}
	return &out, external, nil
}

// checkExecutor says why an executor can't do a task. One that is not installed is asked for in vain, like a profile
// that does not exist.
func (a *App) checkExecutor(t delegate.Task) error {
	err := executor.Check(t, a.config.AllowShell)
	var field *delegate.FieldError
	if err == nil || errors.As(err, &field) {
		return err
	}
	return hint.Add(&InvalidError{err.Error()}, hint.Of(err)...)
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
	e, err := a.executorEndpoint(w.to, t)
	if err != nil {
		return err
	}
	w.runner.Worker = &executor.Worker{
		Dir: dir, Layout: a.layout, Endpoint: e, AllowShell: a.config.AllowShell, Self: self, Hide: a.hidden(), Next: w.runner.Worker,
	}
	return nil
}

// executorEndpoint is the model for a client: the managed engine's, or a profile's.
func (a *App) executorEndpoint(to *target, t *delegate.Task) (executor.Endpoint, error) {
	limits := to.limits
	e := executor.Endpoint{Model: cmp.Or(t.Model, limits.Model), Loopback: limits.Loopback, Context: limits.Context, MaxTokens: limits.MaxTokens}
	if managed := to.endpoint; managed != nil {
		if managed.Engine == lifecycle.Ollama && managed.Adopted {
			return e, reloads(managed.Context, "stop that Ollama and enable again, so that localllm starts one with this window; or enable llama-server; or leave executor out")
		}
		if managed.Engine == lifecycle.Ollama { // our requests forbid shifting, which is a setting of the loaded model
			e.Warning = "Ollama loads the model again for an executor and once more for the next delegation without one, with the same context; llama-server does not"
		}
		e.URL, e.Model = managed.URL, managed.Model
		if managed.APIKeyFile != "" {
			key, err := os.ReadFile(managed.APIKeyFile)
			if err != nil {
				return e, fmt.Errorf("reading the engine's key: %w", err)
			}
			e.Key = strings.TrimSpace(string(key))
		}
		return e, nil
	}
	p := a.config.Profiles[limits.Profile]
	e.URL, e.Anthropic = p.BaseURL, p.Kind == "anthropic"
	if p.APIKeyEnv != "" {
		e.Key = os.Getenv(p.APIKeyEnv)
	}
	if p.Kind == lifecycle.Ollama && limits.Loopback && e.Key == "" && len(p.Headers) == 0 {
		return e, reloads(limits.Context, `use a profile of kind "openai" for it, which leaves the window to Ollama (OLLAMA_CONTEXT_LENGTH, where it is started); or leave executor out`)
	}
	return e, nil
}

// reloads refuses a running Ollama. Clients speak its /v1 route, where no request can say how large the window is to
// be: the server's own one holds, 4096 tokens if nobody has set it, and what doesn't fit is cut without a word.
func reloads(window int, do string) error {
	return hint.Add(&InvalidError{fmt.Sprintf(
		"an executor can't use an Ollama that somebody else started: by its OpenAI route it would load the model again, with its own context instead of the %d tokens here, and cut what doesn't fit", window)}, do)
}
