package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"localllm/internal/install"
	"localllm/internal/paths"
	workflow "localllm/plugin"
)

func installCommands() []*cobra.Command {
	return []*cobra.Command{installCommand(), uninstallCommand()}
}

// installFlags are what both directions take.
type installFlags struct {
	clients []string
	scope   string
	dryRun  bool
	json    bool
	print   bool
	status  bool
}

func (f *installFlags) bind(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.clients, "client", nil, "`name` of a client (claude-code, codex, opencode, cursor, vscode) or all; default: those that are on this machine")
	_ = cmd.RegisterFlagCompletionFunc("client", cobra.FixedCompletions(append(install.Clients(), "all"), cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().StringVar(&f.scope, "scope", install.User, "user or project: for all of your projects, or for this folder")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "say what would change and change nothing")
	cmd.Flags().BoolVar(&f.json, "json", false, "print the result as JSON")
}

func (f *installFlags) options() (install.Options, error) {
	o := install.Options{Clients: f.clients, Scope: f.scope, DryRun: f.dryRun || f.print, Plugin: workflow.Files, Getenv: os.Getenv}
	for _, name := range f.clients {
		if known := append(install.Clients(), "all"); !slices.Contains(known, name) {
			return o, &usageError{fmt.Errorf("--client %s: it takes %s", name, strings.Join(known, ", "))}
		}
	}
	if f.scope != install.User && f.scope != install.Project {
		return o, &usageError{fmt.Errorf("--scope %s: it takes %s or %s", f.scope, install.User, install.Project)}
	}
	exe, err := os.Executable()
	if err != nil {
		return o, fmt.Errorf("finding this program: %w", err)
	}
	if o.Binary, err = filepath.EvalSymlinks(exe); err != nil {
		return o, fmt.Errorf("finding this program: %w", err)
	}
	if o.Home, err = os.UserHomeDir(); err != nil {
		return o, fmt.Errorf("finding your home folder: %w", err)
	}
	if o.Project, err = os.Getwd(); err != nil {
		return o, fmt.Errorf("finding the project's folder: %w", err)
	}
	layout, err := paths.Find()
	o.State = layout.State
	return o, err
}

func installCommand() *cobra.Command {
	var f installFlags
	cmd := &cobra.Command{
		Use: "install", Short: "make the tool known to your coding agents", GroupID: "setup", Args: cobra.NoArgs,
		Example: "  localllm install --client claude-code\n  localllm install --dry-run\n  localllm install --status\n  localllm install --client codex --print",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.options()
			if err != nil {
				return err
			}
			switch {
			case f.print:
				text, err := install.Print(o)
				if err == nil {
					_, err = io.WriteString(cmd.OutOrStdout(), text)
				}
				return err
			case f.status:
				states, err := install.Status(cmd.Context(), o)
				if err != nil {
					return err
				}
				return f.show(cmd, states, func(t io.Writer) { stateRows(t, states) })
			}
			changes, err := install.Install(o)
			if err := f.changes(cmd, changes, err); err != nil || f.dryRun || f.json {
				return err
			}
			next(cmd.ErrOrStderr(), changes)
			return nil
		},
	}
	f.bind(cmd)
	cmd.Flags().BoolVar(&f.print, "print", false, "print what to put in by hand")
	cmd.Flags().BoolVar(&f.status, "status", false, "show what is installed where, and whether it answers")
	return cmd
}

// next says what to do after an installation: clients read their configuration when they start.
func next(w io.Writer, changes []install.Change) {
	done := func(c install.Change) bool { return c.Action == "created" || c.Action == "modified" }
	switch i := slices.IndexFunc(changes, done); {
	case i < 0:
	case slices.ContainsFunc(changes, func(c install.Change) bool { return done(c) && c.Client == install.ClaudeCode }):
		fmt.Fprintln(w, "Start the client anew. In Claude Code: /workflow:implement <feature> llm=true, and /workflow:llm for what runs.")
	default:
		fmt.Fprintln(w, "Start the client anew; it then has the tool local_llm.")
	}
}

func uninstallCommand() *cobra.Command {
	var f installFlags
	cmd := &cobra.Command{
		Use: "uninstall", Short: "take it out of your coding agents again", GroupID: "setup", Args: cobra.NoArgs,
		Example: "  localllm uninstall --client all\n  localllm uninstall --client codex --dry-run",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.options()
			if err != nil {
				return err
			}
			changes, err := install.Uninstall(o)
			return f.changes(cmd, changes, err)
		},
	}
	f.bind(cmd)
	return cmd
}

// changes shows what was done, also where some client's files could not be understood.
func (f *installFlags) changes(cmd *cobra.Command, changes []install.Change, failed error) error {
	if changes == nil {
		changes = []install.Change{}
	}
	err := f.show(cmd, changes, func(t io.Writer) {
		for _, c := range changes {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", c.Client, c.What, c.Action, c.Path, c.Detail)
		}
	})
	if failed != nil {
		return failed
	}
	return err
}

func (f *installFlags) show(cmd *cobra.Command, v any, rows func(io.Writer)) error {
	if f.json {
		return printJSON(cmd.OutOrStdout(), v)
	}
	t := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	rows(t)
	return t.Flush()
}

func stateRows(t io.Writer, states []install.State) {
	fmt.Fprintln(t, "CLIENT\tHERE\tSERVER\tPOLICY\tANSWERS\t")
	for _, s := range states {
		answers := "–"
		if s.Answers != nil {
			answers = yesNo(*s.Answers)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", s.Client, yesNo(s.Found), s.Server, s.Policy, answers, s.Detail)
	}
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
