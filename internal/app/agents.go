package app

import (
	"errors"
	"os"

	"localllm/capability"
	"localllm/delegate"
	"localllm/internal/agents"
	"localllm/internal/containment"
	"localllm/internal/paths"
	"localllm/internal/syntax"
	"localllm/internal/toolloop"
)

// AgentList is what localllm agents reports.
type AgentList struct {
	Agents []agents.Definition `json:"agents"`
}

// Agents lists the definitions that tasks of this project can name.
func (a *App) Agents(project string) (AgentList, error) {
	root, err := Call{Project: project}.project()
	if err != nil {
		return AgentList{}, err
	}
	list := agents.List(places(root, root))
	if list == nil {
		list = []agents.Definition{}
	}
	return AgentList{list}, nil
}

func places(root, dir string) agents.Places {
	home, err := os.UserHomeDir() // as the clients find their own
	if err != nil {
		home = ""
	}
	return agents.Places{Workdir: dir, Project: root, Home: home, Config: os.Getenv("XDG_CONFIG_HOME")}
}

// agents are those that can be used, for the report on what this machine can do.
func (a *App) agents(project string) []capability.Agent {
	out := []capability.Agent{}
	if project == "" {
		return out
	}
	for _, d := range agents.List(places(project, project)) {
		if d.Problem == "" {
			out = append(out, capability.Agent{Name: d.Name, Description: d.Description, Model: d.Model, Source: d.Source})
		}
	}
	return out
}

// addToolLoop lets tasks be done in mode agent by our own loop.
func (a *App) addToolLoop(w *work, dir string, t *delegate.Task, src delegate.Source) error {
	tasks := t.Tasks
	if len(tasks) == 0 {
		tasks = []delegate.Task{*t}
	}
	used := false
	for _, task := range tasks {
		if task.Mode != delegate.ModeAgent || task.Executor != "" {
			continue
		}
		used = true
		if task.Agent == "" {
			continue
		}
		if _, err := agents.Find(places(w.root, dir), task.Agent); err != nil {
			e := &delegate.FieldError{Field: "agent", Want: "names none that can be used: " + err.Error(), Do: "localllm agents lists those that there are"}
			if errors.Is(err, agents.ErrNotFound) {
				e.Want = "takes the name of a definition, and there is none named " + task.Agent
			}
			return e
		}
	}
	if !used {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		self = "" // then there is one containment less
	}
	w.loop, err = toolloop.New(toolloop.Options{
		Completer: delegate.Hidden(w.runner.Completer, w.runner.Hide), Source: src,
		Root: w.root, Dir: dir, Layout: a.layout,
		Agent: func(name string) (agents.Definition, error) { return agents.Find(places(w.root, dir), name) },
		Shell: a.config.AllowShell, Network: a.config.AllowNetwork, Self: self, Hide: a.hidden(),
		Parses: syntax.Check, Think: w.to.think,
	})
	if err != nil {
		return err
	}
	w.runner.Worker = w.loop
	return nil
}

// hidden is what commands of the tool loop can't read, where they are contained.
func (a *App) hidden() []string {
	home, err := paths.UserHome()
	if err != nil {
		home = ""
	}
	return append(containment.Hidden(home), a.layout.Run, a.layout.State, a.layout.Config)
}
