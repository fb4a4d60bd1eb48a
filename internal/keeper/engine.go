package keeper

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"localllm/internal/atomicfile"
	"localllm/internal/hint"
	"localllm/internal/paths"
	"localllm/internal/proc"
	"localllm/lifecycle"
)

// running is one start of the engine, from its record to its end.
type running struct {
	spec       lifecycle.Spec
	generation int
	nonce      string
	dir        string
	began      time.Time

	// Written by the start's goroutine before its event, read by the loop after it.
	server   lifecycle.Server
	endpoint lifecycle.Endpoint
	process  proc.Identity
	before   map[string]uint64 // free memory by device
	loaded   map[string]uint64
	memory   lifecycle.Measured
	loadMS   int64

	quit chan struct{} // closed when the server is to be stopped: ends watching and renewing
}

const (
	probePatience = 3 * time.Second
	stopPatience  = 10 * time.Second // for the adapter; then what is recorded is killed
	memoryReturns = 5 * time.Second
	renewEvery    = time.Minute // of a keep-alive of two
)

// start begins one start in a goroutine, which ends with its event.
func (k *keeper) start(w lifecycle.Wanted, choice int) {
	spec := w.Choices[choice]
	r := &running{spec: spec, generation: w.Generation, nonce: proc.NewNonce(), began: time.Now(), quit: make(chan struct{})}
	r.dir = filepath.Join(k.f.engineDir(), r.nonce[:8])
	ctx, cancel := context.WithCancel(context.Background())
	k.running, k.cancel = r, cancel
	k.latest.Store(nil)
	if k.link == nil {
		k.link = startWarden(k.o, k.f, k.logf, k.watcher.poke)
		k.watcher.poke() // so that the status names it before the engine is ready
	}
	go func() {
		err := k.bringUp(ctx, r, w)
		cancel()
		if err != nil {
			k.events <- startFailed(r, err)
			return
		}
		k.events <- event{what: lifecycle.Started, of: r}
	}()
}

func startFailed(r *running, err error) event {
	ev := event{what: lifecycle.StartFailed, of: r, reason: err.Error(), hints: hint.Of(err)}
	var start *lifecycle.StartError
	if errors.As(err, &start) {
		ev.cause, ev.hints = start.Cause, append(ev.hints, start.Hints...)
	}
	return ev
}

// bringUp returns when the engine is ready and measured. After an error nothing of it is left.
func (k *keeper) bringUp(ctx context.Context, r *running, w lifecycle.Wanted) error {
	engine, ok := k.o.Engines[r.spec.Engine]
	if !ok {
		return noEngine(r.spec.Engine)
	}
	if err := paths.Private(r.dir); err != nil {
		return err
	}
	r.before = k.freeMemory(ctx)
	rec := record{Version: lifecycle.FormatVersion, Boot: proc.BootID(), Nonce: r.nonce, Keeper: proc.Self(), At: r.began.UTC()}
	server, err := engine.Start(ctx, r.spec, lifecycle.Host{
		Dir: r.dir, LogPath: k.f.logPath(), Nonce: r.nonce, Env: w.Env, Force: w.Force,
		Report: k.report,
		Record: func(pid int) error { return k.record(&rec, r, pid) },
	})
	if err != nil {
		k.cleanUp(r)
		return err
	}
	r.server, r.endpoint = server, server.Endpoint()
	r.loadMS = time.Since(r.began).Milliseconds()
	r.loaded = k.freeMemory(ctx)
	r.memory = lifecycle.Measured{
		EstimatedBytes: r.spec.Need, MeasuredBytes: lifecycle.Taken(r.before, r.loaded), EngineVersion: r.endpoint.Version,
	}
	probe, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	if m, err := server.Memory(probe); err == nil {
		r.memory.EngineBytes, r.memory.GPUBytes = m.TotalBytes, m.GPUBytes
	}
	if k.o.OnLoaded != nil {
		k.o.OnLoaded(r.spec, r.memory)
	}
	return nil
}

