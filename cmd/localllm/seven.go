package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"localllm/internal/app"
	"localllm/internal/request"
	"localllm/internal/session"
	"localllm/internal/statsview"
	"localllm/internal/terminal"
	"localllm/stats"
)

// theActions are the seven commands that mirror the tool.
var theActions = []action{
	{
		name: "capability", short: "what this machine can run, now",
		example: "  localllm capability\n  localllm capability --model qwen3-coder:30b --context 65536\n  localllm capability --watch\n  localllm capability --json",
		extra:   watchFlag, run: watched,
	},
	{
		name: "enable", short: "start, load and warm a model for this session",
		args: cobra.MaximumNArgs(1), takes: "[MODEL]",
		example: "  localllm enable\n  localllm enable qwen3-coder:30b --context 32768\n  localllm enable --persist\n  localllm enable --model qwen3-coder:30b --pull\n  localllm enable --while-pid $$",
		extra:   bindingFlags,
		prepare: func(in any, args []string) error {
			if e := in.(*request.Enable); len(args) == 1 {
				if e.Model != "" || e.LLM != "" {
					return &usageError{fmt.Errorf("the model is given twice: as the argument %q and by a flag", args[0])}
				}
				raw, _ := json.Marshal(args[0])
				if err := e.LLM.UnmarshalJSON(raw); err != nil {
					return &usageError{fmt.Errorf("llm %w", err)}
				}
			}
			return nil
		},
	},
	{
		name: "disable", short: "let go of the model; the last session ends the engine",
		example: "  localllm disable\n  localllm disable --stop-engine=false\n  localllm disable --force",
		extra:   bindingFlags,
	},
	{
		name: "status", short: "what runs, for whom, and how far background tasks are",
		example: "  localllm status\n  localllm status --task-id t-0123456789 --wait-s 60\n  localllm status --json",
		extra:   bindingFlags,
	},
	{
		name: "analyze", short: "is this task one for the local model", args: cobra.ArbitraryArgs, takes: "[TASK]", prepare: theTask,
		example: "  localllm analyze \"Generate Express CRUD routes for User model\" --output-files routes/user.js\n  localllm analyze --input task.json --json",
	},
	{
		name: "delegate", short: "have a task done and proven", args: cobra.ArbitraryArgs, takes: "[TASK]", prepare: theTask,
		example: "  localllm delegate \"a table test for Parse\" --context-files parse.go --output-files parse_test.go --verify \"go test ./...\"\n" +
			"  localllm delegate \"explain the retry logic\" --context-files internal/retry\n  localllm delegate --input batch.json --json",
		extra: diffFlag,
	},
	{
		name: "stats", short: "how delegation went in this project",
		example: "  localllm stats --since 7d\n  localllm stats --by model\n  localllm stats --html report.html\n  localllm stats --csv",
		extra:   pageFlags, run: statsPages,
	},
}

var watch bool

func watchFlag(cmd *cobra.Command, _ *app.Call) {
	cmd.Flags().BoolVar(&watch, "watch", false, "look again every two seconds until interrupted")
}

func watched(cmd *cobra.Command, theApp *app.App, c *call) error {
	for {
		out, err := theApp.Do(app.WithCall(cmd.Context(), c.options), c.action, c.in, nil)
		if err != nil {
			return err
		}
		if watch && terminal.Is(os.Stdout) && !c.json {
			fmt.Fprint(cmd.OutOrStdout(), "\x1b[H\x1b[2J")
		}
		if err := c.print(cmd.OutOrStdout(), out); err != nil || !watch {
			return err
		}
		select {
		case <-cmd.Context().Done():
			return nil
		case <-time.After(2 * time.Second):
		}
	}
}

