package session

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// clients maps the names of programs to what people call them.
var clients = map[string]string{
	"claude": "Claude Code", "claude-code": "Claude Code",
	"codex": "Codex", "opencode": "OpenCode", "gemini": "Gemini CLI", "qwen": "Qwen Code",
	"cursor": "Cursor", "cursor-agent": "Cursor", "Cursor": "Cursor", "cursor-server": "Cursor",
	"code": "VS Code", "Code": "VS Code", "code-insiders": "VS Code", "code-server": "VS Code", "codium": "VSCodium",
	"windsurf": "Windsurf", "zed": "Zed", "zed-editor": "Zed", "goose": "Goose", "aider": "Aider", "crush": "Crush",
	"amp": "Amp", "copilot": "Copilot CLI", "kiro": "Kiro", "droid": "Droid", "mcp-inspector": "MCP Inspector",
}

// scriptHosts run clients that are scripts: there the second argument has the name.
var scriptHosts = []string{"node", "bun", "deno", "python", "python3", "MainThread"}

// wrappers stand between a client and the servers that it starts.
var wrappers = append([]string{"npx", "npm", "npm exec", "uv", "uvx", "pnpm", "yarn", "env", "timeout", "nice", "nohup", "direnv", "mise"}, scriptHosts...)

var shells = []string{"sh", "bash", "zsh", "fish", "dash", "ksh", "tcsh", "csh", "nu", "pwsh", "elvish", "xonsh", "ash", "busybox"}

// clientName is what people call the client that p is, or empty.
func clientName(p process) string {
	if name, ok := clients[p.name]; ok {
		return name
	}
	base := filepath.Base(strings.TrimPrefix(first(p.args), "-"))
	if name, ok := clients[base]; ok {
		return name
	}
	if !slices.Contains(scriptHosts, p.name) && !slices.Contains(scriptHosts, base) {
		return ""
	}
	for _, arg := range p.args[min(1, len(p.args)):] {
		if strings.HasPrefix(arg, "-") {
			continue
		}
		return scriptName(arg)
	}
	return ""
}

// scriptName knows a client by the script that its interpreter runs: …/bin/claude, …/@openai/codex/bin/codex.js,
// …/gemini-cli/dist/index.js.
func scriptName(path string) string {
	base := filepath.Base(path)
	if name, ok := clients[strings.TrimSuffix(base, filepath.Ext(base))]; ok {
		return name
	}
	for _, part := range strings.Split(filepath.ToSlash(path), "/") {
		part = strings.TrimSuffix(part, "-cli")
		if name, ok := clients[part]; ok && strings.Contains(path, "node_modules") {
			return name
		}
	}
	return ""
}

func isShell(p process) bool {
	name := strings.TrimPrefix(p.name, "-")
	return slices.Contains(shells, name) || slices.Contains(shells, filepath.Base(strings.TrimPrefix(first(p.args), "-")))
}

func label(p process) string {
	if name := clientName(p); name != "" {
		return fmt.Sprintf("%s (pid %d)", name, p.identity.PID)
	}
	if isShell(p) {
		return fmt.Sprintf("the shell %s (pid %d)", strings.TrimPrefix(p.name, "-"), p.identity.PID)
	}
	return fmt.Sprintf("%s (pid %d)", p.name, p.identity.PID)
}
