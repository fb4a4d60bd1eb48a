//go:build linux

package keeper_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"localllm/lifecycle"
	"localllm/test/chaos/lab"
)

const soon = 5 * time.Second // the promise for everything that has to be gone

func TestColdJoinDisable(t *testing.T) {
	l := lab.New(t, false).WithProbe()
	a, b := l.Session(), l.Session()
	first := a.Enable("m")
	if first.Started != "cold" || !first.Detached || !first.Fresh || first.Sessions != 1 || first.Status.Endpoint == nil || first.Status.Memory.MeasuredBytes != 1<<30 {
		t.Fatalf("%+v", first)
	}
	if again := a.Enable("m"); again.Started != "joined" || again.Fresh || again.Sessions != 1 {
		t.Errorf("enabling twice: %+v", again)
	}
	second := b.Enable("m")
	if second.Started != "joined" || !second.Fresh || second.Sessions != 2 || second.Status.Server.PID != first.Status.Server.PID {
		t.Errorf("%+v", second)
	}
	quickest := second.Micros
	for range 4 { // a machine under load may be late once
		b.Must(lab.Order{Do: "disable"})
		quickest = min(quickest, b.Enable("m").Micros)
	}
	if quickest > 50_000 {
		t.Errorf("joining took %d µs at its quickest", quickest)
	}
	t.Logf("cold %d ms, joined %d µs", first.Micros/1000, second.Micros)
	if got := a.Must(lab.Order{Do: "disable"}); got.Stopped || got.Sessions != 1 || !strings.Contains(got.Reason, "held by") {
		t.Errorf("disable while another holds: %+v", got)
	}
	if len(l.Engines()) != 1 {
		t.Fatal("the engine went with the first session")
	}
	begin := time.Now()
	got := b.Must(lab.Order{Do: "disable"})
	if !got.Stopped || got.Released != 1<<30 || len(l.Engines()) != 0 || time.Since(begin) > 2*time.Second {
		t.Errorf("the last disable, after %v: %+v, engines %v", time.Since(begin), got, l.Engines())
	}
	t.Logf("disable %d ms", got.Micros/1000)
	l.NothingLeft(soon)
	if again := a.Enable("m"); again.Started != "cold" {
		t.Errorf("%+v", again)
	}
}

// The real engines have five rounds of this, in test/chaos.
func TestEightAtOnce(t *testing.T) {
	l := lab.New(t, false)
	for round := range 2 {
		sessions := make([]*lab.Session, 8)
		for i := range sessions {
			sessions[i] = l.Session()
		}
		var wg sync.WaitGroup
		answers := make([]lab.Answer, len(sessions))
		for i, s := range sessions {
			wg.Go(func() { answers[i] = s.Do(lab.Order{Do: "enable", Spec: lab.Spec("m")}) })
		}
		wg.Wait()
		cold := 0
		for i, a := range answers {
			if !a.OK {
				t.Fatalf("round %d, session %d: %s", round, i, a.Error)
			}
			if a.Started == "cold" {
				cold++
			}
			if a.Status.Server.PID != answers[0].Status.Server.PID {
				t.Errorf("round %d: two engines", round)
			}
		}
		if n := len(l.Engines()); n != 1 || cold != 1 || len(l.Processes("keeper")) != 1 {
			t.Fatalf("round %d: %d engines, %d cold, keepers %v", round, n, cold, l.Processes("keeper"))
		}
		for i, s := range sessions {
			if len(l.Engines()) != 1 {
				t.Fatalf("round %d: the engine ended before session %d of 8 left", round, i)
			}
			s.CloseInput()
			lab.Eventually(t, soon, "its lease goes", func() (bool, any) {
				r, err := l.Client().Status(t.Context())
				return err == nil && len(r.Leases) == len(sessions)-1-i, err
			})
		}
		l.NothingLeft(soon)
	}
}

func TestOtherModel(t *testing.T) {
	l := lab.New(t, false)
	a, b := l.Session(), l.Session()
	a.Enable("one")
	got := b.Do(lab.Order{Do: "enable", Spec: lab.Spec("two")})
	if got.Kind != "busy" || !strings.Contains(got.Error, "one") || !strings.Contains(got.Error, "pid") {
		t.Fatalf("want busy that names model and holder: %+v", got)
	}
	if r := b.Must(lab.Order{Do: "status"}); r.Sessions != 1 {
		t.Errorf("a refused session holds a lease: %+v", r)
	}
	// Only ours: replaced.
	if got := a.Enable("two"); got.Started != "cold" || got.Status.Spec.Model != "two" {
		t.Errorf("%+v", got)
	}
	if n := l.Engines(); len(n) != 1 {
		t.Errorf("engines: %v", n)
	}
	// Only persisted: replaced.
	a.Must(lab.Order{Do: "enable", Spec: lab.Spec("two"), Persist: true})
	a.CloseInput()
	lab.Eventually(t, soon, "the session is gone", func() (bool, any) {
		r, err := l.Client().Status(t.Context())
		return err == nil && len(r.Leases) == 0, err
	})
	if got := b.Enable("three"); got.Started != "cold" || got.Status.Spec.Model != "three" {
		t.Errorf("%+v", got)
	}
	b.KillAll()
	l.NothingLeft(soon)
}

