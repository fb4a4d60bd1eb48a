package agents

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// What of a definition is shown in lists.
const (
	maxFront       = 16 << 10
	maxDescription = 500
)

// markdown reads front matter and text.
func markdown(raw []byte, d *Definition) error {
	if !utf8.Valid(raw) || bytes.IndexByte(raw, 0) >= 0 {
		return errors.New("it is not UTF-8 text")
	}
	text := strings.ReplaceAll(strings.TrimPrefix(string(raw), "\ufeff"), "\r\n", "\n")
	front, body, err := split(text)
	if err != nil {
		return err
	}
	if err := d.front(front); err != nil {
		return err
	}
	return d.take(body)
}

// split parts the front matter, between lines of three dashes at the top, from the text.
func split(text string) (front, body string, err error) {
	rest, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return "", text, nil
	}
	if after, empty := strings.CutPrefix(rest, "---\n"); empty {
		return "", after, nil
	}
	front, body, ok = strings.Cut(rest, "\n---\n")
	if !ok {
		if front, ok = strings.CutSuffix(strings.TrimRight(rest, " \n"), "\n---"); !ok {
			return "", "", errors.New("its front matter has no end")
		}
		body = ""
	}
	if len(front) > maxFront {
		return "", "", fmt.Errorf("its front matter is longer than %d KB", maxFront>>10)
	}
	return front, body, nil
}

func (d *Definition) front(text string) error {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	// A few lines of aliases can stand for gigabytes, and no definition needs one.
	for _, t := range lexer.Tokenize(text) {
		if t.Type == token.AliasType || t.Type == token.AnchorType || t.Type == token.MergeKeyType {
			return errors.New("its front matter has anchors or aliases, which are not read")
		}
	}
	var f struct {
		Description any `yaml:"description"`
		Model       any `yaml:"model"`
		Tools       any `yaml:"tools"`
		Allowed     any `yaml:"allowed-tools"`
	}
	if err := yaml.Unmarshal([]byte(text), &f); err != nil {
		// Clients take lines that YAML does not, as in «description: Use when: …». What it is for is not worth losing it.
		if !loose(text, &f.Description, &f.Model, &f.Tools) {
			return fmt.Errorf("its front matter is not YAML: %s", firstLine(yaml.FormatError(err, false, false)))
		}
	}
	d.Description, d.Model = word(f.Description), word(f.Model)
	d.tools(f.Tools)
	if !d.Limited {
		d.tools(f.Allowed)
	}
	return nil
}

// loose reads «key: value» lines, whatever the value.
func loose(text string, description, model, tools *any) bool {
	into := map[string]*any{"description": description, "model": model, "tools": tools}
	found := false
	for line := range strings.SplitSeq(text, "\n") {
		key, value, ok := strings.Cut(line, ":")
		if at := into[key]; ok && at != nil {
			*at = strings.TrimSpace(value)
			found = true
		}
	}
	return found
}

// tools takes a list, a line with commas, or OpenCode's map of names to yes or no.
func (d *Definition) tools(v any) {
	switch v := v.(type) {
	case string:
		d.Limited = strings.TrimSpace(v) != "" && strings.TrimSpace(v) != "*"
		if d.Limited {
			for name := range strings.SplitSeq(v, ",") {
				d.tool(name)
			}
		}
	case []any:
		d.Limited = true
		for _, name := range v {
			d.tool(word(name))
		}
	case map[string]any:
		for name, on := range v {
			if on == false {
				d.Tools = append(d.Tools, "!"+strings.ToLower(clip(name)))
			}
		}
		slices.Sort(d.Tools)
		d.Limited = len(d.Tools) > 0
	}
}

func (d *Definition) tool(name string) {
	name, _, _ = strings.Cut(strings.TrimSpace(name), "(") // Bash(git:*) is a part of Bash
	if name != "" && len(d.Tools) < 64 {
		d.Tools = append(d.Tools, strings.ToLower(clip(name)))
	}
}

// May reports whether the definition leaves a tool, by any of its names with other clients, to the agent.
func (d Definition) May(names ...string) bool {
	if !d.Limited {
		return true
	}
	denies := false
	for _, t := range d.Tools {
		off, denied := strings.CutPrefix(t, "!")
		denies = denies || denied
		for _, n := range names {
			if denied && off == n {
				return false
			}
			if !denied && (t == n || t == "*") {
				return true
			}
		}
	}
	return denies // a list of what it must not use allows the rest
}

func word(v any) string {
	s, ok := v.(string)
	if !ok {
		if v == nil {
			return ""
		}
		s = fmt.Sprint(v)
	}
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxDescription {
		s = strings.ToValidUTF8(s[:maxDescription], "") + "…"
	}
	return s
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return clip(line)
}

// take keeps the instructions.
func (d *Definition) take(body string) error {
	d.Body = strings.TrimSpace(body)
	if d.Body == "" {
		return errors.New("it has no instructions")
	}
	return nil
}

// codex reads Codex's form.
func codex(raw []byte, d *Definition) error {
	if !utf8.Valid(raw) || bytes.IndexByte(raw, 0) >= 0 {
		return errors.New("it is not UTF-8 text")
	}
	var f struct {
		Description  string `toml:"description"`
		Model        string `toml:"model"`
		Instructions string `toml:"developer_instructions"`
	}
	if _, err := toml.Decode(string(raw), &f); err != nil {
		return fmt.Errorf("it is not TOML: %s", firstLine(err.Error()))
	}
	d.Description, d.Model = word(f.Description), word(f.Model)
	return d.take(f.Instructions)
}
