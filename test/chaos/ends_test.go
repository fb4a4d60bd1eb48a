//go:build linux

package chaos

import (
	"syscall"
	"testing"
	"time"

	"localllm/internal/proc"
	"localllm/lifecycle"
	"localllm/test/chaos/lab"
)

const soon = 5 * time.Second

func kill(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if pid <= 1 {
		t.Fatalf("no process to signal: pid %d", pid)
	}
	_ = syscall.Kill(pid, sig)
}

// TestEndsOfSessions ends a session in each of the ways that clients have been seen to. gone: nothing of ours after
// 5 s. again: the client lives on, and its next server joins without a reload.
func TestEndsOfSessions(t *testing.T) {
	for _, c := range []struct {
		name  string
		end   func(t *testing.T, l *lab.Lab, s *lab.Session)
		again bool
	}{
		{"end of input", func(_ *testing.T, _ *lab.Lab, s *lab.Session) { s.CloseInput() }, false},
		{"TERM", func(_ *testing.T, _ *lab.Lab, s *lab.Session) { s.Signal(syscall.SIGTERM) }, false},
		{"INT, TERM, KILL", func(_ *testing.T, _ *lab.Lab, s *lab.Session) {
			s.Signal(syscall.SIGINT)
			<-time.After(100 * time.Millisecond)
			s.Signal(syscall.SIGTERM)
			<-time.After(400 * time.Millisecond)
			s.Signal(syscall.SIGKILL)
		}, false},
		{"KILL of the server, its client lives", func(_ *testing.T, _ *lab.Lab, s *lab.Session) { s.Signal(syscall.SIGKILL) }, true},
		{"KILL of the server's group, its client lives", func(_ *testing.T, _ *lab.Lab, s *lab.Session) { s.KillGroup() }, true},
		{"KILL of the client", func(_ *testing.T, _ *lab.Lab, s *lab.Session) { s.KillClient() }, false},
		{"KILL of client and server at once", func(_ *testing.T, _ *lab.Lab, s *lab.Session) { s.KillAll() }, false},
		{"KILL of all descendants, then of the client", func(t *testing.T, l *lab.Lab, s *lab.Session) {
			killDescendants(t, s.Client())
			if len(l.Processes("keeper")) != 1 || len(l.Engines()) != 1 {
				t.Error("the keeper or the engine is a descendant of the client")
			}
			s.KillClient()
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := lab.New(t, true)
			for range lab.Rounds(3, 25) {
				s := l.Session()
				if got := s.Enable(gguf(t)); got.Started != "cold" || !got.Detached {
					t.Fatalf("%+v", got)
				}
				engine := l.Status().Server.PID
				c.end(t, l, s)
				if c.again {
					lab.Eventually(t, soon, "the server is gone", func() (bool, any) {
						_, err := proc.Identify(s.Server)
						return err != nil, s.Server
					})
					s.Restart()
					if got := s.Enable(gguf(t)); got.Started != "joined" || got.Status.Server.PID != engine {
						t.Fatalf("not joined again without a reload: %+v", got)
					}
					s.CloseInput()
				}
				l.NothingLeft(soon)
				s.KillAll()
			}
		})
	}
}

// TestServerThatNobodyStartsAgain is the end of forgiveness. It takes its half minute once.
func TestServerThatNobodyStartsAgain(t *testing.T) {
	t.Parallel()
	l := lab.New(t, true)
	s := l.Session()
	s.Enable(gguf(t))
	begin := time.Now()
	s.Signal(syscall.SIGKILL)
	l.NothingLeft(lifecycle.Forgiveness + soon)
	if took := time.Since(begin); took < lifecycle.Forgiveness-time.Second {
		t.Errorf("gone after %v already: its client had no time to start the server again", took)
	}
}

func killDescendants(t *testing.T, pid int) {
	t.Helper()
	for _, child := range descendants(pid) {
		kill(t, child, syscall.SIGKILL)
	}
}

// TestEndsOfOurs kills what is ours: keeper, engine, all at once.
func TestEndsOfOurs(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(t *testing.T, l *lab.Lab, s []*lab.Session)
		back bool // the engine is started again for the sessions that live
	}{
		{"KILL of the keeper", func(t *testing.T, l *lab.Lab, _ []*lab.Session) { kill(t, l.Status().Keeper.PID, syscall.SIGKILL) }, false},
		{"KILL of the keeper and all sessions at once", func(t *testing.T, l *lab.Lab, s []*lab.Session) {
			kill(t, l.Status().Keeper.PID, syscall.SIGKILL)
			for _, one := range s {
				kill(t, one.Server, syscall.SIGKILL)
				kill(t, one.Client(), syscall.SIGKILL)
			}
		}, false},
		{"TERM of the keeper", func(t *testing.T, l *lab.Lab, _ []*lab.Session) { kill(t, l.Status().Keeper.PID, syscall.SIGTERM) }, false},
		{"KILL of the engine", func(t *testing.T, l *lab.Lab, _ []*lab.Session) { kill(t, l.Status().Server.PID, syscall.SIGKILL) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := lab.New(t, true)
			for range lab.Rounds(3, 25) {
				sessions := []*lab.Session{l.Session(), l.Session()}
				for _, s := range sessions {
					s.Enable(gguf(t))
				}
				was := l.Status()
				c.end(t, l, sessions)
				if c.back {
					lab.Eventually(t, 20*time.Second, "started again", func() (bool, any) {
						s := l.Status()
						return s.State == lifecycle.Ready && s.Server.PID != was.Server.PID, s
					})
					sessions[0].CloseInput()
					sessions[1].CloseInput()
				}
				l.NothingLeft(soon)
				fresh := l.Session()
				if got := fresh.Enable(gguf(t)); got.Started != "cold" {
					t.Errorf("the next enable: %+v", got)
				}
				fresh.KillAll()
				for _, s := range sessions {
					s.KillAll()
				}
				l.NothingLeft(soon)
			}
		})
	}
}

