// Package benchtasks is the built-in set of small bounded tasks by which models are compared, and the sum of how one
// did. It runs no model and writes nothing but the files of a task into the folder it is given.
package benchtasks

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"localllm/delegate"
)

//go:embed tasks/*.toml
var embedded embed.FS

// Task is one of the set. Its verify command is red for the files as they are.
type Task struct {
	Name     string            `toml:"-"`
	Language string            `toml:"language"`
	Tools    []string          `toml:"tools"` // programs that verify needs
	Type     string            `toml:"type"`
	Text     string            `toml:"task"`
	Verify   []string          `toml:"verify"`
	Output   string            `toml:"output"`
	Files    map[string]string `toml:"files"`
}

// All is the whole set, by name.
func All() ([]Task, error) {
	names, err := fs.Glob(embedded, "tasks/*.toml")
	if err != nil {
		return nil, err
	}
	var all []Task
	for _, name := range names {
		text, err := embedded.ReadFile(name)
		if err != nil {
			return nil, err
		}
		t := Task{Name: strings.TrimSuffix(filepath.Base(name), ".toml")}
		if _, err := toml.Decode(string(text), &t); err != nil {
			return nil, fmt.Errorf("the built-in task %s: %w", t.Name, err)
		}
		all = append(all, t)
	}
	return all, nil
}

// Missing are the programs that the task's verify needs and this machine lacks.
func (t Task) Missing() []string {
	var missing []string
	for _, tool := range t.Tools {
		if _, err := exec.LookPath(tool); err != nil {
			missing = append(missing, tool)
		}
	}
	return missing
}

// Write puts the task's files into dir.
func (t Task) Write(dir string) error {
	for name, text := range t.Files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Delegation is the request for the task: all its files are shown (an output that exists is, without being named), and
// only the output may change.
func (t Task) Delegation() (*delegate.Task, error) {
	verify, err := json.Marshal(t.Verify)
	if err != nil {
		return nil, err
	}
	var shown []string
	for _, name := range slices.Sorted(maps.Keys(t.Files)) {
		if name != t.Output && name != "go.mod" {
			shown = append(shown, name)
		}
	}
	return &delegate.Task{
		Task: t.Text, TaskType: t.Type, ContextFiles: shown, OutputFiles: []delegate.OutputFile{{Path: t.Output}},
		Verify: verify, Protect: slices.DeleteFunc(slices.Sorted(maps.Keys(t.Files)), func(n string) bool { return n == t.Output }),
		AllowShrink: true,
	}, nil
}