func bindingFlags(cmd *cobra.Command, options *app.Call) {
	var id string
	var pid int
	cmd.Flags().StringVar(&id, "session", "", "bind to the session with this `id` of the calling client")
	cmd.Flags().IntVar(&pid, "while-pid", 0, "bind to the process with this `pid`: the engine stays as long as it lives")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if id == "" && pid == 0 {
			return nil
		}
		bound, err := session.ForCommand(os.Getenv)
		if pid != 0 {
			bound, err = session.WhilePID(pid)
		}
		if err != nil {
			return &usageError{err}
		}
		if id != "" {
			bound.Session = id
		}
		options.Binding = &bound
		return nil
	}
}

func diffFlag(cmd *cobra.Command, options *app.Call) {
	cmd.Flags().BoolVar(&options.WantDiff, "diff", false, "show what changed as a unified diff")
}

var page struct {
	html string
	csv  bool
}

func pageFlags(cmd *cobra.Command, _ *app.Call) {
	cmd.Flags().StringVar(&page.html, "html", "", "write one self-contained page with charts to this `file`")
	cmd.Flags().BoolVar(&page.csv, "csv", false, "print the groups as CSV")
}

func statsPages(cmd *cobra.Command, theApp *app.App, c *call) error {
	if (page.html != "" && (page.csv || c.json)) || page.csv && c.json {
		return &usageError{errors.New("--json, --html and --csv: give one of them")}
	}
	summary, err := theApp.Stats(app.WithCall(cmd.Context(), c.options), c.in.(*request.Stats))
	if err != nil {
		return err
	}
	switch {
	case page.html != "":
		return writePage(page.html, func(w io.Writer) error { return statsview.HTML(w, *summary) })
	case page.csv:
		return statsview.CSV(cmd.OutOrStdout(), *summary)
	}
	return c.print(cmd.OutOrStdout(), summary)
}

func writePage(path string, write func(io.Writer) error) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return &usageError{fmt.Errorf("--html: %w", err)}
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	if err := write(f); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	fmt.Fprintf(os.Stderr, "wrote %s\n", path)
	return nil
}

func ledgerCommand() []*cobra.Command {
	var in request.Stats
	var asJSON bool
	var last int
	cmd := &cobra.Command{
		Use: "ledger", Short: "list single delegations with their tokens and costs", GroupID: "look", Args: cobra.NoArgs,
		Example: "  localllm ledger\n  localllm ledger --since 7d --json\n  localllm ledger --last 200",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("by") { // the list has no groups
				return &usageError{errors.New("unknown flag: --by (see «localllm ledger --help»)")}
			}
			if last < 0 {
				return &usageError{fmt.Errorf("--last takes a whole number from 0, not %d", last)}
			}
			theApp, err := open(cmd)
			if err != nil {
				return err
			}
			defer theApp.Close()
			records, err := theApp.Ledger(cmd.Context(), &in, last)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), records)
			}
			all := make([]stats.Record, len(records.Delegations))
			for i, r := range records.Delegations {
				all[i] = r.Record
			}
			if err := statsview.Ledger(cmd.OutOrStdout(), all, view()); err != nil {
				return err
			}
			return ledgerSums(cmd.OutOrStdout(), records)
		},
	}
	request.Flags(cmd.Flags(), &in)
	_ = cmd.Flags().MarkHidden("by")
	cmd.Flags().IntVar(&last, "last", 50, "show at most this many, the newest; 0: all")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return []*cobra.Command{cmd}
}

// ledgerSums is the line below the list.
func ledgerSums(w io.Writer, p *app.LedgerPage) error {
	s := p.Sums
	if len(p.Delegations) == 0 {
		return nil
	}
	line := fmt.Sprintf("%d of %d: %d tokens read (%d cached), %d written, %.0f s", len(p.Delegations), p.Total, s.TokensPrompt, s.TokensCached, s.TokensGenerated, s.Seconds)
	if s.Priced > 0 {
		line += fmt.Sprintf(", $%.4f for %d of them at the configured prices", s.CostUSD, s.Priced)
	}
	_, err := fmt.Fprintln(w, line)
	return err
}
