package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"localllm/delegate"
	"localllm/internal/app"
)

// verb is one of the short ways to delegate from a shell: ask, write, summarize.
type verb struct {
	name    string
	profile string
	model   string
	json    bool
}

// envelope is what a verb prints with --json; the names are public.
type envelope struct {
	OK      bool            `json:"ok"`
	Command string          `json:"command"`
	Profile string          `json:"profile,omitempty"`
	Model   string          `json:"model,omitempty"`
	Content string          `json:"content,omitempty"`
	Target  string          `json:"target,omitempty"`
	Status  string          `json:"status,omitempty"`
	Usage   delegate.Tokens `json:"usage"`
	CostUSD *float64        `json:"cost_usd,omitempty"` // where the profile names prices
	Error   *typedError     `json:"error,omitempty"`
}

type typedError struct {
	Type    string `json:"type"` // usage, not_enabled, busy, engine, cannot_enable, interrupted, failed, or the delegation's status
	Message string `json:"message"`
}

func verbCommands() []*cobra.Command {
	return []*cobra.Command{askCommand(), writeCommand(), summarizeCommand()}
}

func (v *verb) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&v.profile, "profile", "", "`name` of the profile to use; default: the enabled engine")
	cmd.Flags().StringVar(&v.model, "model", "", "`model` to ask for")
	cmd.Flags().BoolVar(&v.json, "json", false, "print an envelope with the content, the usage, or the error")
}

func askCommand() *cobra.Command {
	v := verb{name: "ask"}
	var paths []string
	var question string
	cmd := &cobra.Command{
		Use: "ask [QUESTION]", Short: "ask about files", GroupID: "work", Args: cobra.ArbitraryArgs,
		Example: "  localllm ask --paths internal/retry --question \"when does it give up?\"\n  localllm ask \"what is this project for?\" --paths README.md --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			text := strings.TrimSpace(question + " " + strings.Join(args, " "))
			if text == "" {
				return v.fail(cmd, &usageError{errors.New("the question is missing: give --question or write it as an argument")})
			}
			return v.text(cmd, delegate.Task{Task: text, TaskType: "ask", ContextFiles: paths})
		},
	}
	cmd.Flags().StringArrayVar(&paths, "paths", nil, "`path` of a file, folder or glob to read; repeats")
	cmd.Flags().StringVar(&question, "question", "", "the question in `words`")
	v.bind(cmd)
	return cmd
}

func summarizeCommand() *cobra.Command {
	v := verb{name: "summarize"}
	var about string
	cmd := &cobra.Command{
		Use: "summarize [PATH…]", Short: "summarize standard input, or files", GroupID: "work", Args: cobra.ArbitraryArgs,
		Example: "  git log -50 | localllm summarize\n  localllm summarize docs --about \"what changed for users\"",
		RunE: func(cmd *cobra.Command, args []string) error {
			t := delegate.Task{Task: "Summarize the files.", TaskType: "summarize", ContextFiles: args}
			if len(args) == 0 {
				text, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), 256<<10+1))
				switch {
				case err != nil:
					return v.fail(cmd, fmt.Errorf("reading standard input: %w", err))
				case strings.TrimSpace(string(text)) == "":
					return v.fail(cmd, &usageError{errors.New("standard input is empty: pipe a text in, or name files")})
				}
				t.Task = "Summarize this text.\n\n" + string(text)
			}
			if about != "" {
				t.Task = "In view of: " + about + "\n" + t.Task
			}
			return v.text(cmd, t)
		},
	}
	cmd.Flags().StringVar(&about, "about", "", "what the summary is for, in `words`")
	v.bind(cmd)
	return cmd
}

// text runs a task that is answered in text and prints the whole answer.
func (v *verb) text(cmd *cobra.Command, t delegate.Task) error {
	res, err := v.run(cmd, t, false)
	if err != nil {
		return v.fail(cmd, err)
	}
	content, err := wholeText(res)
	if err != nil {
		return v.fail(cmd, err)
	}
	return v.finish(cmd, res, content, "")
}

// wholeText is the answer, of which a result holds only the beginning where it is long.
func wholeText(res *delegate.Result) (string, error) {
	if res.TextFile == "" {
		return res.Text, nil
	}
	whole, err := os.ReadFile(res.TextFile)
	if err != nil {
		return "", fmt.Errorf("reading the answer: %w", err)
	}
	return string(whole), nil
}

func (v *verb) run(cmd *cobra.Command, t delegate.Task, diff bool) (*delegate.Result, error) {
	t.Profile, t.Model = v.profile, v.model
	theApp, err := open(cmd)
	if err != nil {
		return nil, err
	}
	defer theApp.Close()
	report, done := progress()
	defer done()
	out, err := theApp.Do(app.WithCall(cmd.Context(), &app.Call{WantDiff: diff}), "delegate", &t, report)
	if err != nil {
		return nil, err
	}
	res, ok := out.(*delegate.Result)
	if !ok {
		return nil, fmt.Errorf("an answer was expected, not %T", out)
	}
	return res, nil
}

