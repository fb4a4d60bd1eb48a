// Package install puts localllm into the coding agents on this machine and takes it out again: the server into the
// agent's own configuration, the delegation policy into its instruction file. It never changes a byte that it doesn't
// have to, and never writes a file that it could not read and understand first.
//
// Claude Code has a command of its own for this, but that command writes the settings file anew and loses its layout.
// What it declares there is what this package declares; the client picks it up at its next start.
package install

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"localllm/internal/atomicfile"
	"localllm/internal/hint"
	"localllm/internal/paths"
)

// Scopes.
const (
	User    = "user"    // for all projects of this user
	Project = "project" // for one project folder
)

// Options says what to install where.
type Options struct {
	Clients []string // names, or "all" or nothing for all that are on this machine
	Scope   string   // User (default) or Project
	Binary  string   // absolute path of localllm
	Home    string   // the user's home folder
	Project string   // the project folder, for Scope Project
	State   string   // folder of our own, where the plugin goes
	Plugin  fs.FS    // the marketplace folder
	Getenv  func(string) string
	DryRun  bool // work everything out, write nothing
}

// Change is what became, or would become, of one file.
type Change struct {
	Client string `json:"client"`
	What   string `json:"what"` // "server", "policy", "plugin"
	Path   string `json:"path,omitempty"`
	Action string `json:"action"` // "created", "modified", "unchanged", "restored", "removed", "skipped"
	Backup string `json:"backup,omitempty"`
	Detail string `json:"detail,omitempty"`
	After  string `json:"-"` // the whole text afterwards, for showing
}

// Install registers the server and the policy. Everything that one client needs is worked out before the first write;
// a client whose files can't be understood is left alone and named in the error, and the others go on.
func Install(o Options) ([]Change, error) { return each(o, false) }

// Uninstall takes out what Install put in. Where nothing else has changed a file since, it is again what it was, byte
// for byte.
func Uninstall(o Options) ([]Change, error) { return each(o, true) }

func each(o Options, undo bool) ([]Change, error) {
	chosen, err := choose(&o)
	if err != nil {
		return nil, err
	}
	var changes []Change
	var errs []error
	for _, c := range chosen {
		if o.all() && !c.found(o) && !undo {
			changes = append(changes, Change{Client: c.name, Action: "skipped", Detail: "not found on this machine"})
			continue
		}
		made, err := one(o, c, undo)
		changes = append(changes, made...)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.name, err))
		}
	}
	return changes, errors.Join(errs...)
}

func (o Options) all() bool { return len(o.Clients) == 0 || slices.Contains(o.Clients, "all") }

