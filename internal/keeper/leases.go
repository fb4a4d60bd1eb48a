package keeper

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"localllm/internal/filelock"
	"localllm/internal/proc"
	"localllm/lifecycle"
)

const (
	leaseSuffix = ".json"
	// newPrefix marks a lease that is still being made; the folder's lock is held for as long as one lives.
	newPrefix = ".new-"
	// endedLine is appended by a holder that ends in an orderly way. One small append is seen whole or not at all.
	endedLine = "{\"ended\":true}\n"
)

// hold is a lease that this process locks.
type hold struct {
	lease lifecycle.Lease
	lock  *filelock.Lock
}

// createLease writes a lease and, but for a bound one, locks it. The caller holds the folder's lock. A lease with a
// holder becomes visible by a rename only when it is locked, so that nobody ever sees it free.
func (f folder) createLease(l lifecycle.Lease) (*hold, error) {
	l.Version, l.ID, l.Created = lifecycle.FormatVersion, proc.NewNonce(), time.Now().UTC()
	data, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("writing a lease: %w", err)
	}
	fresh := filepath.Join(f.leases(), newPrefix+l.ID)
	lock, err := filelock.Try(fresh)
	if err != nil {
		return nil, fmt.Errorf("making a lease: %w", err)
	}
	_, err = lock.File().Write(append(data, '\n'))
	if err == nil {
		err = os.Rename(fresh, f.leasePath(l.ID))
	}
	if err != nil {
		_ = os.Remove(fresh)
		_ = lock.Release()
		return nil, fmt.Errorf("making a lease: %w", err)
	}
	h := &hold{lease: l, lock: lock}
	if l.Kind == lifecycle.Bound {
		_ = lock.Release()
		h.lock = nil
	}
	return h, nil
}

// end writes the orderly end and lets go. It needs no other lock: a holder has perhaps 33 ms to live. The keeper
// removes the file.
func (h *hold) end() {
	if h.lock == nil {
		return
	}
	_, _ = h.lock.File().WriteString(endedLine)
	_ = h.lock.Release()
	h.lock = nil
}

func (f folder) leasePath(id string) string { return filepath.Join(f.leases(), id+leaseSuffix) }

// observe looks at every lease.
func (f folder) observe() ([]lifecycle.Observed, error) {
	entries, err := os.ReadDir(f.leases())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the leases: %w", err)
	}
	var seen []lifecycle.Observed
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), leaseSuffix)
		if !ok || strings.HasPrefix(id, ".") {
			continue
		}
		if o, ok := f.look(id); ok {
			seen = append(seen, o)
		}
	}
	return seen, nil
}

// look observes one lease. A file that can't be read as one, or has gone meanwhile, is none.
func (f folder) look(id string) (lifecycle.Observed, bool) {
	path := f.leasePath(id)
	data, err := os.ReadFile(path)
	if err != nil {
		return lifecycle.Observed{}, false
	}
	o, err := parseLease(data)
	if err != nil || o.ID != id {
		// Somebody's odd file: it counts as ended, so that the next cleaning takes it away.
		return lifecycle.Observed{Lease: lifecycle.Lease{ID: id}, Ended: true}, true
	}
	o.ClientAlive = identity(o.Client).Alive()
	if o.Kind != lifecycle.Bound && !o.Ended {
		o.Locked, _ = filelock.Held(path)
	}
	return o, true
}

// parseLease reads a lease file: one line of JSON, and perhaps the line of its end.
func parseLease(data []byte) (lifecycle.Observed, error) {
	var o lifecycle.Observed
	head, tail, _ := bytes.Cut(data, []byte("\n"))
	if err := json.Unmarshal(head, &o.Lease); err != nil {
		return o, fmt.Errorf("reading a lease: %w", err)
	}
	// A newer format is let be: its lock and its client say enough, and wanted.json has the error for people.
	if o.Version > lifecycle.FormatVersion && o.Kind != lifecycle.Bound && o.Kind != lifecycle.Task {
		o.Kind = lifecycle.Held
	}
	if o.ID == "" || strings.ContainsAny(o.ID, "/\\.") || o.Kind != lifecycle.Held && o.Kind != lifecycle.Bound && o.Kind != lifecycle.Task {
		return o, errors.New("reading a lease: not one of ours")
	}
	o.Ended = bytes.Contains(tail, []byte(`"ended":true`))
	return o, nil
}

// sweepLeases removes the leases for which gone holds, and what was left half made. The caller holds the folder's
// lock.
func (f folder) sweepLeases(seen []lifecycle.Observed, gone func(lifecycle.Observed) bool) (left []lifecycle.Observed) {
	for _, o := range seen {
		if gone(o) {
			_ = os.Remove(f.leasePath(o.ID))
			continue
		}
		left = append(left, o)
	}
	half, _ := filepath.Glob(filepath.Join(f.leases(), newPrefix+"*"))
	for _, path := range half {
		_ = os.Remove(path)
	}
	return left
}
