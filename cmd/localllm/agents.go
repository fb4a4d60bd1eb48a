package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"localllm/internal/app"
)

func agentsCommand() []*cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "agents", Short: "list the agent and skill definitions that a task can name", GroupID: "work", Args: cobra.NoArgs,
		Long: `Lists the definitions that «delegate --mode agent --agent NAME» finds: agents and skills of the project, then those of
the home folder, of Claude Code, OpenCode and Codex. Of several with the same name the first counts; the others are
shown as shadowed.`,
		Example: "  localllm agents\n  localllm delegate --mode agent --agent test-writer --task \"Tests for parse.go\" --verify \"go test ./...\"",
		RunE: func(cmd *cobra.Command, _ []string) error {
			theApp, err := open(cmd)
			if err != nil {
				return err
			}
			defer theApp.Close()
			list, err := theApp.Agents("")
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), list)
			}
			return renderAgents(cmd.OutOrStdout(), list)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return []*cobra.Command{cmd}
}

func renderAgents(w io.Writer, list app.AgentList) error {
	if len(list.Agents) == 0 {
		_, err := fmt.Fprintln(w, "no agents: put one into .claude/agents/NAME.md")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "AGENT\tKIND\tSOURCE\tDESCRIPTION")
	for _, a := range list.Agents {
		about := a.Description
		if a.Problem != "" {
			about = "can't be used: " + a.Problem
		}
		if r := []rune(about); len(r) > 80 {
			about = string(r[:79]) + "…"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", a.Name, a.Kind, a.Source, about)
		for _, s := range a.Shadows {
			fmt.Fprintf(t, "\t\t%s\tshadowed\n", s)
		}
	}
	return t.Flush()
}
