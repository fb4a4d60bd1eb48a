package keeper

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"localllm/internal/filelock"
	"localllm/lifecycle"
)

// keeper is one keeper's state. The goroutine of run owns it; everything else sends events.
type keeper struct {
	o    Options
	f    folder
	lock *filelock.Lock // keeper.lock
	say  io.Writer

	machine  lifecycle.Machine
	status   lifecycle.Status
	wanted   lifecycle.Wanted     // as last read
	released map[string]time.Time // lease id → when its lock was first seen free
	gone     bool                 // a lease that does not live any more lies in the folder
	relook   time.Time            // when a lease's time is up

	events  chan event
	wake    chan struct{} // something changed in the folder
	moved   chan struct{} // there is new progress
	latest  atomic.Pointer[lifecycle.Progress]
	watcher *watcher
	link    *link // to the warden

	cancel  context.CancelFunc // of the start under way
	running *running
}

// event is what a worker has to say.
type event struct {
	what    lifecycle.Happened
	of      *running // which start, server or stop
	cause   lifecycle.Cause
	reason  string
	hints   []string
	release *lifecycle.Release
}

func newKeeper(o Options, f folder, lock *filelock.Lock, say io.Writer) *keeper {
	now := time.Now().UTC()
	k := &keeper{
		o: o, f: f, lock: lock, say: say, released: map[string]time.Time{},
		events: make(chan event, 8), wake: make(chan struct{}, 1), moved: make(chan struct{}, 1),
	}
	k.status = lifecycle.Status{State: lifecycle.Off, Keeper: self(), KeeperAt: now, Since: now}
	k.watcher = newWatcher(f, k.wake)
	return k
}

func (k *keeper) logf(format string, args ...any) {
	fmt.Fprintf(k.say, "%s %s\n", time.Now().UTC().Format(time.RFC3339Nano), fmt.Sprintf(format, args...))
}

// run goes from event to event until nothing is left to do, or ctx ends.
func (k *keeper) run(ctx context.Context) error {
	k.logf("keeper %d begins", k.status.Keeper.PID)
	if l, err := k.f.lock(ctx); err == nil {
		repairLocked(k.f)
		_ = l.Release()
	}
	ev := event{what: lifecycle.Woken}
	for {
		wake, end := k.turn(ev)
		if end {
			k.logf("keeper ends: nobody needs the engine")
			return nil
		}
		var ok bool
		if ev, ok = k.next(ctx, wake); !ok {
			return k.endNow()
		}
	}
}

const progressPace = 100 * time.Millisecond

// next waits for whatever comes first. It is false when ctx has ended.
func (k *keeper) next(ctx context.Context, wake time.Time) (event, bool) {
	var due <-chan time.Time
	if !wake.IsZero() {
		timer := time.NewTimer(time.Until(wake))
		defer timer.Stop()
		due = timer.C
	}
	var shown <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return event{}, false
		case ev := <-k.events:
			return ev, true
		case <-k.wake:
			return event{what: lifecycle.Woken}, true
		case <-due:
			return event{what: lifecycle.Woken}, true
		case <-k.moved:
			if shown == nil {
				shown = time.After(k.untilShown())
			}
		case <-shown:
			shown = nil
			k.show()
		}
	}
}

// untilShown keeps progress from being written more than ten times a second, and writes a new phase at once.
func (k *keeper) untilShown() time.Duration {
	if p := k.latest.Load(); p != nil && p.Phase == k.status.Progress.Phase {
		return progressPace
	}
	return 0
}

func (k *keeper) show() {
	p := k.latest.Load()
	if p == nil || k.machine.Work != lifecycle.WorkStart {
		return
	}
	k.status.Progress = *p
	if p.Phase != "starting" {
		k.status.State = lifecycle.Loading
	}
	k.write()
}

func (k *keeper) write() {
	if err := k.f.writeStatus(k.status); err != nil {
		k.logf("%v", err) // a full disk must not keep the engine from being stopped
	}
}

// turn is one step: look, decide, act. What takes something away from others is decided again under the folder's
// lock, so that a session that takes its lease at this moment is either seen or sees what was decided.
func (k *keeper) turn(ev event) (wake time.Time, end bool) {
	if ev.of != nil && ev.of != k.running {
		return time.Now(), false // of a server long replaced: just look again
	}
	k.note(ev)
	in := k.look(ev)
	next, do, wake := k.machine.Step(in)
	if len(do) > 0 || k.gone {
		if l := k.lockFolder(); l != nil {
			defer l.Release()
			in = k.look(ev)
			next, do, wake = k.machine.Step(in)
		}
	}
	before := k.machine.Work
	k.machine = next
	for _, effect := range do {
		k.logf("%s: %s, %d leases, generation %d", in.Event, effect, in.Leases, in.Wanted.Generation)
	}
	if before != next.Work || len(do) > 0 || in.Event != lifecycle.Woken || k.status.Warden != k.warden() {
		k.describe(in)
	}
	for _, effect := range do {
		switch effect {
		case lifecycle.DoStart:
			k.start(in.Wanted, next.Choice)
		case lifecycle.DoCancel:
			k.cancel()
		case lifecycle.DoStop:
			k.stop()
		case lifecycle.DoEnd:
			if k.o.Foreground {
				k.rest(in)
				return time.Time{}, false
			}
			k.finish(in)
			return time.Time{}, true
		}
	}
	return lifecycle.Sooner(wake, k.relook), false
}

func (k *keeper) lockFolder() *filelock.Lock {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	// Somebody who was stopped with the lock in his hands must not keep an engine alive. A client that comes in
	// between finds the keeper gone and starts another.
	l, err := k.f.lock(ctx)
	if err != nil {
		k.logf("going on without the folder's lock: %v", err)
		return nil
	}
	k.sweep()
	return l
}

// look reads the folder. It starts to watch what is new there.
func (k *keeper) look(ev event) lifecycle.Input {
	if w, err := k.f.wanted(); err == nil {
		k.wanted = w
	} else {
		k.logf("%v", err)
	}
	in := lifecycle.Input{Now: time.Now(), Event: ev.what, Wanted: k.wanted, Cause: ev.cause, Reason: ev.reason}
	seen, err := k.f.observe()
	if err != nil {
		k.logf("%v", err)
		in.Leases = 1 // not to be able to look is no reason to stop
		return in
	}
	k.gone, k.relook = false, time.Time{}
	for _, o := range seen {
		k.remember(&o)
		live, until := o.Live(in.Now)
		if !live {
			k.gone = true
			continue
		}
		in.Leases++
		k.relook = lifecycle.Sooner(k.relook, until)
		k.watcher.lease(k.f, o)
	}
	return in
}

// remember keeps when a lease's lock was first seen free.
func (k *keeper) remember(o *lifecycle.Observed) {
	if !o.Orphan() {
		delete(k.released, o.ID)
		return
	}
	if _, ok := k.released[o.ID]; !ok {
		k.released[o.ID] = time.Now()
	}
	o.Released = k.released[o.ID]
}

// sweep removes the leases that live no more. The caller holds the folder's lock.
func (k *keeper) sweep() {
	seen, err := k.f.observe()
	if err != nil {
		return
	}
	k.f.sweepLeases(seen, func(o lifecycle.Observed) bool {
		k.remember(&o)
		live, _ := o.Live(time.Now())
		return !live
	})
	k.f.clean()
}
