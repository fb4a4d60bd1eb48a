package lifecycle

import "time"

// Grace is how long an engine that nobody holds any more is kept: a session may follow another at once.
const Grace = 500 * time.Millisecond

// Crashes are forgiven up to a number within a time; each restart waits longer.
const (
	crashesForgiven = 3
	crashWindow     = 10 * time.Minute
	firstBackOff    = 500 * time.Millisecond // then four times as long
)

// Work is what the keeper is at.
type Work string

// The works.
const (
	Idle       Work = "idle"
	WorkStart  Work = "starting"
	WorkCancel Work = "cancelling" // a start that nobody wants any more
	WorkRun    Work = "running"
	WorkPause  Work = "pausing" // between a crash and its restart
	WorkStop   Work = "stopping"
	WorkFailed Work = "failed" // the leases are there, the engine is given up
)

// Happened is what woke the keeper.
type Happened string

// The events. Woken is a look for any other reason: a lease came or went, something else is wanted, time passed.
const (
	Woken       Happened = "woken"
	Started     Happened = "started"
	StartFailed Happened = "start-failed" // nothing of it is left
	Exited      Happened = "exited"       // the engine ended by itself
	HasStopped  Happened = "stopped"
)

// Effect is something the keeper has to do.
type Effect string

// The effects.
const (
	DoStart  Effect = "start"  // the machine's Choice of the wanted
	DoCancel Effect = "cancel" // the start under way
	DoStop   Effect = "stop"   // the running server
	DoEnd    Effect = "end"    // the keeper itself
)

// Input is one look at the world.
type Input struct {
	Now    time.Time
	Event  Happened
	Wanted Wanted
	Leases int // live ones

	Cause  Cause  // of StartFailed and Exited
	Reason string // likewise
}

// Machine is the keeper's side: events in, effects out. It is a value: a step that the keeper thinks better of is
// simply not kept.
type Machine struct {
	Work       Work
	Generation int // of the wanted being handled
	Choice     int // of its choices
	Restarts   int
	Warnings   []string
	LastCause  Cause
	LastReason string

	crashes   []time.Time
	restartAt time.Time
	loneSince time.Time // since when nobody holds a lease, zero while somebody does
}

// Step is what follows from one look. wake is when to look again if nothing happens before, zero for never.
func (m Machine) Step(in Input) (next Machine, do []Effect, wake time.Time) {
	if m.Work == "" {
		m.Work = Idle
	}
	switch {
	case in.Leases > 0:
		m.loneSince = time.Time{}
	case m.loneSince.IsZero():
		m.loneSince = in.Now
	}
	m, do = m.happen(in)
	if len(do) > 0 {
		return m, do, time.Time{}
	}
	return m.settle(in)
}

// happen takes in the event alone.
func (m Machine) happen(in Input) (Machine, []Effect) {
	switch in.Event {
	case Started:
		if m.Work == WorkCancel {
			m.Work = WorkStop
			return m, []Effect{DoStop}
		}
		m.Work = WorkRun
	case StartFailed:
		return m.startFailed(in)
	case Exited:
		if m.Work == WorkRun {
			return m.crashed(in), nil
		}
	case HasStopped:
		m.Work = Idle
	}
	return m, nil
}

func (m Machine) startFailed(in Input) (Machine, []Effect) {
	if m.Work == WorkCancel {
		m.Work = Idle
		return m, nil
	}
	if m.Restarts > 0 && in.Cause != OutOfMemory {
		return m.crashed(in), nil
	}
	if in.Wanted.Generation == m.Generation {
		if choice, warning, ok := StepDown(in.Wanted.Choices, m.Choice, in.Cause); ok {
			m.Choice, m.Warnings = choice, append(m.Warnings[:len(m.Warnings):len(m.Warnings)], warning)
			return m, []Effect{DoStart}
		}
	}
	m.Work, m.LastCause, m.LastReason = WorkFailed, in.Cause, in.Reason
	return m, nil
}

// crashed waits for a restart, or gives up after too many.
func (m Machine) crashed(in Input) Machine {
	recent := []time.Time{in.Now}
	for _, at := range m.crashes {
		if in.Now.Sub(at) < crashWindow {
			recent = append(recent, at)
		}
	}
	m.crashes, m.LastCause, m.LastReason = recent, in.Cause, in.Reason
	if len(recent) > crashesForgiven {
		m.Work = WorkFailed
		return m
	}
	m.Work = WorkPause
	m.restartAt = in.Now.Add(firstBackOff << (2 * (len(recent) - 1)))
	return m
}

// settle compares what is with what is wanted.
func (m Machine) settle(in Input) (Machine, []Effect, time.Time) {
	needed, until := m.needed(in)
	fresh := in.Wanted.Generation != m.Generation
	begin := len(in.Wanted.Choices) > 0 && !in.Wanted.Stop &&
		(fresh && (in.Leases > 0 || in.Wanted.Persist) || m.Work == Idle && in.Leases > 0)
	switch m.Work {
	case WorkStart:
		if !needed || fresh {
			m.Work = WorkCancel
			return m, []Effect{DoCancel}, time.Time{}
		}
	case WorkRun:
		if !needed || fresh {
			m.Work = WorkStop
			return m, []Effect{DoStop}, time.Time{}
		}
	case Idle, WorkFailed, WorkPause:
		switch {
		case begin:
			return m.begin(in.Wanted), []Effect{DoStart}, time.Time{}
		case !needed:
			m.Work = Idle
			return m, []Effect{DoEnd}, time.Time{}
		case m.Work == WorkPause && !in.Now.Before(m.restartAt):
			m.Work = WorkStart
			m.Restarts++
			return m, []Effect{DoStart}, time.Time{}
		case m.Work == WorkPause:
			return m, nil, Sooner(m.restartAt, until)
		}
	}
	return m, nil, until
}

func (m Machine) begin(w Wanted) Machine {
	return Machine{Work: WorkStart, Generation: w.Generation, loneSince: m.loneSince}
}

// needed reports whether anybody needs the engine, and until when that holds without an event.
func (m Machine) needed(in Input) (bool, time.Time) {
	switch {
	case in.Wanted.Stop:
		return false, time.Time{}
	case in.Leases > 0:
		return true, time.Time{}
	case in.Wanted.Persist && in.Wanted.IdleLimit == 0:
		return true, time.Time{}
	}
	end := m.loneSince.Add(max(Grace, in.idleLimit()))
	return in.Now.Before(end), end
}

func (in Input) idleLimit() time.Duration {
	if in.Wanted.Persist {
		return in.Wanted.IdleLimit
	}
	return 0
}

// Sooner is the earlier of two times, of which zero means never.
func Sooner(a, b time.Time) time.Time {
	if b.IsZero() || !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}