// record leaves on disk, and with the warden, what is needed to end the engine without us.
func (k *keeper) record(rec *record, r *running, pid int) error {
	if pid > 0 {
		if id, err := proc.Identify(pid); err == nil {
			rec.Engine = id
		}
		rec.Engine.Nonce = rec.Nonce
		r.process = rec.Engine
	}
	if err := atomicfile.WriteJSON(k.f.recordPath(), rec); err != nil {
		return err
	}
	k.link.tell(*rec)
	return nil
}

func (k *keeper) report(p lifecycle.Progress) {
	k.latest.Store(&p)
	select {
	case k.moved <- struct{}{}:
	default:
	}
}

func (k *keeper) freeMemory(ctx context.Context) map[string]uint64 {
	if k.o.FreeMemory == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	free, err := k.o.FreeMemory(ctx)
	if err != nil {
		return nil
	}
	return free
}

// attend watches a ready server until it ends by itself or quit is closed, and renews what has to be renewed.
func (k *keeper) attend(r *running) {
	var renew <-chan time.Time
	if r.endpoint.Adopted {
		t := time.NewTicker(renewEvery)
		defer t.Stop()
		renew = t.C
	}
	for {
		select {
		case <-r.quit:
			return
		case <-renew:
			ctx, cancel := context.WithTimeout(context.Background(), renewEvery/2)
			if err := r.server.Renew(ctx); err != nil {
				k.logf("renewing: %v", err)
			}
			cancel()
		case <-r.server.Done():
			reason := "the engine ended by itself"
			if err := r.server.Err(); err != nil {
				reason = err.Error()
			}
			ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
			_, _ = r.server.Stop(ctx) // what it left: children, files
			cancel()
			k.cleanUp(r)
			select {
			case k.events <- event{what: lifecycle.Exited, of: r, cause: lifecycle.Crashed, reason: reason}:
			case <-r.quit:
			}
			return
		}
	}
}

// stop ends the running server in a goroutine, which ends with its event.
func (k *keeper) stop() {
	r := k.running
	close(r.quit)
	go func() {
		release := k.takeDown(r)
		k.events <- event{what: lifecycle.HasStopped, of: r, release: release}
	}()
}

// takeDown returns when every recorded process is gone and the memory is back, or it is known who holds it.
func (k *keeper) takeDown(r *running) *lifecycle.Release {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	stopped, err := r.server.Stop(ctx)
	if err != nil {
		k.logf("stopping: %v", err)
	}
	k.cleanUp(r)
	rel := &lifecycle.Release{Generation: r.generation, Process: stopped.Process, Model: stopped.Model, Back: true}
	now := k.freeMemory(context.Background())
	for end := time.Now().Add(memoryReturns); k.o.FreeMemory != nil && r.loaded != nil; now = k.freeMemory(context.Background()) {
		if rel.Back = lifecycle.MemoryBack(r.before, r.loaded, now); rel.Back || time.Now().After(end) {
			break
		}
		time.Sleep(50 * time.Millisecond) // device memory comes back by itself, and nothing tells when
	}
	if !rel.Back && k.o.Holders != nil {
		rel.HeldBy = k.o.Holders(context.Background())
	}
	rel.Bytes = lifecycle.Taken(now, r.loaded)
	if rel.Bytes == 0 && rel.Back && (rel.Process || rel.Model) {
		rel.Bytes = max(r.memory.MeasuredBytes, r.memory.EngineBytes)
	}
	rel.MS = time.Since(begin).Milliseconds()
	return rel
}

// cleanUp makes sure that nothing of a start is left, whatever the adapter did, and forgets its record.
func (k *keeper) cleanUp(r *running) {
	endRecorded(record{Nonce: r.nonce, Engine: r.process})
	_ = os.Remove(k.f.recordPath())
	_ = os.RemoveAll(r.dir)
	k.link.clear()
}
