package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// Takeover is what other tools left behind, in this configuration's terms. It holds no key.
type Takeover struct {
	Profiles map[string]Profile
	Tiers    map[string]string // tier → "profile/model"
	Default  string            // the profile that the other tool used when nothing was said
	Found    []string          // where something was found
	Notes    []string          // what could not be taken over, and what it is here

	origin map[string]string // profile → what it comes from
}

// FindOthers looks for what claude-code-delegate-local, agent-delegate and sub-agent-mcp left in the environment and
// under the user's home. Keys are never copied, only the names of their variables.
func FindOthers(home string, lookup func(string) (string, bool)) Takeover {
	t := Takeover{Profiles: map[string]Profile{}, Tiers: map[string]string{}, origin: map[string]string{}}
	env := func(name string) string { v, _ := lookup(name); return v }
	t.delegateLocal(home, env)
	t.agentDelegate(home, env)
	t.subAgents(home, env)
	return t
}

// Origin says what a profile was made of.
func (t *Takeover) Origin(profile string) string { return t.origin[profile] }

func (t *Takeover) note(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

func (t *Takeover) add(name string, p Profile, origin string) bool {
	if _, there := t.Profiles[name]; there {
		name = "imported-" + name
	}
	if problems := p.problems(name); len(problems) > 0 {
		t.note("%s: left out: %v", origin, errors.Join(problems...))
		return false
	}
	t.Profiles[name], t.origin[name] = p, origin
	return true
}

// delegateLocal takes over claude-code-delegate-local: variables, in the environment or in the block that Claude Code
// keeps for the server.
func (t *Takeover) delegateLocal(home string, env func(string) string) {
	get, where := env, "the environment"
	if env("DELEGATE_LOCAL_URL") == "" && env("DELEGATE_LOCAL_MODEL") == "" {
		block, path := claudeServer(home, "DELEGATE_LOCAL_")
		if block == nil {
			return
		}
		get, where = func(name string) string { return block[name] }, path
	}
	t.Found = append(t.Found, "claude-code-delegate-local in "+where)
	p := Profile{BaseURL: get("DELEGATE_LOCAL_URL"), Model: get("DELEGATE_LOCAL_MODEL"), Slots: 4}
	if p.BaseURL == "" {
		p.BaseURL = "http://localhost:4000/v1/messages"
	}
	if get("DELEGATE_LOCAL_KEY") != "" {
		p.APIKeyEnv = "DELEGATE_LOCAL_KEY"
		if where != "the environment" {
			t.note("the key in %s was not copied: set DELEGATE_LOCAL_KEY in the environment of localllm", where)
		}
	}
	for _, name := range []string{"DELEGATE_CONCURRENCY_LOCAL", "DELEGATE_CONCURRENCY_DEFAULT"} {
		if n, err := strconv.Atoi(get(name)); err == nil && n > 0 {
			p.Slots = n
			break
		}
	}
	if n, err := strconv.Atoi(get("DELEGATE_TURN_TIMEOUT")); err == nil && n > 0 && n < 1e6 {
		p.Timeout = Duration(time.Duration(n) * time.Second)
	}
	if m := get("DELEGATE_LOCAL_CODING_MODEL"); m != "" && m != p.Model {
		p.Tiers = map[string]string{"deep": m}
		t.note("DELEGATE_LOCAL_CODING_MODEL became the profile's tier deep: say tier deep for coding agents")
	}
	if dir := get("DELEGATE_LOCAL_AGENTS_DIR"); dir != "" {
		t.note("DELEGATE_LOCAL_AGENTS_DIR=%s: definitions are found in ~/.claude/agents and the project; link that folder there", dir)
	}
	if v := get("DELEGATE_RUN_BASH"); v == "" || (v != "0" && v != "false") {
		t.note("run_bash was on there; here a call says allow_shell, or the file allow_shell = true")
	}
	if t.add("delegate-local", p, where) && t.Default == "" {
		t.Default = "delegate-local"
	}
}

// claudeServer is the environment of the MCP server in Claude Code's user configuration that has a variable with prefix.
func claudeServer(home, prefix string) (map[string]string, string) {
	for _, name := range []string{".claude.json", filepath.Join(".claude", "settings.json")} {
		path := filepath.Join(home, name)
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		var file struct {
			Servers map[string]struct {
				Env map[string]string `json:"env"`
			} `json:"mcpServers"`
			Env map[string]string `json:"env"`
		}
		if json.Unmarshal(data, &file) != nil {
			continue
		}
		blocks := []map[string]string{file.Env}
		for _, server := range slices.Sorted(maps.Keys(file.Servers)) {
			blocks = append(blocks, file.Servers[server].Env)
		}
		for _, block := range blocks {
			for key := range block {
				if strings.HasPrefix(key, prefix) {
					return block, path
				}
			}
		}
	}
	return nil, ""
}

// agentDelegate takes over agent-delegate's profiles.toml.
func (t *Takeover) agentDelegate(home string, env func(string) string) {
	path := env("AGENT_DELEGATE_CONFIG")
	if path == "" {
		dir := env("AGENT_DELEGATE_HOME")
		if dir == "" {
			dir = filepath.Join(home, ".agent-delegate")
		}
		path = filepath.Join(dir, "profiles.toml")
	}
	var file struct {
		Default  string `toml:"default_profile"`
		Profiles map[string]struct {
			Backend string            `toml:"backend"`
			URL     string            `toml:"base_url"`
			Model   string            `toml:"default_model"`
			Key     string            `toml:"api_key"`
			KeyEnv  string            `toml:"api_key_env"`
			Headers map[string]string `toml:"extra_headers"`
			Timeout float64           `toml:"timeout"`
		} `toml:"profiles"`
	}
	if !t.read(path, &file, "agent-delegate") {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(file.Profiles)) {
		q := file.Profiles[name]
		p := Profile{Kind: "openai", BaseURL: q.URL, Model: q.Model, APIKeyEnv: q.KeyEnv, Headers: map[string]string{}}
		if q.Backend == "anthropic" {
			p.Kind = "anthropic"
			if p.BaseURL == "" {
				p.BaseURL = "https://api.anthropic.com/v1"
			}
		}
		if q.Timeout > 0 && q.Timeout < 1e6 {
			p.Timeout = Duration(time.Duration(q.Timeout * float64(time.Second)))
		}
		for h, v := range q.Headers {
			if secretHeader(h) {
				t.note("%s: header %s of %s is a secret and was not copied: name its variable in api_key_env", path, h, name)
				continue
			}
			p.Headers[h] = v
		}
		if q.Key != "" && q.KeyEnv == "" {
			p.APIKeyEnv = strings.ToUpper(strings.NewReplacer("-", "_", ".", "_", " ", "_").Replace(name)) + "_API_KEY"
			t.note("%s: the key of %s was not copied: put it into the variable %s", path, name, p.APIKeyEnv)
		}
		if t.add(name, p, path) && name == file.Default {
			t.Default = name
		}
	}
}

// read decodes a tool's TOML file; a missing one is nothing to say.
func (t *Takeover) read(path string, into any, tool string) bool {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err == nil {
		_, err = toml.Decode(string(data), into)
	}
	if err != nil {
		t.note("%s: can't be read: %s", path, brief(err))
		return false
	}
	t.Found = append(t.Found, tool+" in "+path)
	return true
}

// brief is an error without the lines of the file that it happened in: a key may stand there.
func brief(err error) string {
	var perr toml.ParseError
	if errors.As(err, &perr) {
		return fmt.Sprintf("line %d is not TOML", perr.Position.Line)
	}
	return err.Error()
}

// subAgents takes over sub-agent-mcp's tiers. Its models are OpenCode's, PROVIDER/MODEL: a provider that is a preset
// here becomes a profile.
func (t *Takeover) subAgents(home string, env func(string) string) {
	path := env("SUBAGENT_TIERS_FILE")
	if path == "" {
		path = filepath.Join(home, ".config", "sub-agent-mcp", "tiers.toml")
	}
	var file struct {
		Tiers map[string]string `toml:"tiers"`
		Extra []string          `toml:"extra_approved_models"`
		Pass  []string          `toml:"passthrough_env"`
	}
	if t.read(path, &file, "sub-agent-mcp") {
		if m := env("SUBAGENT_DEFAULT_MODEL"); m != "" && file.Tiers != nil {
			file.Tiers["default"] = m
		}
		t.subAgentTiers(path, file.Tiers, file.Extra)
		if len(file.Pass) > 0 {
			t.note("passthrough_env (%s): profiles read their own variable; an executor gets what it needs", strings.Join(file.Pass, ", "))
		}
	}
	for name, here := range map[string]string{
		"SUBAGENT_READ_ROOTS": "read_roots of a call", "SUBAGENT_WRITE_ROOTS": "write_roots of a call", "SUBAGENT_ALLOWED_ROOTS": "read_roots and write_roots of a call",
	} {
		if env(name) != "" {
			t.note("%s is %s here: a standing permission is not taken over", name, here)
		}
	}
	slices.Sort(t.Notes)
}

func (t *Takeover) subAgentTiers(path string, tiers map[string]string, extra []string) {
	allowed := map[string][]string{}
	for _, slug := range append(slices.Sorted(maps.Values(tiers)), extra...) {
		if provider, model, ok := strings.Cut(slug, "/"); ok && !slices.Contains(allowed[provider], model) {
			allowed[provider] = append(allowed[provider], model)
		}
	}
	for _, provider := range slices.Sorted(maps.Keys(allowed)) {
		preset, known := FindPreset(provider)
		if !known {
			t.note("%s: provider %s is OpenCode's own: use executor opencode for it, or add a profile of that name", path, provider)
			continue
		}
		if _, there := t.Profiles[provider]; there {
			continue // another tool's file says more of it
		}
		p := preset.Profile
		p.Models = allowed[provider]
		p.Model = p.Models[0]
		t.add(provider, p, path)
	}
	for _, tier := range TierNames {
		provider, _, _ := strings.Cut(tiers[tier], "/")
		if _, there := t.Profiles[provider]; there {
			t.Tiers[tier] = tiers[tier]
		}
	}
}
