package app

import (
	"context"
	"strings"
	"sync"

	"localllm/delegate"
	"localllm/internal/workspace"
)

// counted is a source that remembers how much it read for each list of patterns: what a delegation keeps out of the
// caller's context is counted from it.
type counted struct {
	delegate.Source
	read sync.Map // list of patterns → bytes
}

// Gather implements delegate.Source.
func (c *counted) Gather(ctx context.Context, t delegate.Task) (delegate.Gathered, error) {
	g, err := c.Source.Gather(ctx, t)
	if err != nil {
		return g, err
	}
	bytes := int64(0)
	for _, f := range g.Files {
		bytes += int64(len(f.Body))
	}
	c.read.Store(patterns(t), bytes)
	return g, nil
}

// bytes is how much was read for a task's context.
func (c *counted) bytes(t delegate.Task) int64 {
	n, _ := c.read.Load(patterns(t))
	bytes, _ := n.(int64)
	return bytes
}

func patterns(t delegate.Task) string { return strings.Join(t.ContextFiles, "\x00") }

// gather reads a task's context where nothing is going to be written.
func (a *App) gather(ctx context.Context, root string, t delegate.Task) (delegate.Gathered, error) {
	tree, err := workspace.Open(a.layout, root, root)
	if err != nil {
		return delegate.Gathered{}, err
	}
	defer tree.Close()
	return tree.Gather(ctx, t)
}
