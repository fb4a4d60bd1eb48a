package lifecycle

import (
	"slices"
	"testing"
	"time"
)

// play drives a machine: each step is an event and what the world looks like then.
type play struct {
	t  *testing.T
	m  Machine
	in Input
}

func newPlay(t *testing.T) *play {
	return &play{t: t, in: Input{Now: noon, Leases: 1, Wanted: Wanted{Generation: 1, Choices: []Spec{large, small}}}}
}

func (p *play) step(what Happened, want Work, do ...Effect) time.Time {
	p.t.Helper()
	p.in.Event = what
	next, got, wake := p.m.Step(p.in)
	if next.Work != want || !slices.Equal(got, do) {
		p.t.Fatalf("%s at %s: %s %v, want %s %v", what, p.m.Work, next.Work, got, want, do)
	}
	p.m = next
	return wake
}

func (p *play) after(d time.Duration) *play { p.in.Now = p.in.Now.Add(d); return p }

func ready(t *testing.T) *play {
	p := newPlay(t)
	p.step(Woken, WorkStart, DoStart)
	if wake := p.step(Started, WorkRun); !wake.IsZero() {
		t.Errorf("a ready engine that is held needs no clock, wakes at %v", wake)
	}
	return p
}

func TestLastOneOut(t *testing.T) {
	p := ready(t)
	p.in.Leases = 0
	wake := p.step(Woken, WorkRun)
	if !wake.Equal(noon.Add(Grace)) {
		t.Errorf("wakes at %v", wake)
	}
	p.after(Grace-1).step(Woken, WorkRun)
	p.after(1).step(Woken, WorkStop, DoStop)
	p.step(Woken, WorkStop)
	p.step(HasStopped, Idle, DoEnd)
}

func TestNextSessionWithinTheGrace(t *testing.T) {
	p := ready(t)
	p.in.Leases = 0
	p.step(Woken, WorkRun)
	p.after(Grace / 2).in.Leases = 1
	p.step(Woken, WorkRun)
	p.after(time.Hour).in.Leases = 0
	if wake := p.step(Woken, WorkRun); !wake.Equal(p.in.Now.Add(Grace)) {
		t.Errorf("the grace has to begin anew, wakes at %v", wake)
	}
}

func TestSessionComesWhileItStops(t *testing.T) {
	p := ready(t)
	p.in.Leases = 0
	p.step(Woken, WorkRun)
	p.after(Grace).step(Woken, WorkStop, DoStop)
	p.in.Leases, p.in.Wanted.Generation = 1, 2
	p.step(Woken, WorkStop)
	p.step(HasStopped, WorkStart, DoStart)
	if p.m.Generation != 2 {
		t.Errorf("generation %d", p.m.Generation)
	}
}

func TestPersist(t *testing.T) {
	p := ready(t)
	p.in.Wanted.Persist = true
	p.in.Leases = 0
	p.step(Woken, WorkRun)
	if wake := p.after(24*time.Hour).step(Woken, WorkRun); !wake.IsZero() {
		t.Errorf("wakes at %v", wake)
	}
	p.in.Wanted.Stop, p.in.Wanted.Generation = true, 2
	p.step(Woken, WorkStop, DoStop)
	p.step(HasStopped, Idle, DoEnd)
}

func TestIdleLimit(t *testing.T) {
	p := ready(t)
	p.in.Wanted.Persist, p.in.Wanted.IdleLimit = true, time.Hour
	p.in.Leases = 0
	if wake := p.step(Woken, WorkRun); !wake.Equal(noon.Add(time.Hour)) {
		t.Errorf("wakes at %v", wake)
	}
	p.after(time.Hour-1).step(Woken, WorkRun)
	p.after(1).step(Woken, WorkStop, DoStop)
	p.step(HasStopped, Idle, DoEnd)
}

func TestStopWinsOverLeases(t *testing.T) {
	p := ready(t)
	p.in.Wanted.Stop, p.in.Wanted.Generation = true, 2
	p.step(Woken, WorkStop, DoStop)
	p.step(HasStopped, Idle, DoEnd)
}

func TestReplaced(t *testing.T) {
	p := ready(t)
	p.in.Wanted = Wanted{Generation: 2, Choices: []Spec{other}}
	p.step(Woken, WorkStop, DoStop)
	p.step(HasStopped, WorkStart, DoStart)
	p.step(Started, WorkRun)
}

func TestStartNobodyWantsAnyMore(t *testing.T) {
	for _, c := range []struct {
		name string
		end  Happened
	}{{"it gave up", StartFailed}, {"it won the race", Started}} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlay(t)
			p.step(Woken, WorkStart, DoStart)
			p.in.Leases = 0
			p.step(Woken, WorkStart)
			p.after(Grace).step(Woken, WorkCancel, DoCancel)
			p.step(Woken, WorkCancel)
			if c.end == Started {
				p.step(Started, WorkStop, DoStop)
				p.step(HasStopped, Idle, DoEnd)
				return
			}
			p.step(StartFailed, Idle, DoEnd)
		})
	}
}

