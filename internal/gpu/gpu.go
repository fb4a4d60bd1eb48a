// Package gpu asks drivers and their tools what GPUs there are and how much of their memory is free. It changes
// nothing on a device, and signals no process that a driver names.
package gpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"localllm/capability"
)

// HangLimit is how long one source may take. A driver in trouble can block for ever inside the kernel.
const HangLimit = 2 * time.Second

// ErrHung is a source that did not answer in time.
var ErrHung = errors.New("did not answer")

// Finder asks all sources.
type Finder struct {
	// Nvidia is asked in order until one answers: they see the same cards.
	Nvidia []capability.Prober
	// Others are all asked.
	Others []capability.Prober
}

// Default is the finder for this system. library names the NVML library to load; empty is the system's own.
func Default(library string) Finder {
	return Finder{
		Nvidia: []capability.Prober{newNVML(library), newSMI(os.Getenv("PATH")).guarded()},
		Others: platform(),
	}
}

// Found is what all sources together said.
type Found struct {
	GPUs    []capability.GPU
	Notes   []string
	Elapsed time.Duration
}

// Find asks the sources. It never fails: what could not be found out is in the notes.
func (f Finder) Find(ctx context.Context) Found {
	begin := time.Now()
	var out Found
	for _, p := range f.Nvidia {
		probe, err := p.Probe(ctx)
		if err == nil {
			out.add(probe)
			break
		}
		if !errors.Is(err, capability.ErrAbsent) {
			out.Notes = append(out.Notes, err.Error())
		}
		if errors.Is(err, ErrHung) {
			break // the next source would hang on the same driver
		}
	}
	for _, p := range f.Others {
		probe, err := p.Probe(ctx)
		switch {
		case err == nil:
			out.add(probe)
		case !errors.Is(err, capability.ErrAbsent):
			out.Notes = append(out.Notes, err.Error())
		}
	}
	out.Elapsed = time.Since(begin)
	return out
}

func (f *Found) add(p capability.Probe) {
	f.GPUs = append(f.GPUs, p.GPUs...)
	f.Notes = append(f.Notes, p.Notes...)
}

// guarded gives a probe that can't be interrupted a time limit. While one call hangs no other is made: each would
// leave one more thread behind.
type guarded struct {
	name  string
	limit time.Duration
	stuck atomic.Bool
	probe func() (capability.Probe, error)
}

func (g *guarded) Probe(ctx context.Context) (capability.Probe, error) {
	if !g.stuck.CompareAndSwap(false, true) {
		return capability.Probe{}, fmt.Errorf("%s %w: an earlier call still hangs", g.name, ErrHung)
	}
	type answer struct {
		probe capability.Probe
		err   error
	}
	done := make(chan answer, 1)
	go func() { // ends with the driver's answer, if ever
		p, err := g.probe()
		g.stuck.Store(false)
		done <- answer{p, err}
	}()
	timer := time.NewTimer(g.limit)
	defer timer.Stop()
	select {
	case a := <-done:
		return a.probe, a.err
	case <-timer.C:
		return capability.Probe{}, fmt.Errorf("%s %w within %v", g.name, ErrHung, g.limit)
	case <-ctx.Done():
		return capability.Probe{}, fmt.Errorf("asking %s: %w", g.name, ctx.Err())
	}
}
