package install

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// The clients.
const (
	ClaudeCode = "claude-code"
	Codex      = "codex"
	OpenCode   = "opencode"
	Cursor     = "cursor"
	VSCode     = "vscode"
)

// serverName is what the server is called in every client.
const serverName = "local_llm"

// client is one coding agent: where its files are and what goes into them. Paths are "" where it has no such file.
type client struct {
	name    string
	command string
	plugin  bool // gets the plugin, which brings the server
	dir     func(o Options) string
	config  func(o Options) string
	policy  func(o Options) string
	entries func(o Options) []entry // of a JSON configuration
}

// entry is one member of a JSON configuration.
type entry struct {
	path  []string
	value any
}

var clients = []client{
	{name: ClaudeCode, command: "claude", plugin: true, dir: claudeDir,
		config: scoped(func(o Options) string { return filepath.Join(claudeDir(o), "settings.json") }, ".claude/settings.local.json"),
		policy: scoped(func(o Options) string { return filepath.Join(claudeDir(o), "CLAUDE.md") }, "CLAUDE.md"),
		entries: func(o Options) []entry {
			return []entry{
				{[]string{"extraKnownMarketplaces", "localllm"}, map[string]any{"source": map[string]any{"source": "directory", "path": pluginDir(o)}}},
				{[]string{"enabledPlugins", "workflow@localllm"}, true},
			}
		}},
	{name: Codex, command: "codex", dir: codexDir,
		config: scoped(func(o Options) string { return filepath.Join(codexDir(o), "config.toml") }, ".codex/config.toml"),
		policy: scoped(func(o Options) string { return filepath.Join(codexDir(o), "AGENTS.md") }, "AGENTS.md")},
	{name: OpenCode, command: "opencode", dir: openCodeDir,
		config: scoped(func(o Options) string { return existing(openCodeDir(o), "opencode.jsonc", "opencode.json") }, "opencode.json"),
		policy: scoped(func(o Options) string { return filepath.Join(openCodeDir(o), "AGENTS.md") }, "AGENTS.md"),
		entries: func(o Options) []entry {
			return []entry{{[]string{"mcp", serverName}, struct {
				Type        string            `json:"type"`
				Command     []string          `json:"command"`
				Enabled     bool              `json:"enabled"`
				Environment map[string]string `json:"environment,omitempty"`
			}{"local", []string{o.Binary, "mcp"}, true, o.environment()}}}
		}},
	{name: Cursor, command: "cursor", dir: func(o Options) string { return filepath.Join(o.Home, ".cursor") },
		config:  scoped(func(o Options) string { return filepath.Join(o.Home, ".cursor", "mcp.json") }, ".cursor/mcp.json"),
		policy:  scoped(nil, "AGENTS.md"),
		entries: func(o Options) []entry { return []entry{{[]string{"mcpServers", serverName}, plainServer("", o)}} }},
	{name: VSCode, command: "code", dir: codeDir,
		config:  scoped(func(o Options) string { return filepath.Join(codeDir(o), "mcp.json") }, ".vscode/mcp.json"),
		policy:  scoped(nil, "AGENTS.md"),
		entries: func(o Options) []entry { return []entry{{[]string{"servers", serverName}, plainServer("stdio", o)}} }},
}

// Clients are the names of all clients.
func Clients() []string {
	names := make([]string, len(clients))
	for i, c := range clients {
		names[i] = c.name
	}
	return names
}

type server struct {
	Type    string            `json:"type,omitempty"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env,omitempty"`
}

func plainServer(kind string, o Options) server {
	return server{kind, o.Binary, []string{"mcp"}, o.environment()}
}

// carried are the variables that decide which engine and which folders are used. Some clients pass a short list of
// variables to their servers, and these are not on it. None of them is a secret.
var carried = []string{"LOCALLLM_HOME", "LOCALLLM_OLLAMA", "LOCALLLM_LLAMA_SERVER", "LOCALLLM_NVML", "XDG_CONFIG_HOME",
	"OLLAMA_HOST", "OLLAMA_MODELS", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"}

func (o Options) environment() map[string]string {
	env := map[string]string{}
	for _, name := range carried {
		if v := o.Getenv(name); v != "" {
			env[name] = v
		}
	}
	return env
}

func scoped(user func(Options) string, project string) func(Options) string {
	return func(o Options) string {
		if o.Scope == Project {
			return filepath.Join(o.Project, filepath.FromSlash(project))
		}
		if user == nil {
			return ""
		}
		return user(o)
	}
}

func claudeDir(o Options) string {
	return fromEnv(o, "CLAUDE_CONFIG_DIR", filepath.Join(o.Home, ".claude"))
}
func codexDir(o Options) string { return fromEnv(o, "CODEX_HOME", filepath.Join(o.Home, ".codex")) }

func openCodeDir(o Options) string {
	return filepath.Join(fromEnv(o, "XDG_CONFIG_HOME", filepath.Join(o.Home, ".config")), "opencode")
}

func codeDir(o Options) string {
	switch runtime.GOOS {
	case "darwin":
		return filepath.Join(o.Home, "Library", "Application Support", "Code", "User")
	case "windows":
		return filepath.Join(fromEnv(o, "APPDATA", filepath.Join(o.Home, "AppData", "Roaming")), "Code", "User")
	}
	return filepath.Join(fromEnv(o, "XDG_CONFIG_HOME", filepath.Join(o.Home, ".config")), "Code", "User")
}

func fromEnv(o Options, name, otherwise string) string {
	if dir := o.Getenv(name); filepath.IsAbs(dir) {
		return dir
	}
	return otherwise
}

// existing is the first of the names that is there, else the last.
func existing(dir string, names ...string) string {
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return filepath.Join(dir, name)
		}
	}
	return filepath.Join(dir, names[len(names)-1])
}

func (c client) found(o Options) bool {
	if info, err := os.Stat(c.dir(o)); err == nil && info.IsDir() {
		return true
	}
	_, err := exec.LookPath(c.command)
	return err == nil
}

func pluginDir(o Options) string { return filepath.Join(o.State, "plugin") }

func (c client) edits(o Options) []edit {
	var edits []edit
	if c.entries != nil {
		edits = append(edits, jsonEdit(c.config(o), c.entries(o)))
	} else {
		edits = append(edits, tomlEdit(c.config(o), o))
	}
	if path := c.policy(o); path != "" {
		edits = append(edits, policyEdit(path))
	}
	return edits
}

// unshared leaves a policy file alone that another client, which stays, reads too.
func (o Options) unshared(c client, edits []edit) []edit {
	return slices.DeleteFunc(edits, func(e edit) bool {
		if e.what != "policy" || o.all() {
			return false
		}
		return slices.ContainsFunc(clients, func(other client) bool {
			return other.name != c.name && !slices.Contains(o.Clients, other.name) && other.policy(o) == e.path && other.registered(o)
		})
	})
}

func (c client) registered(o Options) bool {
	text, err := os.ReadFile(c.config(o))
	if err != nil {
		return false
	}
	if c.entries == nil {
		_, _, found, err := findBlock(text)
		return found && err == nil
	}
	return valueAt(text, c.entries(o)[0].path...) != nil
}

func marshal(v any) json.RawMessage {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // only our own values come here
	}
	return json.RawMessage(strings.TrimSpace(b.String()))
}