func choose(o *Options) ([]client, error) {
	if o.Scope == "" {
		o.Scope = User
	}
	if o.Scope != User && o.Scope != Project {
		return nil, fmt.Errorf("the scope is user or project, not %q", o.Scope)
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if !filepath.IsAbs(o.Binary) {
		return nil, fmt.Errorf("the path of localllm has to be absolute, not %q", o.Binary)
	}
	if o.all() {
		return clients, nil
	}
	var chosen []client
	for _, name := range o.Clients {
		i := slices.IndexFunc(clients, func(c client) bool { return c.name == name })
		if i < 0 {
			return nil, hint.New(fmt.Sprintf("there is no client %q", name), "clients: "+strings.Join(Clients(), ", ")+", all")
		}
		chosen = append(chosen, clients[i])
	}
	return chosen, nil
}

// edit is one file of a client's and how it is changed. The functions are pure: text in, text out.
type edit struct {
	what string
	path string
	set  func(text []byte) ([]byte, error)
	cut  func(text, before []byte) ([]byte, error) // before: the text that Install found, nil if there was none
}

// step is an edit worked out.
type step struct {
	change Change
	target target
	after  []byte
	remove bool
	backup []byte // what to keep beside the file; nil: nothing
	spent  bool   // the backup has served
}

func one(o Options, c client, undo bool) ([]Change, error) {
	edits := c.edits(o)
	if undo {
		edits = o.unshared(c, edits)
		if c.plugin && o.Scope == User {
			edits = append(edits, marketplaceEdit(o))
		}
	}
	steps := make([]step, 0, len(edits))
	for _, e := range edits {
		s, err := work(o, e, undo)
		if err != nil {
			return nil, hint.Add(fmt.Errorf("%s: %w", e.path, err), "nothing of this client was changed; localllm install --print shows what to put in by hand")
		}
		s.change.Client = c.name
		steps = append(steps, s)
	}
	var changes []Change
	if c.plugin {
		made, err := plugin(o, undo)
		if err != nil {
			return nil, err
		}
		changes = append(changes, made)
	}
	for _, s := range steps {
		if !o.DryRun {
			if err := s.write(o); err != nil {
				return changes, fmt.Errorf("writing %s: %w", s.target.path, err)
			}
		}
		s.change.After = string(s.after)
		changes = append(changes, s.change)
	}
	if !undo && c.policy(o) == "" {
		changes = append(changes, Change{Client: c.name, What: "policy", Action: "skipped", Detail: "this client has no instruction file for all projects; --scope project has one"})
	}
	return changes, nil
}

func work(o Options, e edit, undo bool) (step, error) {
	t, err := open(e.path, o)
	if err != nil {
		return step{}, err
	}
	s := step{target: t, change: Change{What: e.what, Path: e.path}}
	before, kept, err := t.readBackup()
	if err != nil {
		return step{}, err
	}
	if undo {
		return undoStep(s, e, before, kept)
	}
	if s.after, err = e.set(t.text); err != nil {
		return step{}, err
	}
	switch {
	case t.exists && bytes.Equal(s.after, t.text):
		s.change.Action = "unchanged"
	case t.exists:
		s.change.Action = "modified"
		// Where our part is in the file already, the backup of the text without it stays.
		if bare, err := e.cut(t.text, nil); err != nil || bytes.Equal(bare, t.text) {
			s.backup = t.text
			s.change.Backup = t.backup
		}
	default:
		s.change.Action = "created"
	}
	return s, nil
}

func undoStep(s step, e edit, before []byte, kept bool) (step, error) {
	t := s.target
	s.after = t.text
	if !t.exists {
		s.change.Action = "unchanged"
		return s, nil
	}
	if then, err := e.set(before); err == nil && bytes.Equal(then, t.text) {
		s.after, s.spent, s.remove = before, kept, !kept
		s.change.Action = map[bool]string{true: "restored", false: "removed"}[kept]
		return s, nil
	}
	if !kept {
		before = nil
	}
	after, err := e.cut(t.text, before)
	if err != nil {
		return step{}, err
	}
	s.after = after
	s.change.Action = "modified"
	if bytes.Equal(after, t.text) {
		s.change.Action = "unchanged"
	}
	return s, nil
}

func (s step) write(o Options) error {
	t := s.target
	switch s.change.Action {
	case "unchanged", "skipped":
		return nil
	case "removed":
		if err := os.Remove(t.real); err != nil {
			return err
		}
		// A client's own folder too, if nothing else is in it; the project itself and the home folder stay.
		if dir := filepath.Dir(t.path); dir != filepath.Clean(o.Project) && dir != filepath.Clean(o.Home) {
			_ = os.Remove(filepath.Dir(t.real))
		}
		return nil
	}
	if s.backup != nil {
		if err := atomicfile.Write(t.backup, s.backup, t.mode); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(t.real), 0o755); err != nil {
		return err
	}
	if err := atomicfile.Write(t.real, s.after, t.mode); err != nil {
		return err
	}
	if s.spent {
		return os.Remove(t.backup)
	}
	return nil
}

// plugin writes the marketplace folder with the program's own path in place of its name.
func plugin(o Options, undo bool) (Change, error) {
	dir := pluginDir(o)
	change := Change{Client: ClaudeCode, What: "plugin", Path: dir, Action: "unchanged"}
	if undo && o.Scope == Project {
		change.Detail = "kept: other projects may use it; --scope user removes it"
		return change, nil
	}
	if undo {
		if _, err := os.Stat(dir); err == nil {
			change.Action = "removed"
			if !o.DryRun {
				return change, os.RemoveAll(dir)
			}
		}
		return change, nil
	}
	files, err := pluginFiles(o)
	if err != nil {
		return change, err
	}
	made := "modified"
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		made = "created"
	}
	for name, data := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		old, err := os.ReadFile(path)
		if err == nil && bytes.Equal(old, data) {
			continue
		}
		change.Action = made
		if o.DryRun {
			continue
		}
		if err := paths.Private(filepath.Dir(path)); err != nil {
			return change, err
		}
		if err := atomicfile.Write(path, data, 0o600); err != nil {
			return change, fmt.Errorf("writing the plugin: %w", err)
		}
	}
	return change, nil
}
