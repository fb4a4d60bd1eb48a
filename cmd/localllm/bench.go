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
	var trial modelTrial
	cmd := &cobra.Command{
		Use: "bench", Short: "measure on this machine: a model by built-in tasks, the score by a log", GroupID: "look", Args: cobra.NoArgs,
		Long: "With --model it enables the model and has it do a built-in set of small tasks, each in a folder of its own and each\n" +
			"proven by a check that is red before. With --scoring it replays a delegation log. The tasks' checks run on this machine.",
		Example: "  localllm bench --model qwen2.5-coder:7b\n  localllm bench --model ./model.gguf --tasks 'go-*' --json\n" +
			"  localllm bench --scoring .claude/workflow/delegation-log.jsonl\n  localllm bench --scoring . --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case trial.model != "" && scoring == "":
				report, err := trial.run(cmd)
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(cmd.OutOrStdout(), report)
				}
				return report.Write(cmd.OutOrStdout())
			case scoring == "":
				return &usageError{hint.Add(errors.New("bench: nothing to measure was named"), "localllm bench --model MODEL", "localllm bench --scoring LOG")}
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
	cmd.Flags().StringVar(&trial.model, "model", "", "have this `model` do the built-in tasks")
	cmd.Flags().StringVar(&trial.only, "tasks", "*", "only the tasks whose name matches this `pattern`")
	cmd.Flags().IntVar(&trial.context, "context", 8192, "`tokens` of window for the model")
	cmd.Flags().IntVar(&trial.attempts, "attempts", 3, "`number` of answers to try for each task, at most")
	cmd.Flags().BoolVar(&trial.pull, "pull", false, "download the model if it is not installed")
	cmd.Flags().StringVar(&scoring, "scoring", "", "replay this `log`, or this project's, and compare the prior with the learned score")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	cmd.MarkFlagsMutuallyExclusive("model", "scoring")
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
