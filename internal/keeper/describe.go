package keeper

import (
	"context"
	"time"

	"localllm/lifecycle"
)

var stateOf = map[lifecycle.Work]lifecycle.State{
	lifecycle.Idle: lifecycle.Off, lifecycle.WorkStart: lifecycle.Starting, lifecycle.WorkCancel: lifecycle.Stopping,
	lifecycle.WorkRun: lifecycle.Ready, lifecycle.WorkPause: lifecycle.Starting, lifecycle.WorkStop: lifecycle.Stopping,
	lifecycle.WorkFailed: lifecycle.Failed,
}

// note takes in what a worker found, before anything is decided on it.
func (k *keeper) note(ev event) {
	switch ev.what {
	case lifecycle.Started:
		if k.machine.Work == lifecycle.WorkStart {
			go k.attend(ev.of) // ends with quit, or with the server
		}
	case lifecycle.StartFailed, lifecycle.Exited:
		k.logf("%s: %s (%s)", ev.what, ev.reason, ev.cause)
		k.status.LastError, k.status.Cause, k.status.Hints = ev.reason, ev.cause, ev.hints
	case lifecycle.HasStopped:
		k.logf("stopped: %+v", *ev.release)
		k.status.Release = ev.release
	}
}

// describe writes the status that follows from where the machine stands.
func (k *keeper) describe(in lifecycle.Input) {
	m, s := k.machine, &k.status
	state := stateOf[m.Work]
	if state != s.State {
		s.Since = time.Now().UTC()
	}
	if m.Generation != s.Generation {
		s.LastError, s.Cause, s.Hints = "", "", nil
	}
	s.State, s.Generation, s.Restarts, s.Warnings = state, m.Generation, m.Restarts, m.Warnings
	s.Persist = in.Wanted.Persist
	s.Progress, s.Warden = lifecycle.Progress{}, k.warden()
	s.Spec, s.Endpoint, s.Server, s.Memory, s.LoadMS = nil, nil, lifecycle.Process{}, lifecycle.Measured{}, 0
	switch m.Work {
	case lifecycle.WorkStart:
		s.Progress = lifecycle.Progress{Phase: "starting"}
		if in.Wanted.Generation == m.Generation && m.Choice < len(in.Wanted.Choices) {
			s.Spec = &in.Wanted.Choices[m.Choice]
		}
	case lifecycle.WorkPause:
		s.Progress = lifecycle.Progress{Phase: "waiting to start again after a crash", Detail: m.LastReason}
		s.Spec = &k.running.spec
	case lifecycle.WorkRun, lifecycle.WorkStop:
		r := k.running
		s.Spec, s.Endpoint, s.Server, s.Memory, s.LoadMS = &r.spec, &r.endpoint, process(r.process), r.memory, r.loadMS
	case lifecycle.WorkCancel:
		s.Spec = &k.running.spec
	}
	if m.Work != lifecycle.Idle { // at the end finish writes
		k.write()
	}
	if m.Work == lifecycle.WorkRun {
		freeOSMemory()
	}
}

// warden is the present one, zero where none was needed yet.
func (k *keeper) warden() lifecycle.Process {
	if k.link == nil {
		return lifecycle.Process{}
	}
	return process(k.link.identity())
}

// rest is the end of the work for a keeper that somebody looks at: it waits for more.
func (k *keeper) rest(in lifecycle.Input) {
	if k.status.State != lifecycle.Off || k.status.Generation != in.Wanted.Generation {
		k.status.Since = time.Now().UTC()
	}
	k.status.State, k.status.Generation, k.status.Persist = lifecycle.Off, in.Wanted.Generation, false
	k.status.Spec, k.status.Endpoint, k.status.Server = nil, nil, lifecycle.Process{}
	k.write()
}

// finish writes the end and lets go of the keeper's lock. The folder's lock is held where it could be had, so that
// whoever comes next finds either a keeper that saw his lease, or none.
func (k *keeper) finish(in lifecycle.Input) {
	k.status.State, k.status.Generation, k.status.Persist = lifecycle.Off, in.Wanted.Generation, false
	k.status.Since = time.Now().UTC()
	k.status.Keeper, k.status.KeeperAt, k.status.Warden = lifecycle.Process{}, time.Time{}, lifecycle.Process{}
	k.write()
	_ = k.lock.Release()
}

// endNow is for a keeper that is told to end: the engine goes, whatever the leases say.
func (k *keeper) endNow() error {
	k.logf("keeper is told to end, in state %s", k.machine.Work)
	for k.machine.Work != lifecycle.Idle && k.machine.Work != lifecycle.WorkFailed && k.machine.Work != lifecycle.WorkPause {
		in := lifecycle.Input{Now: time.Now(), Event: lifecycle.Woken, Wanted: k.wanted}
		in.Wanted.Stop = true
		var do []lifecycle.Effect
		k.machine, do, _ = k.machine.Step(in)
		k.act(do)
		ev := <-k.events
		if ev.of != k.running {
			continue
		}
		k.note(ev)
		in.Event = ev.what
		k.machine, do, _ = k.machine.Step(in)
		k.act(do)
	}
	if l := k.lockFolder(); l != nil {
		defer l.Release()
	}
	k.status.Spec, k.status.Endpoint, k.status.Server = nil, nil, lifecycle.Process{}
	k.status.LastError = "the keeper was told to end"
	k.finish(lifecycle.Input{Wanted: k.wanted})
	return nil
}

// act does what an ending keeper still has to do.
func (k *keeper) act(do []lifecycle.Effect) {
	for _, effect := range do {
		switch effect {
		case lifecycle.DoCancel:
			k.cancel()
		case lifecycle.DoStop:
			k.stop()
		}
	}
}

// close is the orderly end of everything that the keeper itself started.
func (k *keeper) close() {
	if k.link != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		k.link.bye(ctx)
	}
	k.watcher.close()
}