func TestStartReplaced(t *testing.T) {
	p := newPlay(t)
	p.step(Woken, WorkStart, DoStart)
	p.in.Wanted = Wanted{Generation: 2, Choices: []Spec{other}}
	p.step(Woken, WorkCancel, DoCancel)
	p.step(StartFailed, WorkStart, DoStart)
	if p.m.Generation != 2 || p.m.Choice != 0 {
		t.Errorf("%+v", p.m)
	}
}

func TestOutOfMemoryStepsDown(t *testing.T) {
	p := newPlay(t)
	p.step(Woken, WorkStart, DoStart)
	p.in.Cause = OutOfMemory
	p.step(StartFailed, WorkStart, DoStart)
	if p.m.Choice != 1 || len(p.m.Warnings) != 1 {
		t.Errorf("%+v", p.m)
	}
	p.in.Reason = "no room"
	p.step(StartFailed, WorkFailed)
	if p.m.LastReason != "no room" || p.m.LastCause != OutOfMemory {
		t.Errorf("%+v", p.m)
	}
	p.in.Leases = 0
	p.step(Woken, WorkFailed) // the grace, for those who come to read why
	p.after(Grace).step(Woken, Idle, DoEnd)
}

func TestFailedStartsAgainWhenAsked(t *testing.T) {
	p := newPlay(t)
	p.step(Woken, WorkStart, DoStart)
	p.in.Cause = BadModel
	p.step(StartFailed, WorkFailed)
	p.step(Woken, WorkFailed)
	p.in.Wanted.Generation++
	p.step(Woken, WorkStart, DoStart)
}

func TestCrashBacksOffAndGivesUp(t *testing.T) {
	p := ready(t)
	p.in.Cause, p.in.Reason = Crashed, "it burst"
	var last time.Duration
	for i := range crashesForgiven {
		wake := p.step(Exited, WorkPause)
		wait := wake.Sub(p.in.Now)
		if wait <= last || wait > 10*time.Second {
			t.Errorf("crash %d: waits %v after %v", i, wait, last)
		}
		last = wait
		p.after(wait-1).step(Woken, WorkPause)
		p.after(1).step(Woken, WorkStart, DoStart)
		p.step(Started, WorkRun)
		if p.m.Restarts != i+1 {
			t.Errorf("%d restarts", p.m.Restarts)
		}
	}
	p.step(Exited, WorkFailed)
	if p.m.LastReason != "it burst" {
		t.Errorf("%+v", p.m)
	}
}

func TestCrashesFarApartAreForgiven(t *testing.T) {
	p := ready(t)
	for range 3 * crashesForgiven {
		p.after(crashWindow)
		wake := p.step(Exited, WorkPause)
		p.after(wake.Sub(p.in.Now)).step(Woken, WorkStart, DoStart)
		p.step(Started, WorkRun)
	}
}

func TestRestartThatFails(t *testing.T) {
	p := ready(t)
	p.step(Exited, WorkPause)
	p.after(time.Minute).step(Woken, WorkStart, DoStart)
	p.in.Cause = Crashed
	p.step(StartFailed, WorkPause)
	p.after(time.Minute).step(Woken, WorkStart, DoStart)
	p.step(StartFailed, WorkPause)
	p.after(time.Minute).step(Woken, WorkStart, DoStart)
	p.step(StartFailed, WorkFailed)
}

func TestCrashWithNobodyLeft(t *testing.T) {
	p := ready(t)
	p.step(Exited, WorkPause)
	p.in.Leases = 0
	p.step(Woken, WorkPause)
	p.after(Grace).step(Woken, Idle, DoEnd)
}

func TestExitedAfterStopIsNoCrash(t *testing.T) {
	p := ready(t)
	p.in.Wanted.Stop, p.in.Wanted.Generation = true, 2
	p.step(Woken, WorkStop, DoStop)
	p.step(Exited, WorkStop)
	p.step(HasStopped, Idle, DoEnd)
}

func TestKeeperForNobody(t *testing.T) {
	// The client was killed between the spawn and its lease: the keeper waits a moment, and goes.
	p := newPlay(t)
	p.in.Leases = 0
	p.step(Woken, Idle)
	p.after(Grace).step(Woken, Idle, DoEnd)
}

func TestStepKeepsNothingThatIsThoughtBetterOf(t *testing.T) {
	p := ready(t)
	p.in.Event, p.in.Wanted.Stop = Woken, true
	first, _, _ := p.m.Step(p.in)
	p.in.Wanted.Stop = false
	second, do, _ := p.m.Step(p.in)
	if first.Work != WorkStop || second.Work != WorkRun || len(do) != 0 {
		t.Errorf("%s, then %s %v", first.Work, second.Work, do)
	}
}
