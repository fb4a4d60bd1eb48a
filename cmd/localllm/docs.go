package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"localllm/internal/hint"
	"localllm/internal/request"
)

// docsCommand writes the pages that are made from the code, so that they can't say something else.
func docsCommand() []*cobra.Command {
	var check bool
	var man string
	cmd := &cobra.Command{
		Use: "docs FOLDER", Short: "write cli.md and tool.md, or check that they are up to date", Hidden: true, Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if man != "" {
				if err := os.MkdirAll(man, 0o755); err != nil {
					return fmt.Errorf("writing man pages: %w", err)
				}
				return doc.GenManTree(cmd.Root(), &doc.GenManHeader{Title: "LOCALLLM", Section: "1", Source: "localllm " + version}, man)
			}
			if len(args) == 0 {
				return &usageError{errors.New("docs: the folder is missing")}
			}
			pages := map[string][]byte{"cli.md": cliPage(cmd.Root()), "tool.md": toolPage()}
			for name, text := range pages {
				path := filepath.Join(args[0], name)
				if !check {
					if err := os.WriteFile(path, text, 0o644); err != nil {
						return err
					}
					continue
				}
				if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, text) {
					return hint.New(path+" is not what the code says", "go run ./cmd/localllm docs docs")
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "write nothing: fail where a page is not up to date")
	cmd.Flags().StringVar(&man, "man", "", "write man pages into this folder instead")
	return []*cobra.Command{cmd}
}

const cliExtras = `
Shell completion, man pages, and the variables that it reads:

    source <(localllm completion bash)       # also zsh, fish, powershell
    localllm docs --man ~/.local/share/man/man1

| variable | what it does |
|---|---|
| ` + "`LOCALLLM_HOME`" + ` | one folder for configuration, state and locks, in place of ` + "`~/.config/localllm/config.toml` and `~/.local/state/localllm`" + ` of the user who runs it, whatever ` + "`HOME`" + ` says |
| ` + "`LOCALLLM_LLAMA_SERVER`, `LOCALLLM_OLLAMA`" + ` | path of an engine that is not on the PATH, such as those that ` + "`make engines` puts into `.engines/bin`" + ` |
| ` + "`LOCALLLM_NVML`" + ` | path of NVIDIA's library, where it is not found |
| ` + "`LOCALLLM_AUTO_ENABLE`" + ` and so on | a plain key of the configuration, ` + "`auto_enable`" + ` here, for one run |
| ` + "`OLLAMA_HOST`, `OLLAMA_MODELS`" + ` | as Ollama itself reads them |
| ` + "`NO_COLOR`" + ` | no colours |
`

func cliPage(root *cobra.Command) []byte {
	var b bytes.Buffer
	b.WriteString("# The command line\n\n" + root.Long + "\n\n")
	b.WriteString("Results go to standard output, everything else to standard error. `--json` prints what the tool returns.\n")
	b.WriteString("Exit codes: 0 ok · 1 unexpected · 2 usage · 3 tried and not accomplished · 10 cannot be enabled ·\n")
	b.WriteString("11 engine failed · 12 not enabled · 13 busy with another model · 130 interrupted.\n")
	b.WriteString(cliExtras)
	eachCommand(root, func(c *cobra.Command) {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n", c.CommandPath(), c.Short)
		if c.Long != "" {
			fmt.Fprintf(&b, "\n%s\n", c.Long)
		}
		fmt.Fprintf(&b, "\n    %s\n", c.UseLine())
		if rows := flagRows(c.LocalNonPersistentFlags()); len(rows) > 0 {
			b.WriteString("\n| flag | takes | what it does |\n|---|---|---|\n" + strings.Join(rows, ""))
		}
		if c.Example != "" {
			fmt.Fprintf(&b, "\n```\n%s\n```\n", c.Example)
		}
	})
	return b.Bytes()
}

// eachCommand visits what a user can see, in order.
func eachCommand(c *cobra.Command, visit func(*cobra.Command)) {
	for _, sub := range c.Commands() {
		if sub.Hidden || sub.Name() == "help" || sub.Name() == "completion" {
			continue
		}
		if !sub.HasSubCommands() {
			visit(sub)
		}
		eachCommand(sub, visit)
	}
}

func flagRows(fs *pflag.FlagSet) []string {
	var rows []string
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		takes, usage := pflag.UnquoteUsage(f)
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "[]" {
			usage += " (default " + f.DefValue + ")"
		}
		rows = append(rows, fmt.Sprintf("| `--%s` | %s | %s |\n", f.Name, cell(takes), cell(usage)))
	})
	return rows
}

func toolPage() []byte {
	var b bytes.Buffer
	b.WriteString("# The tool\n\nThe server `local_llm` (started by `localllm mcp`) has one tool, `local_llm`. Its `action` is one of\n")
	fmt.Fprintf(&b, "`%s`. The other fields depend on it; an unknown or wrong field is an error that names it.\n", strings.Join(request.Actions(), "`, `"))
	for _, name := range request.Actions() {
		a := request.Describe(name)
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n| field | takes | what it is |\n|---|---|---|\n", name, upper(a.Summary))
		writeFields(&b, "", a.Fields)
	}
	return b.Bytes()
}

func writeFields(b *bytes.Buffer, prefix string, fields []request.Field) {
	for _, f := range fields {
		what := f.Help
		if f.Required {
			what += " (required)"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", prefix+f.Name, cell(f.Takes()), cell(what))
		if !slices.ContainsFunc(f.Fields, func(sub request.Field) bool { return sub.Name == f.Name }) {
			writeFields(b, prefix+f.Name+"[].", f.Fields)
		}
	}
}

func cell(s string) string { return strings.NewReplacer("|", "\\|", "\n", " ").Replace(s) }

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
