package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"localllm/delegate"
	"localllm/internal/app"
	"localllm/internal/request"
)

// action is how one of the tool's actions looks as a command. Its flags are the tool's fields, and --json prints
// exactly what the tool returns.
type action struct {
	name, short, example string
	takes                string // what its arguments are, in the usage line
	args                 cobra.PositionalArgs
	extra                func(*cobra.Command, *app.Call)             // flags of the command line alone
	prepare              func(in any, args []string) error           // arguments into fields
	run                  func(*cobra.Command, *app.App, *call) error // instead of the plain way; nil: the plain way
}

// call is one invocation on its way.
type call struct {
	action  string
	in      any
	options *app.Call
	json    bool
}

func actionCommands() []*cobra.Command {
	made := make([]*cobra.Command, 0, len(theActions))
	for _, a := range theActions {
		made = append(made, a.command())
	}
	return made
}

func (a action) command() *cobra.Command {
	c := &call{action: a.name, in: request.New(a.name), options: &app.Call{}}
	var input string
	cmd := &cobra.Command{
		Use: strings.TrimSpace(a.name + " " + a.takes), Short: a.short, Example: a.example, GroupID: "main", Args: a.args,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.read(cmd, input); err != nil {
				return err
			}
			if a.prepare != nil {
				if err := a.prepare(c.in, args); err != nil {
					return err
				}
			}
			if err := request.Check(c.in); err != nil {
				return err
			}
			theApp, err := open(cmd)
			if err != nil {
				return err
			}
			defer theApp.Close()
			if a.run != nil {
				return a.run(cmd, theApp, c)
			}
			return c.plain(cmd, theApp)
		},
	}
	if a.args == nil {
		cmd.Args = cobra.NoArgs
	}
	request.Flags(cmd.Flags(), c.in)
	for _, f := range request.Describe(a.name).Fields {
		if f.Flag != "" && f.Enum != nil {
			_ = cmd.RegisterFlagCompletionFunc(f.Flag, cobra.FixedCompletions(f.Enum, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	cmd.Flags().StringVar(&input, "input", "", "read the whole request as JSON from this file, - for standard input")
	cmd.Flags().BoolVar(&c.json, "json", false, "print the result as JSON")
	if a.extra != nil {
		a.extra(cmd, c.options)
	}
	return cmd
}

// read takes the request from --input where that is given; flags that are set as well would be ambiguous.
func (c *call) read(cmd *cobra.Command, input string) error {
	if input == "" {
		return nil
	}
	for _, f := range request.Describe(c.action).Fields {
		if f.Flag != "" && cmd.Flags().Changed(f.Flag) {
			return &usageError{fmt.Errorf("--%s: it can't be given beside --input, which holds the whole request", f.Flag)}
		}
	}
	raw, err := readInput(input, cmd.InOrStdin())
	if err != nil {
		return &usageError{err}
	}
	c.in, err = request.Decode(c.action, raw)
	return err
}

func readInput(path string, stdin io.Reader) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(stdin)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--input: %w", err)
	}
	return raw, nil
}

// plain carries the action out and prints what came of it.
func (c *call) plain(cmd *cobra.Command, theApp *app.App) error {
	report, done := progress()
	out, err := theApp.Do(app.WithCall(cmd.Context(), c.options), c.action, c.in, report)
	done()
	if err != nil {
		return err
	}
	if err := c.print(cmd.OutOrStdout(), out); err != nil {
		return err
	}
	return accomplished(out)
}

func (c *call) print(w io.Writer, out any) error {
	if c.json {
		return printJSON(w, out)
	}
	return render(w, out)
}

// accomplished turns a result that is not ok into exit code 3.
func accomplished(out any) error {
	switch r := out.(type) {
	case *delegate.Result:
		if !r.OK {
			return &notDone{r.Status}
		}
	case *delegate.BatchResult:
		if !r.OK {
			return &notDone{fmt.Sprintf("%d of %d", r.Failed, len(r.Results))}
		}
	}
	return nil
}

func printJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("printing the result: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// theTask lets people write the task as an argument: localllm delegate "add a test".
func theTask(in any, args []string) error {
	text := strings.Join(args, " ")
	if text == "" {
		return nil
	}
	var field *string
	switch t := in.(type) {
	case *delegate.Task:
		field = &t.Task
	case *request.Analyze:
		field = &t.Task
	}
	if *field != "" {
		return &usageError{errors.New("the task is given twice: as an argument and by --task or --input")}
	}
	*field = text
	return nil
}
