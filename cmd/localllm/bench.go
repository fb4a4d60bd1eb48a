package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"localllm/internal/hint"
	"localllm/internal/logfile"
	"localllm/internal/replay"
	"localllm/internal/statsview"
)

func benchCommand() []*cobra.Command {
	var scoring string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "bench", Short: "measure on this machine: the score against a log", GroupID: "look", Args: cobra.NoArgs,
		Example: "  localllm bench --scoring .claude/workflow/delegation-log.jsonl\n  localllm bench --scoring . --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if scoring == "" {
				return &usageError{hint.Add(errors.New("bench: nothing to measure was named"), "localllm bench --scoring LOG")}
			}
			report, err := replayLog(cmd.Context(), scoring)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), report)
			}
			return statsview.Replay(cmd.OutOrStdout(), report, view())
		},
	}
	cmd.Flags().StringVar(&scoring, "scoring", "", "replay this `log`, or this project's, and compare the prior with the learned score")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return []*cobra.Command{cmd}
}

// replayLog replays one file, or all parts of a project's log.
func replayLog(ctx context.Context, path string) (replay.Report, error) {
	info, err := os.Stat(path)
	if err != nil {
		return replay.Report{}, &usageError{fmt.Errorf("--scoring: %w", err)}
	}
	if info.IsDir() {
		r, err := logfile.Open(path, nil).Read(ctx)
		if err != nil {
			return replay.Report{}, err
		}
		defer r.Close()
		return replay.Run(ctx, r.Parts(), path)
	}
	f, err := os.Open(path)
	if err != nil {
		return replay.Report{}, &usageError{fmt.Errorf("--scoring: %w", err)}
	}
	defer f.Close()
	return replay.Run(ctx, []io.Reader{f}, path)
}
