package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"localllm/internal/app"
	"localllm/internal/mcpserver"
	"localllm/internal/session"
)

func serverCommands() []*cobra.Command {
	var addr string
	mcp := &cobra.Command{
		Use: "mcp", Short: "serve the tool to a coding agent over MCP", GroupID: "setup", Args: cobra.NoArgs,
		Long: "Started by the coding agent itself, over standard input and output. «localllm install» registers it there.\n" +
			"With --http it serves clients that need that, on a loopback address only; the project is then the folder it was\n" +
			"started in, or CLAUDE_PROJECT_DIR.",
		Example: "  localllm mcp\n  localllm mcp --http 127.0.0.1:8765",
		RunE: func(cmd *cobra.Command, _ []string) error {
			theApp, err := open(cmd)
			if err != nil {
				return err
			}
			defer theApp.Close()
			conf := mcpserver.Config{Version: version, Actions: tool{theApp}, Leaving: theApp.Close}
			if addr != "" {
				return mcpserver.HTTP(cmd.Context(), conf, addr, func(url string) { fmt.Fprintf(os.Stderr, "serving %s\n", url) })
			}
			if bound, err := session.ForServer(os.Getenv); err == nil {
				theApp.TakeOver(cmd.Context(), bound)
			}
			return mcpserver.Stdio(cmd.Context(), conf)
		},
	}
	mcp.Flags().StringVar(&addr, "http", "", "serve HTTP on this loopback `address` instead")

	var spawn bool
	runner := &cobra.Command{
		Use: "task-runner ID", Short: "carry out one background task", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if spawn {
				return app.SpawnRunner(args[0])
			}
			theApp, err := open(cmd)
			if err != nil {
				return err
			}
			defer theApp.Close()
			return theApp.RunTask(cmd.Context(), args[0], resultCode)
		},
	}
	runner.Flags().BoolVar(&spawn, "spawn", false, "start it as a process of its own and return")
	return []*cobra.Command{mcp, runner}
}

// resultCode is the exit code that the command line would have ended with.
func resultCode(out any, err error) int {
	if err == nil {
		err = accomplished(out)
	}
	if err == nil {
		return exitOK
	}
	return exitCode(err)
}

// tool lets MCP clients call the application.
type tool struct{ app *app.App }

func (t tool) Do(ctx context.Context, action string, in any, report func(mcpserver.Progress)) (any, error) {
	call := &app.Call{Held: true, Patient: mcpserver.HasProgress(ctx), Project: mcpserver.Project(ctx).Dir}
	return t.app.Do(app.WithCall(ctx, call), action, in, func(p app.Progress) {
		report(app.Step(p))
	})
}
