package workspace

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"localllm/delegate"
	"localllm/internal/contextfiles"
	"localllm/internal/secretfile"
)

// Gather is delegate.Source's: the context files of a task, without those that are secrets. One that is named by
// itself is refused, one that a folder or glob turned up is left out and said.
func (w *Workspace) Gather(ctx context.Context, t delegate.Task) (delegate.Gathered, error) {
	roots := make([]string, len(t.ReadRoots))
	for i, r := range t.ReadRoots {
		roots[i] = r
		if !filepath.IsAbs(r) {
			roots[i] = filepath.Join(w.dir, r)
		}
	}
	set, err := contextfiles.Expand(ctx, contextfiles.Options{Root: w.dir, ReadRoots: roots}, t.ContextFiles)
	var refused *contextfiles.Refused
	if errors.As(err, &refused) {
		return delegate.Gathered{}, &delegate.Refusal{Reason: refused.Error(), Hint: "leave it out of context_files, or name another file"}
	}
	if err != nil {
		return delegate.Gathered{}, fmt.Errorf("reading the context files: %w", err)
	}
	named := map[string]bool{}
	for _, p := range t.ContextFiles {
		named[cleaned(p)] = true
	}
	var g delegate.Gathered
	for _, f := range set.Files {
		if !Secret(f.Path) && !secretfile.Text([]byte(f.Body)) {
			g.Files = append(g.Files, f)
			continue
		}
		if named[f.Path] {
			return delegate.Gathered{}, refuse(f.Path, "is a file of secrets and is not shown to a model", "leave it out of context_files")
		}
		g.Warnings = append(g.Warnings, f.Path+" was left out: it is a file of secrets")
	}
	for _, s := range set.Skipped {
		if len(g.Warnings) == 20 {
			g.Warnings = append(g.Warnings, "more files were left out")
			break
		}
		g.Warnings = append(g.Warnings, s.Path+" was left out: "+s.Reason)
	}
	return g, nil
}
