package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"localllm/internal/session"
)

// hookCommand is what a client's hooks run. A client adds a hook's output to its conversation, so nothing is printed,
// and a hook that can't do its work must not get in the user's way.
func hookCommand() []*cobra.Command {
	group := &cobra.Command{
		Use: "hook", Short: "what a coding agent's own hooks run, with the hook's JSON on standard input", GroupID: "setup",
		Example: `  echo '{"hook_event_name":"SessionEnd","session_id":"abc","reason":"logout"}' | localllm hook session-end`,
	}
	group.AddCommand(
		&cobra.Command{
			Use: "session-start", Short: "repair what a crash left behind", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				_, bound, err := readHook(cmd)
				if err != nil {
					return err
				}
				theApp, err := open(cmd)
				if err != nil {
					return err
				}
				defer theApp.Close()
				return theApp.Repair(bound.Project)
			},
		},
		&cobra.Command{
			Use: "session-end", Short: "let go of what the session left", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				hook, bound, err := readHook(cmd)
				if err != nil || !hook.Ends() {
					return err
				}
				theApp, err := open(cmd)
				if err != nil {
					return err
				}
				defer theApp.Close()
				n, err := theApp.SessionEnded(cmd.Context(), bound)
				if n > 0 {
					fmt.Fprintf(os.Stderr, "localllm: let go of %d leases (%s)\n", n, time.Now().Format(time.TimeOnly))
				}
				return err
			},
		},
	)
	return []*cobra.Command{group}
}

func readHook(cmd *cobra.Command) (session.Hook, session.Binding, error) {
	hook, err := session.ReadHook(cmd.InOrStdin())
	if err != nil {
		return hook, session.Binding{}, &usageError{err}
	}
	bound, err := session.ForCommand(os.Getenv)
	if err != nil {
		return hook, bound, err
	}
	bound = hook.Apply(bound)
	if bound.Project == "" {
		bound.Project, err = os.Getwd()
	}
	return hook, bound, err
}
