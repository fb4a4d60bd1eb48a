package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"localllm/internal/atomicfile"
)

// Addition is what init puts into a file: whole sections, each with its comments.
type Addition struct {
	Profiles map[string]Profile
	Comments map[string]string // profile → a line above it
	Tiers    map[string]string
	Default  string
	Notes    []string
}

// Added is what came of it.
type Added struct {
	Path     string   `json:"path"`
	Created  bool     `json:"created"`
	Profiles []string `json:"profiles"` // written now
	Kept     []string `json:"kept"`     // there already, left as they are
	Text     string   `json:"-"`        // the whole file
}

// Extend adds to the file at path without touching a line that is there; a missing file is made from the template.
// With dry nothing is written. The result is checked to load before it is written.
func Extend(path string, a Addition, dry bool) (Added, error) {
	out := Added{Path: path, Profiles: []string{}, Kept: []string{}}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		out.Created, data = true, []byte(Template())
	} else if err != nil {
		return out, fmt.Errorf("reading the configuration: %w", err)
	}
	had := defaults(path)
	if err := had.parse(data); err != nil {
		return out, fmt.Errorf("%s: %w", path, err)
	}
	var b strings.Builder
	b.WriteString(strings.TrimRight(string(data), "\n") + "\n")
	for _, note := range a.Notes {
		if !strings.Contains(string(data), note) {
			fmt.Fprintf(&b, "\n# %s", strings.ReplaceAll(note, "\n", " "))
		}
	}
	if a.Default != "" && had.Profile == "" && !strings.Contains(string(data), "was the default of the tool") {
		fmt.Fprintf(&b, "\n# %s was the default of the tool that it comes from; profile = %s at the top of this file makes it so here.\n", a.Default, quote(a.Default))
	}
	for _, name := range slices.Sorted(maps.Keys(a.Profiles)) {
		if had.hasProfile(name) {
			out.Kept = append(out.Kept, name)
			continue
		}
		out.Profiles = append(out.Profiles, name)
		b.WriteString("\n" + Section(name, a.Profiles[name], a.Comments[name]))
	}
	if len(a.Tiers) > 0 && len(had.Tiers) == 0 {
		b.WriteString("\n[tiers]\n")
		for _, tier := range slices.Sorted(maps.Keys(a.Tiers)) {
			fmt.Fprintf(&b, "%s = %s\n", tier, quote(a.Tiers[tier]))
		}
	}
	out.Text = b.String()
	check := defaults(path)
	if err := check.parse([]byte(out.Text)); err != nil {
		return out, fmt.Errorf("the new configuration would not load: %w", err)
	}
	check.resolveTiers()
	if err := check.validate(); err != nil {
		return out, fmt.Errorf("the new configuration would not load: %w", err)
	}
	if dry || (!out.Created && out.Text == string(data)) {
		return out, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return out, fmt.Errorf("writing the configuration: %w", err)
	}
	mode := os.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	if err := atomicfile.Write(path, []byte(out.Text), mode); err != nil {
		return out, fmt.Errorf("writing the configuration: %w", err)
	}
	return out, nil
}
