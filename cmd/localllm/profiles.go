package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"localllm/internal/app"
	"localllm/internal/config"
)

func profilesCommand() []*cobra.Command {
	group := &cobra.Command{
		Use: "profiles", Short: "endpoints that others run: list, show, add and test them", GroupID: "setup",
		Long: "Profiles are servers that somebody else runs: another machine's engine, a proxy, a service. They stand in the\n" +
			"configuration file; their keys stand in environment variables that the file names.",
		Example: "  localllm profiles init --preset vllm --preset groq\n  localllm profiles init --import\n  localllm profiles test groq --ask",
	}
	group.AddCommand(profilesList(), profilesShow(), profilesInit(), profilesTest())
	return []*cobra.Command{group}
}

func profilesList() *cobra.Command {
	return profileCommand("list", "list the configured profiles", cobra.NoArgs, func(_ *cobra.Command, a *app.App, _ []string) (any, error) {
		return map[string]any{"profiles": a.Profiles()}, nil
	})
}

func profilesShow() *cobra.Command {
	return profileCommand("show NAME", "show one profile as it is understood; never its key", cobra.ExactArgs(1), func(_ *cobra.Command, a *app.App, args []string) (any, error) {
		return a.Profile(args[0])
	})
}

func profilesTest() *cobra.Command {
	var ask bool
	var model string
	cmd := profileCommand("test NAME", "ask a profile's server how it is", cobra.ExactArgs(1), func(cmd *cobra.Command, a *app.App, args []string) (any, error) {
		return a.TestProfile(cmd.Context(), args[0], model, ask)
	})
	cmd.Flags().BoolVar(&ask, "ask", false, "ask its model a question of a few tokens too")
	cmd.Flags().StringVar(&model, "model", "", "`model` to ask; default: the profile's")
	return cmd
}

func profilesInit() *cobra.Command {
	var presets []string
	var takeOver, dry, asJSON bool
	cmd := &cobra.Command{
		Use: "init", Short: "make the configuration file, or add profiles to it", Args: cobra.NoArgs,
		Long: "init makes a commented configuration file if there is none. With --preset it adds known servers, with --import what\n" +
			"claude-code-delegate-local, agent-delegate and sub-agent-mcp left in their variables and files. Lines that are\n" +
			"there already are never touched, and no key is ever written.\n\nPresets: " + strings.Join(config.PresetNames(), ", ") + ".",
		Example: "  localllm profiles init\n  localllm profiles init --preset openrouter --dry-run\n  localllm profiles init --import",
		RunE: func(cmd *cobra.Command, _ []string) error {
			theApp, err := open(cmd)
			if err != nil {
				return err
			}
			defer theApp.Close()
			added, told, err := theApp.InitProfiles(presets, takeOver, dry)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), map[string]any{"path": added.Path, "created": added.Created, "profiles": added.Profiles, "kept": added.Kept, "notes": append([]string{}, told...), "dry_run": dry})
			}
			for _, line := range told {
				fmt.Fprintln(os.Stderr, line)
			}
			if dry {
				_, err = io.WriteString(cmd.OutOrStdout(), added.Text)
				return err
			}
			return renderAdded(cmd.OutOrStdout(), added)
		},
	}
	cmd.Flags().StringArrayVar(&presets, "preset", nil, "`name` of a known server to add; repeats")
	cmd.Flags().BoolVar(&takeOver, "import", false, "take over what other tools left behind")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print the file and write nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return cmd
}

func renderAdded(w io.Writer, a *config.Added) error {
	var b strings.Builder
	switch {
	case a.Created:
		fmt.Fprintf(&b, "wrote %s\n", a.Path)
	case len(a.Profiles) > 0:
		fmt.Fprintf(&b, "added to %s\n", a.Path)
	default:
		fmt.Fprintf(&b, "%s has it all already\n", a.Path)
	}
	for _, p := range a.Profiles {
		fmt.Fprintf(&b, "  + %s\n", p)
	}
	for _, p := range a.Kept {
		fmt.Fprintf(&b, "  = %s was there and is as it was\n", p)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// profileCommand is one that reports on profiles.
func profileCommand(use, short string, args cobra.PositionalArgs, run work) *cobra.Command {
	return reportCommand(use, short, args, run, renderProfile, func(_ *cobra.Command, out any) error {
		if h, ok := out.(*app.ProfileHealth); ok && !h.OK {
			return &notDone{"unreachable"}
		}
		return nil
	})
}

func renderProfile(w io.Writer, out any) error {
	switch r := out.(type) {
	case map[string]any:
		all, _ := r["profiles"].([]app.ProfileInfo)
		return renderProfiles(w, all)
	case *app.ProfileInfo:
		return renderProfileInfo(w, r)
	case *app.ProfileHealth:
		renderHealth(w, r)
		return nil
	}
	return errors.New("a profile was expected")
}

func renderProfiles(w io.Writer, all []app.ProfileInfo) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "no profiles; «localllm profiles init --preset NAME» adds one")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PROFILE\tKIND\tURL\tMODEL\tKEY")
	for _, p := range all {
		name := p.Name
		if p.Default {
			name += " (default)"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", name, orDash(p.Kind, "by model"), p.BaseURL, orDash(p.Model, "-"), keyState(p))
	}
	return t.Flush()
}

func keyState(p app.ProfileInfo) string {
	switch {
	case p.APIKeyEnv == "":
		return "none"
	case p.KeySet:
		return p.APIKeyEnv
	}
	return p.APIKeyEnv + " (not set)"
}

func orDash(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func renderProfileInfo(w io.Writer, p *app.ProfileInfo) error {
	if _, err := io.WriteString(w, config.Section(p.Name, p.Profile)); err != nil {
		return err
	}
	fmt.Fprintf(w, "# key: %s\n", keyState(*p))
	if len(p.Tiers) > 0 {
		fmt.Fprintf(w, "# tiers: %s\n", strings.Join(p.Tiers, ", "))
	}
	for _, warning := range p.Warnings {
		fmt.Fprintf(w, "# warning: %s\n", warning)
	}
	return nil
}

func renderHealth(w io.Writer, h *app.ProfileHealth) {
	state := "answers"
	if !h.OK {
		state = "does not answer"
	}
	fmt.Fprintf(w, "%s  %s  %s (%d ms)\n", h.Name, h.URL, state, h.LatencyMS)
	for _, line := range []string{h.Error, h.Note} {
		if line != "" {
			fmt.Fprintf(w, "  %s\n", line)
		}
	}
	if len(h.Models) > 0 {
		fmt.Fprintf(w, "  models  %s\n", strings.Join(h.Models[:min(len(h.Models), 20)], ", "))
	}
	if h.Answer != "" {
		fmt.Fprintf(w, "  it said: %s\n", h.Answer)
	}
}
