package app

import (
	"context"
	"errors"
	"strings"
	"sync"

	"localllm/delegate"
	"localllm/internal/contextfiles"
)

// source reads context files for one call, and remembers how much it read for each list of them.
type source struct {
	root      string
	readRoots []string
	read      sync.Map // list of patterns → bytes
}

// Gather implements delegate.Source.
func (s *source) Gather(ctx context.Context, t delegate.Task) (delegate.Gathered, error) {
	roots := append(append([]string{}, s.readRoots...), t.ReadRoots...)
	set, err := contextfiles.Expand(ctx, contextfiles.Options{Root: s.root, ReadRoots: roots}, t.ContextFiles)
	var refused *contextfiles.Refused
	if errors.As(err, &refused) {
		return delegate.Gathered{}, &delegate.Refusal{Reason: "context_files: " + refused.Error()}
	}
	if err != nil {
		return delegate.Gathered{}, err
	}
	g := delegate.Gathered{Files: set.Files}
	for _, skip := range set.Skipped {
		g.Warnings = append(g.Warnings, "left out of the context: "+skip.Path+" ("+skip.Reason+")")
	}
	bytes := int64(0)
	for _, f := range set.Files {
		bytes += int64(len(f.Body))
	}
	s.read.Store(strings.Join(t.ContextFiles, "\x00"), bytes)
	return g, nil
}

// bytes is how much was read for a task's context.
func (s *source) bytes(t delegate.Task) int64 {
	n, _ := s.read.Load(strings.Join(t.ContextFiles, "\x00"))
	bytes, _ := n.(int64)
	return bytes
}