// finish prints the content, or in the envelope, and turns a refusal into exit code 3.
func (v *verb) finish(cmd *cobra.Command, res *delegate.Result, content, target string) error {
	if v.json {
		e := envelope{OK: res.OK, Command: v.name, Profile: v.profile, Model: res.Model, Content: content, Target: target, Status: res.Status, Usage: res.Tokens, CostUSD: res.CostUSD}
		if !res.OK {
			e.Error = &typedError{Type: res.Status, Message: res.Reason}
		}
		if err := printJSON(cmd.OutOrStdout(), e); err != nil {
			return err
		}
	} else if res.OK && content != "" {
		fmt.Fprintln(cmd.OutOrStdout(), strings.TrimRight(content, "\n"))
	}
	if !res.OK {
		if !v.json {
			fmt.Fprintf(os.Stderr, "localllm: error: %s: %s\n", res.Status, res.Reason)
			if res.Hint != "" {
				fmt.Fprintf(os.Stderr, "localllm: hint: %s\n", res.Hint)
			}
		}
		return &notDone{res.Status}
	}
	return nil
}

// fail prints the envelope of an error where that was asked for; the exit code is the error's own.
func (v *verb) fail(cmd *cobra.Command, err error) error {
	if !v.json {
		return err
	}
	names := map[int]string{exitUsage: "usage", exitCannot: "cannot_enable", exitEngine: "engine", exitNotEnabled: "not_enabled", exitBusy: "busy", exitInterrupt: "interrupted"}
	kind := names[exitCode(err)]
	if kind == "" {
		kind = "failed"
	}
	if perr := printJSON(cmd.OutOrStdout(), envelope{Command: v.name, Profile: v.profile, Error: &typedError{Type: kind, Message: err.Error()}}); perr != nil {
		return perr
	}
	return err
}

// writing is what write takes besides.
type writing struct {
	verb
	context    []string
	spec       string
	target     string
	root       string
	verify     string
	diff       bool
	stdout     bool
	force      bool
	keepFences bool
}

func writeCommand() *cobra.Command {
	w := writing{verb: verb{name: "write"}}
	cmd := &cobra.Command{
		Use: "write", Short: "write one file to a specification", GroupID: "work", Args: cobra.NoArgs,
		Example: "  localllm write --context models/user.go --spec \"CRUD handlers for User\" --target handlers/user.go --verify \"go build ./...\"\n" +
			"  localllm write --spec @spec.md --stdout",
		RunE: func(cmd *cobra.Command, _ []string) error { return w.execute(cmd) },
	}
	f := cmd.Flags()
	f.StringArrayVar(&w.context, "context", nil, "`path` of a file, folder or glob to read; repeats")
	f.StringVar(&w.spec, "spec", "", "what to write, in `words`; @FILE reads it from a file")
	f.StringVar(&w.target, "target", "", "`path` of the file to write")
	f.StringVar(&w.root, "target-root", "", "`folder` that the target and the context are relative to")
	f.StringVar(&w.verify, "verify", "", "`command` that proves the file; without it the result is unverified")
	f.BoolVar(&w.diff, "diff", false, "show what changed")
	f.BoolVar(&w.stdout, "stdout", false, "print the file and write nothing")
	f.BoolVar(&w.force, "force", false, "replace a target that exists")
	f.BoolVar(&w.keepFences, "no-strip-fences", false, "with --stdout: print the answer as it came")
	w.bind(cmd)
	return cmd
}

func (w *writing) execute(cmd *cobra.Command) error {
	task, err := w.task()
	if err != nil {
		return w.fail(cmd, err)
	}
	res, err := w.run(cmd, task, w.diff)
	if err != nil {
		return w.fail(cmd, err)
	}
	if w.stdout {
		content, err := wholeText(res)
		if err != nil {
			return w.fail(cmd, err)
		}
		if !w.keepFences {
			if body, ok := delegate.OneBlock(content); ok {
				content = body
			}
		}
		return w.finish(cmd, res, content, "")
	}
	if w.json {
		return w.finish(cmd, res, "", filepath.Join(w.root, w.target))
	}
	if err := render(cmd.OutOrStdout(), res); err != nil {
		return err
	}
	return accomplished(res)
}

func (w *writing) task() (delegate.Task, error) {
	t := delegate.Task{Task: w.spec, TaskType: "generate", ContextFiles: w.context, Workdir: w.root, Profile: w.profile, Model: w.model}
	if name, ok := strings.CutPrefix(w.spec, "@"); ok {
		text, err := os.ReadFile(name)
		if err != nil {
			return t, &usageError{fmt.Errorf("--spec: %w", err)}
		}
		t.Task = string(text)
	}
	switch {
	case strings.TrimSpace(t.Task) == "":
		return t, &usageError{errors.New("--spec is missing: say what to write, or give @FILE")}
	case w.stdout && w.verify != "":
		return t, &usageError{errors.New("--verify needs a file: leave --stdout out")}
	case w.stdout:
		t.Mode, t.Task = delegate.ModeText, t.Task+"\n\nAnswer with the file's whole text in one fenced block, and nothing else."
		return t, nil
	case w.target == "":
		return t, &usageError{errors.New("--target is missing: name the file to write, or use --stdout")}
	}
	dir, err := app.Call{}.Folder(w.root)
	if err != nil {
		return t, err
	}
	if _, err := os.Lstat(filepath.Join(dir, w.target)); err == nil && !w.force {
		return t, &usageError{fmt.Errorf("--target %s exists already: --force replaces it", w.target)}
	}
	t.OutputFiles = []delegate.OutputFile{{Path: filepath.ToSlash(w.target)}}
	if w.verify != "" {
		t.Verify, _ = json.Marshal(w.verify)
	}
	return t, nil
}
