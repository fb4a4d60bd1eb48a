package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"localllm/internal/app"
	"localllm/internal/tasks"
)

func tasksCommand() []*cobra.Command {
	group := &cobra.Command{
		Use: "tasks", Short: "list, show, wait for and cancel background tasks", GroupID: "work",
		Example: "  localllm tasks list\n  localllm tasks wait t-0123456789 --wait-s 600\n  localllm tasks cancel t-0123456789",
	}
	group.AddCommand(
		taskCommand("list", "list background tasks, the newest first", cobra.NoArgs, func(_ *cobra.Command, a *app.App, _ []string) (any, error) {
			all, err := a.Tasks()
			if all == nil {
				all = []tasks.State{}
			}
			return map[string]any{"tasks": all}, err
		}),
		taskCommand("show ID", "show how far a task is, or its result", cobra.ExactArgs(1), func(cmd *cobra.Command, a *app.App, args []string) (any, error) {
			return a.TaskOf(cmd.Context(), args[0], 0)
		}),
		waitCommand(),
		taskCommand("cancel ID", "end a task; what it had written is put back", cobra.ExactArgs(1), func(cmd *cobra.Command, a *app.App, args []string) (any, error) {
			return a.CancelTask(cmd.Context(), args[0], 10*time.Second)
		}),
	)
	return []*cobra.Command{group}
}

func waitCommand() *cobra.Command {
	var seconds int
	cmd := taskCommand("wait ID", "wait for a task's end and show its result", cobra.ExactArgs(1), func(cmd *cobra.Command, a *app.App, args []string) (any, error) {
		if seconds < 0 {
			return nil, &usageError{fmt.Errorf("--wait-s takes a whole number from 0, not %d", seconds)}
		}
		return a.TaskOf(cmd.Context(), args[0], time.Duration(seconds)*time.Second)
	})
	cmd.Flags().IntVar(&seconds, "wait-s", 1800, "`seconds` to wait at most")
	return cmd
}

func taskCommand(use, short string, args cobra.PositionalArgs, run work) *cobra.Command {
	return reportCommand(use, short, args, run, render, func(cmd *cobra.Command, out any) error {
		if st, ok := out.(tasks.State); ok && st.Ended() && !accomplishedTask(cmd, st) {
			return &notDone{st.State}
		}
		return nil
	})
}

// A cancelled task is what «cancel» was called for; to all others it is one that was not accomplished.
func accomplishedTask(cmd *cobra.Command, st tasks.State) bool {
	return st.State == tasks.Done || st.State == tasks.Cancelled && cmd.Name() == "cancel"
}

func renderTasks(w io.Writer, all []tasks.State) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "no background tasks")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TASK\tSTATE\tSECONDS\tPHASE\tWHAT")
	for _, s := range all {
		fmt.Fprintf(t, "%s\t%s\t%.0f\t%s\t%s\n", s.ID, s.State, s.Seconds, s.Phase, s.Title)
	}
	return t.Flush()
}
