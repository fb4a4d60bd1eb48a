// Package slots shares an endpoint's few places between processes, by kernel locks: a place is free again whenever
// its holder ends, however it ends. It does not talk to the endpoint.
package slots

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"localllm/internal/filelock"
	"localllm/internal/paths"
)

// Pool is the places of one endpoint.
type Pool struct {
	dir   string
	total int
}

// Open names the places of the endpoint that key stands for (its address); total under 1 counts as 1.
func Open(layout paths.Layout, key string, total int) Pool {
	sum := sha256.Sum256([]byte(key))
	return Pool{filepath.Join(layout.Run, "slots", hex.EncodeToString(sum[:8])), max(total, 1)}
}

// Slot is a place that this process holds.
type Slot struct {
	Index int
	lock  *filelock.Lock
}

// Release gives the place back.
func (s *Slot) Release() { _ = s.lock.Release() }

// Take waits for a place: preferred if it is free, else any. waiting is called once where none is free at once.
func (p Pool) Take(ctx context.Context, preferred int, waiting func()) (*Slot, error) {
	if err := paths.Private(p.dir); err != nil {
		return nil, err
	}
	now := time.Now()
	_ = os.Chtimes(p.dir, now, now) // so that Clean leaves it alone
	for told := false; ; {
		s, err := p.try(preferred)
		if s != nil || err != nil {
			return s, err
		}
		if !told && waiting != nil {
			waiting()
			told = true
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for a free slot: %w", context.Cause(ctx))
		case <-time.After(15 * time.Millisecond):
		}
	}
}

func (p Pool) try(preferred int) (*Slot, error) {
	first := ((preferred % p.total) + p.total) % p.total
	for i := range p.total {
		index := (first + i) % p.total
		lock, err := filelock.Try(p.path(index))
		if err == nil {
			return &Slot{index, lock}, nil
		}
		if !errors.Is(err, filelock.ErrHeld) {
			return nil, err
		}
	}
	return nil, nil
}

// More takes up to n places that nobody holds now, and never waits.
func (p Pool) More(n int) []*Slot {
	var taken []*Slot
	for len(taken) < n {
		s, err := p.try(0)
		if s == nil || err != nil {
			break
		}
		taken = append(taken, s)
	}
	return taken
}

// Busy is how many places are held.
func (p Pool) Busy() int {
	n := 0
	for i := range p.total {
		if held, err := filelock.Held(p.path(i)); err == nil && held {
			n++
		}
	}
	return n
}

// Clean removes the places of endpoints that nobody has asked for since unused ago, and that nobody holds: most engines
// have an address of their own at each start. unused has to be long beside the time that a Take takes.
func Clean(layout paths.Layout, unused time.Duration) {
	root := filepath.Join(layout.Run, "slots")
	entries, err := os.ReadDir(root)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < unused {
			continue
		}
		dir := filepath.Join(root, e.Name())
		places, _ := filepath.Glob(filepath.Join(dir, "*.lock"))
		if !slices.ContainsFunc(places, func(place string) bool { held, err := filelock.Held(place); return held || err != nil }) {
			_ = os.RemoveAll(dir)
		}
	}
}

func (p Pool) path(index int) string { return filepath.Join(p.dir, strconv.Itoa(index)+".lock") }
