// Package agents finds and reads the definitions of agents and skills that coding clients keep: by name, in the
// working folder and in the user's home. It runs nothing, and no name is ever a path.
package agents

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"localllm/internal/treefile"
)

// A definition is a page of instructions. What is larger is none, and what is more in one folder is nobody's.
const (
	MaxFile  = 256 << 10
	maxNames = 500
)

// ErrNotFound means that nothing of that name is in any of the places.
var ErrNotFound = errors.New("there is no such agent")

// Definition is one agent or skill.
type Definition struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Model       string   `json:"model"` // as the definition words it; nothing here obeys it
	Tools       []string `json:"tools,omitempty"`
	Source      string   `json:"source"`            // the file
	Kind        string   `json:"kind"`              // which client's, and what
	Shadows     []string `json:"shadows,omitempty"` // files of the same name that this one goes before
	Problem     string   `json:"problem,omitempty"` // why it can't be used
	Limited     bool     `json:"-"`                 // Tools is all that it may use
	Body        string   `json:"-"`
}

// Places are the folders to look in. Project, where it is not the working folder, comes after that.
type Places struct {
	Workdir string
	Project string
	Home    string
	Config  string // XDG_CONFIG_HOME; empty: .config in Home
}

// kinds in the order in which they count within one folder. NAME stands for the agent's name.
type kind struct {
	kind    string
	pattern string
	parse   func([]byte, *Definition) error
}

var local = []kind{
	{"claude agent", ".claude/agents/NAME.md", markdown},
	{"claude skill", ".claude/skills/NAME/SKILL.md", markdown},
	{"opencode agent", ".opencode/agent/NAME.md", markdown},
	{"opencode agent", ".opencode/agents/NAME.md", markdown},
	{"opencode skill", ".opencode/skill/NAME/SKILL.md", markdown},
	{"opencode skill", ".opencode/skills/NAME/SKILL.md", markdown},
	{"codex agent", ".codex/agents/NAME.toml", codex},
	{"codex skill", ".codex/skills/NAME/SKILL.md", markdown},
	{"agent skill", ".agents/skills/NAME/SKILL.md", markdown},
}

// In the home folder, OpenCode's are in its configuration.
var global = []kind{
	{"opencode agent", "opencode/agent/NAME.md", markdown},
	{"opencode agent", "opencode/agents/NAME.md", markdown},
	{"opencode skill", "opencode/skill/NAME/SKILL.md", markdown},
	{"opencode skill", "opencode/skills/NAME/SKILL.md", markdown},
}

var goodName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$`)

// ValidName reports whether name may be an agent's.
func ValidName(name string) bool { return goodName.MatchString(name) && !strings.Contains(name, "..") }

// place is one file pattern in one folder.
type place struct {
	kind
	dir    string
	theirs bool // in a project: it may be hostile, so no link is followed
}

func (p Places) all() []place {
	var out []place
	seen := map[string]bool{}
	add := func(dir string, theirs bool, kinds []kind) {
		if dir == "" {
			return
		}
		for _, k := range kinds {
			if at := filepath.Join(dir, filepath.FromSlash(k.pattern)); !seen[at] {
				seen[at] = true
				out = append(out, place{k, dir, theirs})
			}
		}
	}
	add(p.Workdir, true, local)
	add(p.Project, true, local)
	add(p.Home, false, local[:2])
	config := p.Config
	if config == "" && p.Home != "" {
		config = filepath.Join(p.Home, ".config")
	}
	add(config, false, global)
	add(p.Home, false, local[2:])
	return out
}

// Find reads the agent that name stands for. Errors are ErrNotFound, or say what is wrong with the file that would be
// it: one that can't be read is not passed over for the next.
func Find(p Places, name string) (Definition, error) {
	if !ValidName(name) {
		return Definition{}, fmt.Errorf("%q is no name of an agent: it takes letters, digits, dots and dashes", clip(name))
	}
	for _, at := range p.all() {
		d, found := at.read(name)
		if !found {
			continue
		}
		if d.Problem != "" {
			return d, fmt.Errorf("%s: %s", d.Source, d.Problem)
		}
		return d, nil
	}
	return Definition{}, fmt.Errorf("%w: %q", ErrNotFound, name)
}

// List is every agent, by name, each once: with what it shadows.
func List(p Places) []Definition {
	found := map[string]*Definition{}
	var out []*Definition
	for _, at := range p.all() {
		for _, name := range at.names() {
			d, ok := at.read(name)
			if !ok {
				continue
			}
			if first, taken := found[name]; taken {
				first.Shadows = append(first.Shadows, d.Source)
				continue
			}
			found[name] = &d
			out = append(out, &d)
		}
	}
	slices.SortStableFunc(out, func(a, b *Definition) int { return strings.Compare(a.Name, b.Name) })
	list := make([]Definition, len(out))
	for i, d := range out {
		list[i] = *d
	}
	return list
}

// names are those that one place holds.
func (at place) names() []string {
	folder, file := path.Split(at.pattern)
	inFolders := strings.HasSuffix(folder, "/NAME/")
	folder = strings.TrimSuffix(strings.TrimSuffix(folder, "/"), "/NAME")
	where := filepath.Join(at.dir, filepath.FromSlash(folder))
	if info, err := os.Stat(where); err != nil || !info.IsDir() {
		return nil // a pipe would keep us waiting
	}
	dir, err := os.Open(where)
	if err != nil {
		return nil
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(maxNames)
	var names []string
	for _, e := range entries {
		name := e.Name()
		if !inFolders {
			var ok bool
			if name, ok = strings.CutSuffix(name, strings.TrimPrefix(file, "NAME")); !ok {
				continue
			}
		}
		if ValidName(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// read is the definition of that name in this place, with a Problem where it is there and no good.
func (at place) read(name string) (Definition, bool) {
	rel := strings.ReplaceAll(at.pattern, "NAME", name)
	d := Definition{Name: name, Kind: at.kind.kind, Source: filepath.Join(at.dir, filepath.FromSlash(rel))}
	if _, err := os.Lstat(d.Source); err != nil {
		return d, false
	}
	if !at.theirs {
		// The user's own may be links, as those are who keep such files in a repository.
		real, err := filepath.EvalSymlinks(d.Source)
		if err != nil {
			d.Problem = "it is a link to nothing"
			return d, true
		}
		at.dir, rel = filepath.Dir(real), filepath.Base(real)
	}
	raw, err := readFile(at.dir, rel)
	if err == nil {
		err = at.parse(raw, &d)
	}
	if err != nil {
		d.Problem = err.Error()
	}
	return d, true
}

func readFile(dir, rel string) ([]byte, error) {
	root, err := treefile.Open(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	raw, _, err := root.Read(rel, MaxFile)
	switch {
	case errors.Is(err, treefile.ErrLink), errors.Is(err, os.ErrNotExist):
		return nil, errors.New("it is reached through a link, which a project's definitions must not be")
	case errors.Is(err, treefile.ErrNotFile):
		return nil, errors.New("it is no regular file")
	case errors.Is(err, treefile.ErrTooBig):
		return nil, fmt.Errorf("it is larger than %d KB", MaxFile>>10)
	}
	return raw, err
}

func clip(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}
