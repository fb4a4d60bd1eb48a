package install

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"
)

// Policy is what goes into an instruction file.
const Policy = `## Local model

The tool local_llm can have bounded work done by a model on this machine and prove it with a command of yours.
When a local model is enabled (its action "status" says so) or the user says llm=true:

- Before a step that writes one or two files, ask "analyze"; over 0.6 hand the step over with "delegate", under 0.4 do it yourself.
- Give context_files, output_files, and a verify command that fails now and passes when the work is right. Put no file bodies into the task.
- Accept what comes back "proven" without reading it again; read "unproven" and "unverified"; on ok:false do it yourself.
- Architecture, security and work across many files stay with you. Never enable a model unasked.`

func jsonEdit(path string, entries []entry) edit {
	return edit{what: "server", path: path,
		set: func(text []byte) ([]byte, error) {
			return withoutMark(text, func(text []byte) (_ []byte, err error) {
				for _, e := range entries {
					if text, err = setMember(text, e.path, marshal(e.value)); err != nil {
						return nil, err
					}
				}
				return text, nil
			})
		},
		cut: func(text, before []byte) ([]byte, error) {
			return withoutMark(text, func(text []byte) (_ []byte, err error) {
				if len(bytes.TrimSpace(text)) == 0 {
					return text, nil
				}
				before := bytes.TrimPrefix(before, byteOrderMark)
				for _, e := range entries {
					had := len(text)
					if text, err = removeMember(text, e.path); err != nil {
						return nil, err
					}
					// The object around it goes too, if it came with it.
					if len(text) != had && emptyObject(text, e.path[0]) && before != nil && valueAt(before, e.path[0]) == nil {
						if text, err = removeMember(text, e.path[:1]); err != nil {
							return nil, err
						}
					}
				}
				return text, nil
			})
		}}
}

// marketplaceEdit takes out what Claude Code has noted by itself of the marketplace that we declared: the folder that it
// points to is removed too, and the client would list it for ever.
func marketplaceEdit(o Options) edit {
	return edit{what: "plugin", path: filepath.Join(claudeDir(o), "plugins", "known_marketplaces.json"),
		set: func([]byte) ([]byte, error) { return nil, errors.ErrUnsupported },
		cut: func(text, _ []byte) ([]byte, error) {
			if !bytes.Equal(valueAt(text, "localllm", "source", "path"), marshal(pluginDir(o))) {
				return text, nil
			}
			return removeMember(text, []string{"localllm"})
		}}
}

var (
	errByHand = errors.New("it has a [mcp_servers." + serverName + "] of somebody else's making")
	errInline = errors.New("its mcp_servers is an inline table, which can't take another table")

	// The TOML library extends an inline table without a word; the format, and Codex, forbid it. Compiled at first use,
	// like marker.
	inline = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^[ \t]*["']?mcp_servers["']?[ \t]*=`) })
)

func tomlEdit(path string, o Options) edit {
	var body strings.Builder
	fmt.Fprintf(&body, "[mcp_servers.%s]\ncommand = %s\nargs = [\"mcp\"]\n", serverName, quoteTOML(o.Binary))
	// Codex gives up on a call at this limit, progress or not; a long delegation goes to the background before it.
	body.WriteString("tool_timeout_sec = 3600\n")
	if env := o.environment(); len(env) > 0 {
		fmt.Fprintf(&body, "\n[mcp_servers.%s.env]\n", serverName)
		for _, name := range carried {
			if v := env[name]; v != "" {
				fmt.Fprintf(&body, "%s = %s\n", name, quoteTOML(v))
			}
		}
	}
	return edit{what: "server", path: path,
		set: func(text []byte) ([]byte, error) {
			return withoutMark(text, func(text []byte) ([]byte, error) {
				bare, err := removeBlock(text)
				if err != nil {
					return nil, err
				}
				var config struct {
					Servers map[string]any `toml:"mcp_servers"`
				}
				if err := toml.Unmarshal(bare, &config); err != nil {
					return nil, fmt.Errorf("it is not valid TOML: %w", err)
				}
				if _, ok := config.Servers[serverName]; ok {
					return nil, errByHand
				}
				if inline().Match(bare) {
					return nil, errInline
				}
				out, err := setBlock(text, hash, body.String())
				if err != nil {
					return nil, err
				}
				if err := toml.Unmarshal(out, &config); err != nil {
					return nil, fmt.Errorf("it can't take another table: %w", err)
				}
				return out, nil
			})
		},
		cut: func(text, _ []byte) ([]byte, error) { return removeBlock(text) }}
}

// quoteTOML writes a basic string; JSON's escapes are all valid in one, but for the control character DEL.
func quoteTOML(s string) string {
	return strings.ReplaceAll(string(marshal(s)), "\x7f", `\u007f`)
}

func policyEdit(path string) edit {
	return edit{what: "policy", path: path,
		set: func(text []byte) ([]byte, error) { return setBlock(text, markdown, Policy) },
		cut: func(text, _ []byte) ([]byte, error) { return removeBlock(text) }}
}

// pluginFiles are the marketplace's files with the program's own path and environment in them.
func pluginFiles(o Options) (map[string][]byte, error) {
	files := map[string][]byte{}
	if o.Plugin == nil {
		return nil, errors.New("the plugin's files are missing from this build")
	}
	err := fs.WalkDir(o.Plugin, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(o.Plugin, name)
		switch {
		case err != nil:
			return err
		case strings.HasSuffix(name, ".mcp.json"):
			data, err = setMember(data, []string{"mcpServers", serverName}, marshal(plainServer("", o)))
		case strings.HasSuffix(name, "hooks.json"):
			program := bytes.TrimSuffix(marshal(shellQuote(o.Binary)), []byte(`"`))
			data = bytes.ReplaceAll(data, []byte(`"localllm hook`), append(program, " hook"...))
		}
		files[name] = data
		return err
	})
	return files, err
}

// shellQuote leaves a plain path as it is.
func shellQuote(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
