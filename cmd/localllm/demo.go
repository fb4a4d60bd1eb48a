package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"localllm/internal/hint"
	"localllm/internal/paths"
	"localllm/internal/practice"
	"localllm/internal/scratch"
)

//go:embed demo
var demoFiles embed.FS

const demoIntro = `This runs the whole way on this machine, in a folder of its own: probe, enable, analyze, delegate, prove, stats, let go.
`

const demoPractice = `The model is a practice model: 22 MB, made just now, and its answers are scripted, the first one wrong on
purpose. Everything else is real: the probe, the engine and its cache, the prompts, the compiler that proves, the log.
With a real model: make demo MODEL=qwen2.5-coder:7b   (PULL=1 downloads it first)
`

type demo struct {
	cmd     *cobra.Command
	out     io.Writer
	folder  string
	model   string
	pull    bool
	failure error
}

func demoCommand() []*cobra.Command {
	var d demo
	cmd := &cobra.Command{
		Use: "demo", Short: "show the whole way on this machine, with a practice model or your own", GroupID: "setup", Args: cobra.NoArgs,
		Example: "  localllm demo\n  localllm demo --model qwen2.5-coder:7b --pull",
		RunE: func(cmd *cobra.Command, _ []string) error {
			d.cmd, d.out = cmd, cmd.OutOrStdout()
			return d.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&d.model, "model", "", "use this real `model` instead of the practice model")
	cmd.Flags().BoolVar(&d.pull, "pull", false, "download the model if it is not installed")
	return []*cobra.Command{cmd}
}

func (d *demo) run(ctx context.Context) (err error) {
	if _, err := exec.LookPath("go"); err != nil {
		return hint.New("the demo proves a Go file, and there is no go command on PATH", "install Go, or go straight to «localllm enable» and «localllm delegate»")
	}
	layout, err := paths.Find()
	if err != nil {
		return err
	}
	folder, err := scratch.Make(layout, "", "localllm-demo-")
	if err != nil {
		return fmt.Errorf("preparing the demo: %w", err)
	}
	defer func() { _ = folder.Remove() }()
	d.folder = folder.Path
	project, scripted := filepath.Join(d.folder, "project"), d.model == ""
	if err := d.prepare(project); err != nil {
		return err
	}
	// A state of its own: the demo must not join or end an engine that somebody works with.
	if os.Getenv(paths.HomeVariable) == "" {
		if err := os.Setenv(paths.HomeVariable, filepath.Join(d.folder, "home")); err != nil {
			return err
		}
	}
	if err := os.Unsetenv("CLAUDE_PROJECT_DIR"); err != nil {
		return err
	}
	fmt.Fprint(d.out, demoIntro)
	if scripted {
		fmt.Fprint(d.out, demoPractice)
	}
	back, err := os.Getwd()
	if err != nil {
		return err
	}
	if err := os.Chdir(project); err != nil {
		return fmt.Errorf("entering the demo's project: %w", err)
	}
	defer func() { _ = os.Chdir(back) }()
	return d.walk(ctx, project)
}

// prepare writes the project, and the practice model unless a real one is asked for.
func (d *demo) prepare(project string) error {
	if err := os.Mkdir(project, 0o755); err != nil {
		return err
	}
	names, err := fs.Glob(demoFiles, "demo/*.txt")
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := demoFiles.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(project, strings.TrimSuffix(filepath.Base(name), ".txt")), text, 0o644); err != nil {
			return err
		}
	}
	if d.model != "" {
		return nil
	}
	raw, err := demoFiles.ReadFile("demo/script.json")
	if err != nil {
		return err
	}
	script, err := practice.Parse(raw)
	if err != nil {
		return err
	}
	d.model = filepath.Join(d.folder, "practice.gguf")
	defer func() { d.pull = false }()
	return practice.Write(d.model, script, practice.Options{})
}

// walk runs the commands that a person would type, one after the other.
func (d *demo) walk(ctx context.Context, project string) error {
	self := strconv.Itoa(os.Getpid())
	task := "Write the function Slug in slug.go: it makes a title into the last part of a URL, as slug_test.go shows"
	outputs := []string{"--output-files", "slug.go"}
	enable := []string{"enable", "--model", d.model, "--while-pid", self, "--context", "8192"}
	if d.pull {
		enable = append(enable, "--pull")
	}
	defer d.quiet(ctx, "disable", "--while-pid", self) // also after a failure: nothing of ours stays
	d.step(ctx, "What fits into the memory that is free now?", "capability", "--model", d.model)
	d.step(ctx, "Start it, for as long as this demo runs.", enable...)
	d.step(ctx, "Is this a task for a local model?", append([]string{"analyze", task, "--verify", "go test ./..."}, outputs...)...)
	d.step(ctx, "Have it done. The tests are red before; only green ones prove it.",
		append([]string{"delegate", task, "--context-files", "slug_test.go", "--verify", "go test ./...", "--diff"}, outputs...)...)
	d.step(ctx, "What came of it?", "stats")
	d.step(ctx, "Let go of the memory.", "disable", "--while-pid", self)
	if d.failure != nil {
		return d.failure
	}
	if _, err := os.Stat(filepath.Join(project, "slug.go")); err != nil {
		return errors.New("the demo's file was not written")
	}
	fmt.Fprintln(d.out, "\nThat was all of it. Next, with localllm on your PATH (make install): localllm setup, localllm capability, localllm install")
	return nil
}

// step shows a command and runs it. After a failure the rest is left out.
func (d *demo) step(ctx context.Context, why string, args ...string) {
	if d.failure != nil || ctx.Err() != nil {
		return
	}
	fmt.Fprintf(d.out, "\n── %s\n$ localllm %s\n", why, quoted(args, d.folder))
	d.failure = d.execute(ctx, d.out, args)
}

func (d *demo) quiet(ctx context.Context, args ...string) {
	if d.failure != nil || ctx.Err() != nil {
		_ = d.execute(context.WithoutCancel(ctx), io.Discard, args)
	}
}

func (d *demo) execute(ctx context.Context, out io.Writer, args []string) error {
	root := newRoot()
	root.SetOut(out)
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}

// quoted is a command line as a person would write it, with the demo's folder left out.
func quoted(args []string, folder string) string {
	words := make([]string, len(args))
	for i, a := range args {
		a = strings.TrimPrefix(a, folder+string(filepath.Separator))
		if strings.ContainsAny(a, " ./*") && strings.Contains(a, " ") {
			a = `"` + a + `"`
		}
		words[i] = a
	}
	return strings.Join(words, " ")
}
