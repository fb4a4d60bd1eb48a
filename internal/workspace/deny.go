package workspace

import (
	"path"
	"strings"

	"localllm/internal/secretfile"
)

// Files that some program runs, or obeys, by itself: writing one is running code later, with more rights than a verify.
// Patterns are matched without regard to case against the path and, where they have no slash, against its last part;
// one that ends in a slash covers all below that folder, wherever it is.
var autoRun = []string{
	".git/", ".hg/", ".svn/", ".jj/", ".gitmodules", ".gitattributes", ".gitconfig", ".husky/", ".githooks/", "lefthook.yml", "lefthook.yaml", ".pre-commit-config.yaml", ".pre-commit-config.yml",
	".mcp.json", "mcp.json", ".claude/settings*.json", ".claude/hooks/", ".claude/commands/", ".claude/agents/", ".claude/skills/", ".claude-plugin/", "claude.md", "claude.local.md", "agents.md", "gemini.md",
	".cursor/", ".cursorrules", ".windsurf/", ".windsurfrules", ".codex/", ".gemini/", ".continue/", ".aider.conf.yml", ".roo/", ".kiro/",
	".github/workflows/", ".github/actions/", ".gitlab-ci.yml", ".circleci/", ".travis.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml", "jenkinsfile", ".buildkite/", ".drone.yml", ".woodpecker/", ".woodpecker.yml", ".forgejo/", ".gitea/",
	".vscode/", ".idea/", ".zed/", ".fleet/", ".vs/", ".devcontainer/", ".devcontainer.json", ".exrc", ".nvimrc", ".nvim.lua", ".vimrc", ".lvimrc", ".dir-locals.el", ".emacs", ".sublime-project", "*.code-workspace", "*.sublime-project",
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".inputrc", ".envrc", ".mise.toml", "mise.toml", ".tool-versions", ".config/fish/", ".config/mise/",
	".ssh/", ".gnupg/", ".config/autostart/", ".config/systemd/", "library/launchagents/", "authorized_keys", "crontab",
	".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", ".cargo/config", ".cargo/config.toml", ".mvn/", "gradle/wrapper/", "*.pth", "sitecustomize.py", "usercustomize.py", ".gdbinit", ".lldbinit", ".pypirc", "pip.conf",
}

// AutoRun says whether rel, relative with slashes, is a file that runs by itself.
func AutoRun(rel string) bool {
	rel = strings.ToLower(rel)
	whole := "/" + rel + "/"
	name := path.Base(rel)
	for _, p := range autoRun {
		switch {
		case strings.HasSuffix(p, "/"):
			if strings.Contains(whole, "/"+p) {
				return true
			}
		case strings.Contains(p, "/"):
			dir, last := path.Split(p)
			ok, _ := path.Match(last, name)
			if ok && strings.HasSuffix("/"+path.Dir(rel)+"/", "/"+dir) {
				return true
			}
		default:
			if ok, _ := path.Match(p, name); ok {
				return true
			}
		}
	}
	return false
}

// Secret says whether rel, relative with slashes, is by its name a file of secrets.
func Secret(rel string) bool { return secretfile.Name(rel) }