func TestKillWhileLoading(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(t *testing.T, l *lab.Lab, s *lab.Session)
		ok   bool // the waiting session gets its engine all the same
	}{
		{"engine", func(t *testing.T, l *lab.Lab, _ *lab.Session) {
			for _, p := range l.Engines() {
				kill(t, p.PID, syscall.SIGKILL)
			}
		}, false},
		{"keeper", func(t *testing.T, l *lab.Lab, _ *lab.Session) {
			for _, p := range l.Processes("keeper") {
				kill(t, p.PID, syscall.SIGKILL)
			}
		}, true},
		{"session", func(_ *testing.T, _ *lab.Lab, s *lab.Session) { s.KillAll() }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := lab.New(t, true)
			caught := 0
			for tries := 0; caught < lab.Rounds(3, 25); tries++ {
				if tries > 20*lab.Rounds(3, 25) {
					t.Fatalf("caught only %d starts", caught)
				}
				s := l.Session()
				s.Send(lab.Order{Do: "enable", Spec: lab.Spec(gguf(t))})
				lab.Eventually(t, soon, "an engine begins", func() (bool, any) { return len(l.Engines()) > 0 && len(l.Processes("keeper")) > 0, nil })
				ready := l.Status().State == lifecycle.Ready
				c.end(t, l, s)
				got := s.Answer()
				if !ready && (c.name == "session" || got.OK == c.ok) {
					caught++
				} else if !ready && !got.OK {
					t.Errorf("%+v", got)
				}
				s.KillAll()
				l.NothingLeft(soon)
			}
		})
	}
}

func TestSuspendedEngine(t *testing.T) {
	l := lab.New(t, true)
	for range lab.Rounds(3, 25) {
		s := l.Session()
		engine := s.Enable(gguf(t)).Status.Server.PID
		kill(t, engine, syscall.SIGSTOP)
		lab.Eventually(t, soon, "status says so", func() (bool, any) {
			r := s.Must(lab.Order{Do: "status"})
			return r.Health == "stopped", r.Health
		})
		if got := s.Enable(gguf(t)); got.Started != "cold" || got.Status.Server.PID == engine {
			t.Errorf("%+v", got)
		}
		kill(t, l.Status().Server.PID, syscall.SIGSTOP)
		s.CloseInput()
		l.NothingLeft(soon)
		s.KillAll()
	}
}

// TestEightAtOnce is eight sessions that enable at the same moment and leave one after the other.
func TestEightAtOnce(t *testing.T) {
	l := lab.New(t, true)
	for round := range lab.Rounds(5, 25) {
		sessions := make([]*lab.Session, 8)
		for i := range sessions {
			sessions[i] = l.Session()
		}
		for _, s := range sessions {
			s.Send(lab.Order{Do: "enable", Spec: lab.Spec(gguf(t))})
		}
		cold, engines := 0, map[int]bool{}
		for _, s := range sessions {
			got := s.Answer()
			if !got.OK {
				t.Fatalf("round %d: %s", round, got.Error)
			}
			if got.Started == "cold" {
				cold++
			}
			engines[got.Status.Server.PID] = true
		}
		if cold != 1 || len(engines) != 1 || len(l.Engines()) != 1 || len(l.Processes("keeper")) != 1 {
			t.Fatalf("round %d: %d cold, engines %v, processes %v", round, cold, engines, l.Processes(""))
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

// TestPromisedTimes measures what is promised to a session. The limits are those of the promise; the figures are in
// the log.
func TestPromisedTimes(t *testing.T) {
	l := lab.New(t, true)
	a, b := l.Session(), l.Session()
	cold := a.Enable(gguf(t))
	joined := b.Enable(gguf(t))
	for range 4 { // a machine under load may be late once
		b.Must(lab.Order{Do: "disable"})
		if again := b.Enable(gguf(t)); again.Micros < joined.Micros {
			joined = again
		}
	}
	b.Must(lab.Order{Do: "disable"})
	begin := time.Now()
	if got := a.Must(lab.Order{Do: "disable"}); !got.Stopped || len(l.Engines()) != 0 {
		t.Errorf("%+v, engines %v", got, l.Engines())
	}
	gone := time.Since(begin)
	t.Logf("cold %d ms, joined %d µs, disabled and gone in %v", cold.Micros/1000, joined.Micros, gone)
	if joined.Micros > 50_000 || gone > 2*time.Second {
		t.Errorf("joined in %d µs (promised: 50 ms), gone in %v (promised: 2 s)", joined.Micros, gone)
	}
}
