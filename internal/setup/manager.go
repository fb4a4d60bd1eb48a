package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"localllm/internal/atomicfile"
	"localllm/internal/engine/program"
	"localllm/internal/hint"
	"localllm/internal/paths"
	"localllm/internal/proc"
	"localllm/lifecycle"
)

// packager is a package manager. carries is a command that succeeds where it has the package; its output must hold
// says.
type packager struct {
	name    string
	systems []string
	root    bool // it must run as root
	names   map[string]string
	carries func(name string) (argv []string, says string)
	install func(name string) []string
	remove  func(name string) []string
}

var packagers = []packager{
	{
		name: "brew", systems: []string{"darwin", "linux"}, names: map[string]string{lifecycle.Ollama: "ollama", lifecycle.LlamaServer: "llama.cpp"},
		carries: func(n string) ([]string, string) { return []string{"brew", "info", "--formula", n}, n },
		install: func(n string) []string { return []string{"brew", "install", "--formula", n} },
		remove:  func(n string) []string { return []string{"brew", "uninstall", "--formula", n} },
	},
	{
		name: "winget", systems: []string{"windows"}, names: map[string]string{lifecycle.Ollama: "Ollama.Ollama", lifecycle.LlamaServer: "ggml.llamacpp"},
		carries: func(n string) ([]string, string) {
			return []string{"winget", "show", "--exact", "--id", n, "--accept-source-agreements"}, n
		},
		install: func(n string) []string {
			return []string{"winget", "install", "--exact", "--id", n, "--accept-source-agreements", "--accept-package-agreements"}
		},
		remove: func(n string) []string { return []string{"winget", "uninstall", "--exact", "--id", n} },
	},
	{
		name: "pacman", systems: []string{"linux"}, root: true, names: map[string]string{lifecycle.Ollama: "ollama", lifecycle.LlamaServer: "llama.cpp"},
		carries: func(n string) ([]string, string) { return []string{"pacman", "-Si", n}, n },
		install: func(n string) []string { return []string{"pacman", "-S", "--noconfirm", "--needed", n} },
		remove:  func(n string) []string { return []string{"pacman", "-R", "--noconfirm", n} },
	},
	{
		name: "apt", systems: []string{"linux"}, root: true, names: map[string]string{lifecycle.LlamaServer: "llama.cpp"},
		carries: func(n string) ([]string, string) {
			return []string{"apt-cache", "show", "--no-all-versions", n}, "Package: " + n
		},
		install: func(n string) []string { return []string{"apt-get", "install", "--yes", n} },
		remove:  func(n string) []string { return []string{"apt-get", "remove", "--yes", n} },
	},
}

// manager looks for a package manager that has the engine. One that needs root is used only by root: we ask nobody
// for a password, and say the command instead.
func (o Options) manager(ctx context.Context, p *Plan) (found bool, err error) {
	for _, m := range packagers {
		name := m.names[o.Engine]
		if (o.Via != "" && o.Via != m.name) || name == "" || !slices.Contains(m.systems, o.System) {
			continue
		}
		query, says := m.carries(name)
		text, err := o.Run(ctx, query)
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if err != nil || !strings.Contains(text, says) {
			continue
		}
		command := m.install(name)
		if m.root && !*o.Root {
			yourself := "sudo " + strings.Join(command, " ")
			if o.Via == m.name {
				return false, hint.New(fmt.Sprintf("%s needs root, which setup never becomes by itself", m.name), "run it yourself: "+yourself, "or use --via release")
			}
			p.Otherwise = append(p.Otherwise, yourself)
			continue
		}
		p.Via, p.Command = m.name, command
		return true, nil
	}
	if o.Via != "" {
		return false, hint.New(fmt.Sprintf("%s has no %s here", o.Via, o.Engine), "leave out --via, or use --via release")
	}
	return false, nil
}

// run runs a package manager's command and returns what it said.
func (o Options) run(ctx context.Context, argv []string) (string, error) {
	path := ""
	if filepath.IsAbs(argv[0]) {
		path = argv[0]
	}
	for _, dir := range filepath.SplitList(program.Lookup(o.Env, "PATH")) {
		if path != "" {
			break
		}
		name := filepath.Join(dir, argv[0])
		if info, err := os.Stat(name); filepath.IsAbs(dir) && err == nil && !info.IsDir() {
			path = name
		}
	}
	if path == "" {
		return "", fmt.Errorf("%s: %w", argv[0], fs.ErrNotExist)
	}
	var out proc.Tail
	code, err := proc.Run(ctx, proc.Command{Path: path, Args: argv[1:], Env: o.Env, Stdout: &out, Stderr: &out, Grace: 5 * time.Second})
	if err == nil && code != 0 {
		err = fmt.Errorf("exit status %d", code)
	}
	return out.String(), err
}

func withTail(err error, text string) error {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return fmt.Errorf("%w: %s", err, last[:min(len(last), 200)])
	}
	return err
}

// managed records that a package manager installed the engine for us, so that Remove can undo it.
type managed struct {
	Via    string   `json:"via"`
	Remove []string `json:"remove"`
}

func managedFile(folder string) string { return filepath.Join(folder, "managed.json") }

func (o Options) remember(p Plan) error {
	for _, m := range packagers {
		if m.name == p.Via {
			if err := paths.Private(o.Folder); err != nil {
				return err
			}
			return atomicfile.WriteJSON(managedFile(o.Folder), managed{Via: p.Via, Remove: m.remove(m.names[o.Engine])})
		}
	}
	return nil
}

// Removed says what Remove did.
type Removed struct {
	Folder  string   `json:"folder,omitempty"`
	Command []string `json:"command,omitempty"`
}

// Remove undoes what setup has installed, and nothing else. Models are kept: they belong to the user.
func Remove(ctx context.Context, o Options) (Removed, error) {
	o, err := o.filled()
	if err != nil {
		return Removed{}, err
	}
	var done Removed
	if _, err := os.Lstat(o.Folder); errors.Is(err, fs.ErrNotExist) {
		return done, hint.New(fmt.Sprintf("setup has not installed %s", o.Engine), "what you installed yourself you remove yourself")
	}
	var by managed
	if atomicfile.ReadJSON(managedFile(o.Folder), &by) == nil && len(by.Remove) > 0 {
		if text, err := o.Run(ctx, by.Remove); err != nil {
			return done, fmt.Errorf("%s did not remove %s: %w", by.Via, o.Engine, withTail(err, text))
		}
		done.Command = by.Remove
	}
	if err := os.RemoveAll(o.Folder); err != nil {
		return done, fmt.Errorf("removing %s: %w", o.Folder, err)
	}
	done.Folder = o.Folder
	return done, nil
}
