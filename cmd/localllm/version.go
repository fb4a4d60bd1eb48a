package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

const unknown = "unknown"

// madeFrom is the commit of this build. One without the linker's flags, as by go install, has it from Go itself.
func madeFrom() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || commit != unknown {
		return commit
	}
	from, changed := unknown, ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 7:
			from = s.Value[:7]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "-dirty"
		}
	}
	return from + changed
}

func versionCommand() []*cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "print the version, the commit and the platform", GroupID: "setup", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return printJSON(cmd.OutOrStdout(), map[string]string{
					"version": version, "commit": madeFrom(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
				})
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "localllm %s (%s, %s, %s/%s)\n", version, madeFrom(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return []*cobra.Command{cmd}
}
