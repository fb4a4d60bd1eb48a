package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"localllm/internal/app"
	"localllm/internal/hint"
	"localllm/internal/terminal"
)

const longHelp = `localllm lets a coding agent hand bounded work (boilerplate, tests, refactors, summaries) to a model on this
machine's own GPU. It finds what fits in the memory that is free now, starts and shares the engine, proves each
result with your own verify command, puts everything back when that fails, and lets go of the GPU when the coding
session ends, however it ends.`

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "localllm",
		Short:         "a model on your own GPU for the bounded work of a coding agent",
		Long:          longHelp,
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Example: `  localllm capability                      what this machine can run, now
  localllm enable                          start the best model that fits, for this shell
  localllm delegate --task "CRUD routes for User" --output-files routes.go --verify "go build ./..."
  localllm stats --since 7d                how delegation went
  localllm install --client claude-code    make it known to your coding agent`,
	}
	root.SetVersionTemplate("localllm {{.Version}} (" + madeFrom() + ")\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{fmt.Errorf("%w (see «%s --help»)", err, cmd.CommandPath())}
	})
	root.AddGroup(
		&cobra.Group{ID: "main", Title: "The seven actions:"},
		&cobra.Group{ID: "work", Title: "Delegating from a shell:"},
		&cobra.Group{ID: "setup", Title: "Setting up:"},
		&cobra.Group{ID: "look", Title: "Looking closer:"},
	)
	for _, add := range commands() {
		root.AddCommand(add()...)
	}
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.GroupID = "setup"
		}
	}
	strict(root)
	return root
}

// strict makes a usage error of arguments that a command can't take. The library says so in an error of its own, and
// says nothing at all where a group of commands is given a name that it does not have.
func strict(cmd *cobra.Command) {
	if !cmd.Runnable() {
		cmd.Args, cmd.DisableFlagsInUseLine = noSuchCommand, true
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if err != nil && !cmd.HasSubCommands() && len(args) > 0 && strings.HasPrefix(err.Error(), "unknown command") {
				err = fmt.Errorf("%s takes no argument %q", cmd.CommandPath(), args[0])
			}
			if err == nil {
				err = cmd.ValidateFlagGroups() // the library does so too, and calls it no usage error
			}
			if err != nil {
				return &usageError{fmt.Errorf("%w (see «%s --help»)", err, cmd.CommandPath())}
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		strict(sub)
	}
}

func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return hint.Add(err, fmt.Sprintf("did you mean «%s %s»?", cmd.CommandPath(), near[0]))
	}
	return err
}

// commands lists every command's constructor; each file of this package holds one or a few that belong together.
// A function, because demo runs commands itself.
func commands() []func() []*cobra.Command {
	return []func() []*cobra.Command{
		actionCommands,
		serverCommands,
		verbCommands,
		installCommands,
		setupCommand,
		doctorCommand,
		benchCommand,
		hookCommand,
		demoCommand,
		tasksCommand,
		profilesCommand,
		agentsCommand,
		ledgerCommand,
		versionCommand,
		docsCommand,
	}
}

// open wires the application for one command.
func open(cmd *cobra.Command) (*app.App, error) {
	return app.Open(app.Options{
		Version: version,
		Warn:    func(s string) { fmt.Fprintf(os.Stderr, "localllm: warning: %s\n", s) },
	})
}

// progress shows long work on standard error. The returned func ends the showing.
func progress() (func(app.Progress), func()) {
	p := terminal.NewProgress(os.Stderr)
	return func(s app.Progress) { p.Show(app.Step(s)) }, p.Close
}

// work is what a reporting command does; its result is shown, or printed as JSON.
type work func(*cobra.Command, *app.App, []string) (any, error)

// reportCommand is a command that reports. verdict turns a result that was shown into the command's own error.
func reportCommand(use, short string, args cobra.PositionalArgs, run work, show func(io.Writer, any) error, verdict func(*cobra.Command, any) error) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: use, Short: short, Args: args,
		RunE: func(cmd *cobra.Command, args []string) error {
			theApp, err := open(cmd)
			if err != nil {
				return err
			}
			defer theApp.Close()
			out, err := run(cmd, theApp, args)
			if err != nil {
				return err
			}
			if asJSON {
				show = printJSON
			}
			if err := show(cmd.OutOrStdout(), out); err != nil {
				return err
			}
			return verdict(cmd, out)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return cmd
}