func TestPersistOutlivesItsSession(t *testing.T) {
	l := lab.New(t, false)
	a, b := l.Session(), l.Session()
	a.Must(lab.Order{Do: "enable", Spec: lab.Spec("m"), Persist: true})
	a.KillAll()
	got := b.Must(lab.Order{Do: "join"})
	if got.Started != "joined" || len(l.Engines()) != 1 {
		t.Fatalf("%+v", got)
	}
	if got := b.Must(lab.Order{Do: "disable"}); !got.Stopped {
		t.Errorf("%+v", got)
	}
	l.NothingLeft(soon)
}

func TestDisableKeeps(t *testing.T) {
	l := lab.New(t, false)
	a := l.Session()
	a.Enable("m")
	if got := a.Must(lab.Order{Do: "disable", Keep: true}); got.Stopped || !strings.Contains(got.Reason, "stays") {
		t.Errorf("%+v", got)
	}
	lab.Eventually(t, soon, "the keeper saw the lease go", func() (bool, any) {
		r, err := l.Client().Status(t.Context())
		return err == nil && len(r.Leases) == 0, err
	})
	if len(l.Engines()) != 1 {
		t.Fatal("the engine did not stay")
	}
	if got := a.Must(lab.Order{Do: "disable"}); !got.Stopped {
		t.Errorf("%+v", got)
	}
	l.NothingLeft(soon)
}

func TestStepsDown(t *testing.T) {
	l := lab.New(t, false)
	a := l.Session()
	spec := lab.Spec("oom3000")
	spec.Context = 8192
	got := a.Must(lab.Order{Do: "enable", Spec: spec, Steps: []int{4096, 2048}})
	if got.Status.Spec.Context != 2048 || len(got.Warnings) != 2 || !strings.Contains(got.Warnings[1], "2048") {
		t.Errorf("%+v", got)
	}
	a.Must(lab.Order{Do: "disable"})
	if got := a.Do(lab.Order{Do: "enable", Spec: spec, Steps: []int{4096}}); got.Kind != "start" || got.Cause != string(lifecycle.OutOfMemory) {
		t.Errorf("%+v", got)
	}
	l.NothingLeft(soon)
}

func TestStillborn(t *testing.T) {
	l := lab.New(t, false)
	a := l.Session()
	got := a.Do(lab.Order{Do: "enable", Spec: lab.Spec("stillborn")})
	if got.Kind != "start" || !strings.Contains(got.Error, "weights are torn") {
		t.Errorf("want the engine's last words: %+v", got)
	}
	l.NothingLeft(soon)
	if r := a.Must(lab.Order{Do: "status"}); !strings.Contains(r.Status.LastError, "torn") || r.Sessions != 0 {
		t.Errorf("the status forgot why: %+v", r)
	}
	a.Enable("m")
}

func TestCancelLeavesNothing(t *testing.T) {
	l := lab.New(t, false)
	a := l.Session()
	got := a.Do(lab.Order{Do: "enable", Spec: lab.Spec("hang"), Hurry: 300})
	if got.OK || !strings.Contains(got.Error, "deadline") {
		t.Fatalf("%+v", got)
	}
	l.NothingLeft(soon)
}

func TestSharedStart(t *testing.T) {
	// A second session that comes while the first one's engine loads waits for the same engine, and the first one's
	// death does not take it away.
	l := lab.New(t, false)
	a, b := l.Session(), l.Session()
	a.Send(lab.Order{Do: "enable", Spec: lab.Spec("slow")})
	lab.Eventually(t, soon, "the load begins", func() (bool, any) { s := l.Status(); return s.State == lifecycle.Loading, s })
	b.Send(lab.Order{Do: "enable", Spec: lab.Spec("slow")})
	lab.Eventually(t, soon, "two leases", func() (bool, any) {
		r, err := l.Client().Status(t.Context())
		return err == nil && len(r.Leases) == 2, r
	})
	a.KillAll()
	if got := b.Answer(); !got.OK || got.Started != "joined" || !slices.Contains(got.Progress, "loading") {
		t.Fatalf("want to have joined, and to have heard of the load: %+v", got)
	}
	if len(l.Engines()) != 1 {
		t.Errorf("engines: %v", l.Engines())
	}
	b.KillAll()
	l.NothingLeft(soon)
}

func TestMemoryThatDoesNotComeBack(t *testing.T) {
	l := lab.New(t, false).WithProbe()
	a := l.Session()
	a.Enable("m")
	hog(t, l)
	got := a.Must(lab.Order{Do: "disable"})
	if !got.Stopped || len(got.HeldBy) != 1 || got.HeldBy[0] != "a hog" {
		t.Errorf("want to hear who holds it: %+v", got)
	}
}
