package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"localllm/internal/app"
	"localllm/internal/hint"
	"localllm/internal/setup"
	"localllm/internal/terminal"
	"localllm/lifecycle"
)

func setupCommand() []*cobra.Command {
	var yes, remove, asJSON bool
	o := setup.Options{Engine: lifecycle.LlamaServer, Env: os.Environ()}
	cmd := &cobra.Command{
		Use: "setup", Short: "install an engine, if you have none yet", GroupID: "setup", Args: cobra.NoArgs,
		Long: "Says what it would do, and does it after a yes: by your platform's own package manager where that carries the\n" +
			"engine, else by the engine's official release, checked against its published SHA-256, in a folder of its own.\n" +
			"It never becomes root by itself, goes on where it was interrupted, and --remove undoes it.",
		Example: "  localllm setup\n  localllm setup --engine ollama --yes\n  localllm setup --remove",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Engine != lifecycle.LlamaServer && o.Engine != lifecycle.Ollama {
				return &usageError{fmt.Errorf("--engine %s: it takes %s or %s", o.Engine, lifecycle.LlamaServer, lifecycle.Ollama)}
			}
			if yes && remove {
				return &usageError{errors.New("--yes and --remove can't be given together")}
			}
			report, done := progress()
			defer done()
			o.Report = func(p lifecycle.Progress) { report(app.Progress(p)) }
			if remove {
				return removeEngine(cmd, o, asJSON)
			}
			plan, err := setup.Prepare(cmd.Context(), o)
			if err != nil {
				return err
			}
			done()
			if asJSON && !yes {
				return printJSON(cmd.OutOrStdout(), plan)
			}
			for _, line := range plan.Words() {
				fmt.Fprintln(os.Stderr, line)
			}
			if plan.Present != "" && !asJSON {
				return nil
			}
			if !yes {
				if err := confirm(cmd); err != nil {
					return err
				}
			}
			return installEngine(cmd, o, plan, asJSON, done)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Engine, "engine", o.Engine, "llama-server or ollama")
	f.StringVar(&o.Via, "via", "", "a package manager's `name`, or release; default: what suits this machine")
	f.StringVar(&o.GPU, "gpu", "", "`vendor` of the GPU: picks among a release's builds")
	f.BoolVar(&yes, "yes", false, "do it without asking")
	f.BoolVar(&remove, "remove", false, "undo what setup has installed; models stay")
	f.BoolVar(&asJSON, "json", false, "print the plan, or with --yes the result, as JSON")
	return []*cobra.Command{cmd}
}

func installEngine(cmd *cobra.Command, o setup.Options, plan setup.Plan, asJSON bool, done func()) error {
	path, err := setup.Do(cmd.Context(), o, plan)
	done() // before a result is printed where the progress stands
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(cmd.OutOrStdout(), map[string]any{"installed": path, "plan": plan})
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is installed: %s\n", o.Engine, path)
	return err
}

func removeEngine(cmd *cobra.Command, o setup.Options, asJSON bool) error {
	removed, err := setup.Remove(cmd.Context(), o)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(cmd.OutOrStdout(), removed)
	}
	switch {
	case removed.Folder != "":
		fmt.Fprintf(cmd.OutOrStdout(), "removed %s\n", removed.Folder)
	case len(removed.Command) > 0:
		fmt.Fprintf(cmd.OutOrStdout(), "removed by %s\n", strings.Join(removed.Command, " "))
	default:
		fmt.Fprintln(cmd.OutOrStdout(), "setup has installed nothing here")
	}
	return nil
}

// confirm asks once, where there is somebody to ask.
func confirm(cmd *cobra.Command) error {
	if !terminal.Is(os.Stdin) {
		return &usageError{hint.New("nobody is there to say yes", "localllm setup --yes does it without asking")}
	}
	fmt.Fprint(os.Stderr, "Do it? [y/N] ")
	line, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if err != nil || !strings.HasPrefix(strings.ToLower(strings.TrimSpace(line)), "y") {
		return errors.New("nothing was changed")
	}
	return nil
}
