// Package keeper runs one engine a user for all sessions, outside of their process trees, and ends it when the last
// lease goes. Clients and keeper meet in locked files and nowhere else: it opens no socket, and it never signals a
// process that it can't prove to have started.
package keeper

import (
	"context"
	"time"

	"localllm/internal/paths"
	"localllm/lifecycle"
)

// Options are what a keeper is run with.
type Options struct {
	Layout     paths.Layout
	Engines    map[string]lifecycle.Engine // by engine name
	Foreground bool                        // says what happens on standard error

	// FreeMemory is free memory by device, for the proof that it came back. nil: there is no probe.
	FreeMemory func(ctx context.Context) (map[string]uint64, error)
	// Holders names who holds device memory now, for one line where it did not come back. May be nil.
	Holders func(ctx context.Context) []string
	// OnLoaded is told what a load really took. May be nil.
	OnLoaded func(spec lifecycle.Spec, memory lifecycle.Measured)
	// Warden is the command that runs Warden, its program first. nil: this program with "keeper", "--warden".
	Warden []string

	now func() time.Time
}

// networkFolder is the warning for a run folder on a network file system, or empty.
func networkFolder(dir string) string {
	kind := networkSystem(dir)
	if kind == "" {
		return ""
	}
	return "the run folder " + dir + " is on " + kind + ": sessions on several machines would share it, and locks may not hold there"
}
