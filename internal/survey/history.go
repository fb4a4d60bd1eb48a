package survey

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"time"

	"localllm/capability"
	"localllm/internal/atomicfile"
	"localllm/internal/filelock"
	"localllm/internal/paths"
)

// mostMeasured bounds the history; the oldest go first.
const mostMeasured = 500

type historyFile struct {
	Version int        `json:"version"`
	Entries []measured `json:"entries"` // the newest last
}

type measured struct {
	capability.HistoryKey
	Bytes int64     `json:"bytes"`
	At    time.Time `json:"at"`
}

func historyPath(state string) string { return filepath.Join(state, "memory.json") }

// readHistory reads what was measured. A broken file is an empty one: it is evidence, not configuration.
func readHistory(state string) historyFile {
	var h historyFile
	if err := atomicfile.ReadJSON(historyPath(state), &h); err != nil || h.Version != 1 {
		return historyFile{Version: 1}
	}
	return h
}

func (s *Surveyor) history() capability.History {
	out := capability.History{}
	for _, e := range readHistory(s.State).Entries {
		if e.Bytes > 0 {
			out[e.HistoryKey] = e.Bytes
		}
	}
	return out
}

var buildName = regexp.MustCompile(`^b\d+`)

// plainVersion is a version as the survey finds it before a start: a running llama-server adds its commit.
func plainVersion(v string) string {
	if build := buildName.FindString(v); build != "" {
		return build
	}
	return v
}

// Remember stores what a model really took, in the state folder; the next estimate for the same key is that.
func Remember(ctx context.Context, state string, key capability.HistoryKey, bytes int64) error {
	if bytes <= 0 || key.Digest == "" {
		return nil // nothing was measured, or nobody could tell later of what
	}
	key.Version = plainVersion(key.Version)
	if err := paths.Private(state); err != nil {
		return err
	}
	lock, err := filelock.Take(ctx, historyPath(state)+".lock")
	if err != nil {
		return fmt.Errorf("storing measured memory: %w", err)
	}
	defer lock.Release()
	h := readHistory(state)
	kept := h.Entries[:0]
	for _, e := range h.Entries {
		if e.HistoryKey != key {
			kept = append(kept, e)
		}
	}
	h.Entries = append(kept, measured{key, bytes, time.Now().UTC()})
	if extra := len(h.Entries) - mostMeasured; extra > 0 {
		h.Entries = h.Entries[extra:]
	}
	if err := atomicfile.WriteJSON(historyPath(state), h); err != nil {
		return fmt.Errorf("storing measured memory: %w", err)
	}
	return nil
}
