package app

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/BurntSushi/toml"

	"localllm/capability"
	"localllm/internal/engine/llamaserver"
	"localllm/internal/engine/ollama"
	"localllm/internal/hint"
	"localllm/internal/paths"
	"localllm/internal/request"
	"localllm/internal/scratch"
	"localllm/internal/survey"
	"localllm/lifecycle"
)

// Capability says what this machine can run now. It starts and loads nothing.
func (a *App) Capability(ctx context.Context, in *request.Capability) (*capability.Report, error) {
	r, err := a.survey(ctx, survey.Options{Model: in.Model, Context: in.Context, KVType: in.KVType})
	if err != nil {
		return nil, err
	}
	project, err := callOf(ctx).project()
	if err != nil {
		return nil, err
	}
	r.Agents = a.agents(project)
	return r, a.addProfiles(ctx, r, in.Profile)
}

func (a *App) survey(ctx context.Context, o survey.Options) (*capability.Report, error) {
	o.Models, o.ExtraDirs = a.config.Models, a.config.ModelDirs
	if o.Context == 0 {
		o.Context = a.config.Context
	}
	o.KVType = cmp.Or(o.KVType, a.config.KVType)
	rows, err := a.tableRows()
	if err != nil {
		return nil, err
	}
	o.Catalog = rows
	if _, err := capability.ParseRef(o.Model); o.Model != "" && err != nil {
		return nil, hint.Add(&InvalidError{"model: " + err.Error()}, "localllm capability lists what is installed")
	}
	r, err := survey.Run(ctx, o)
	if err != nil {
		return nil, err
	}
	return &r, nil
}

// tableRows are the user's own rows of the model table.
func (a *App) tableRows() (capability.Catalog, error) {
	if len(a.config.Table) == 0 {
		return capability.Catalog{}, nil
	}
	var text bytes.Buffer
	if err := toml.NewEncoder(&text).Encode(map[string]any{"model": a.config.Table}); err != nil {
		return capability.Catalog{}, fmt.Errorf("%s: model: %w", a.config.Path, err)
	}
	rows, err := capability.ParseCatalog(text.String())
	if err != nil {
		return rows, hint.Add(fmt.Errorf("%s: model: %w", a.config.Path, err), "a [[model]] takes ref, date and source at the least; its other fields are those of the built-in table")
	}
	return rows, nil
}

// pull downloads what was chosen, through the engine that will run it.
func (a *App) pull(ctx context.Context, c *capability.Choice, report func(Progress)) error {
	var engine interface {
		Pull(ctx context.Context, model string, host lifecycle.Host) error
	} = ollama.New(ollama.Options{})
	if c.Engine == lifecycle.LlamaServer {
		if _, reference := llamaserver.Repository(c.Model); !reference || c.Path != "" {
			return nil // a file is there or not
		}
		engine = llamaserver.New(llamaserver.Options{})
	}
	private, err := scratch.Make(a.layout, "", "localllm-pull-")
	if err != nil {
		return fmt.Errorf("pulling %s: %w", c.Model, err)
	}
	defer func() { _ = private.Remove() }()
	logs := filepath.Join(a.layout.State, "logs") // an error names it, so it stays
	if err := paths.Private(logs); err != nil {
		return fmt.Errorf("pulling %s: %w", c.Model, err)
	}
	return engine.Pull(ctx, c.Model, lifecycle.Host{
		Dir: private.Path, LogPath: filepath.Join(logs, "pull.log"), Nonce: private.Nonce, Env: os.Environ(), Report: report,
		Record: func(int) error { return nil },
	})
}
