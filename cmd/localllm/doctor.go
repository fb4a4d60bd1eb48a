package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"localllm/internal/app"
	"localllm/internal/install"
	"localllm/internal/terminal"
)

func doctorCommand() []*cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "check every part and say how to mend it", GroupID: "look", Args: cobra.NoArgs,
		Example: "  localllm doctor\n  localllm doctor --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			theApp, err := open(cmd)
			if err != nil {
				return err
			}
			defer theApp.Close()
			checks := append(theApp.Doctor(cmd.Context()), checkClients(cmd)...)
			broken := 0
			for _, c := range checks {
				if c.State == app.CheckBroken {
					broken++
				}
			}
			if asJSON {
				err = printJSON(cmd.OutOrStdout(), map[string]any{"ok": broken == 0, "checks": checks})
			} else {
				showChecks(cmd, checks)
			}
			if err == nil && broken > 0 {
				return &notDone{fmt.Sprintf("%d parts are broken", broken)}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return []*cobra.Command{cmd}
}

func checkClients(cmd *cobra.Command) []app.Check {
	f := installFlags{clients: []string{"all"}, scope: install.User}
	o, err := f.options()
	if err != nil {
		return []app.Check{{Part: "clients", State: app.CheckBroken, Detail: err.Error()}}
	}
	states, err := install.Status(cmd.Context(), o)
	if err != nil {
		return []app.Check{{Part: "clients", State: app.CheckBroken, Detail: err.Error()}}
	}
	var checks []app.Check
	for _, s := range states {
		if !s.Found {
			continue
		}
		c := app.Check{Part: s.Client, State: app.CheckOK, Detail: s.Server}
		switch {
		case s.Server != "installed":
			c.State, c.Mend = app.CheckWarning, []string{"localllm install --client " + s.Client}
		case s.Answers != nil && !*s.Answers:
			c.State, c.Detail = app.CheckBroken, "installed and does not answer: "+s.Detail
		}
		checks = append(checks, c)
	}
	return checks
}

func showChecks(cmd *cobra.Command, checks []app.Check) {
	colour := terminal.Colour(os.Stdout)
	marks := map[string]string{app.CheckOK: "ok     ", app.CheckWarning: "warning", app.CheckBroken: "broken "}
	codes := map[string]string{app.CheckOK: "32", app.CheckWarning: "33", app.CheckBroken: "31"}
	for _, c := range checks {
		mark := marks[c.State]
		if colour {
			mark = "\x1b[" + codes[c.State] + "m" + mark + "\x1b[0m"
		}
		lines := []string{c.Detail}
		if terminal.Is(os.Stdout) {
			lines = terminal.Wrap(c.Detail, terminal.Width(os.Stdout)-25)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s  %-15s %s\n", mark, c.Part, strings.Join(lines, "\n"+strings.Repeat(" ", 25)))
		for _, m := range c.Mend {
			fmt.Fprintf(cmd.OutOrStdout(), "                         → %s\n", m)
		}
	}
}
