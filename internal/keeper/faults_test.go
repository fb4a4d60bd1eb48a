//go:build linux

package keeper_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"localllm/internal/keeper"
	"localllm/internal/proc"
	"localllm/internal/session"
	"localllm/lifecycle"
	"localllm/test/chaos/lab"
)

func hog(t *testing.T, l *lab.Lab) {
	t.Helper()
	if err := os.WriteFile(l.Probe+".hog", nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func kill(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if pid <= 1 {
		t.Fatalf("no process to signal: pid %d", pid)
	}
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatal(err)
	}
}

func TestCrashIsStartedAgain(t *testing.T) {
	l := lab.New(t, false)
	a := l.Session()
	pid := a.Enable("m").Status.Server.PID
	kill(t, pid, syscall.SIGKILL)
	lab.Eventually(t, 10*time.Second, "another engine is ready", func() (bool, any) {
		s := l.Status()
		return s.State == lifecycle.Ready && s.Server.PID != pid && s.Restarts == 1, s
	})
	if got := a.Enable("m"); got.Started != "joined" {
		t.Errorf("%+v", got)
	}
	a.CloseInput()
	l.NothingLeft(soon)
}

func TestCrashAgainAndAgain(t *testing.T) {
	l := lab.New(t, false)
	a := l.Session()
	a.Do(lab.Order{Do: "enable", Spec: lab.Spec("crash")})
	lab.Eventually(t, 60*time.Second, "it is given up", func() (bool, any) { s := l.Status(); return s.State == lifecycle.Failed, s })
	r := a.Must(lab.Order{Do: "status"})
	if !strings.Contains(r.Status.LastError, "out of patience") || r.Status.Restarts != 3 {
		t.Errorf("%+v", r.Status)
	}
	l.NoEngine(soon)
	if got := a.Enable("m"); got.Started != "cold" {
		t.Errorf("the next enable: %+v", got)
	}
	a.KillAll()
	l.NothingLeft(soon)
}

func TestKeeperKilled(t *testing.T) {
	for _, model := range []string{"m", "stubborn", "family"} {
		t.Run(model, func(t *testing.T) {
			l := lab.New(t, false)
			a := l.Session()
			a.Enable(model)
			kill(t, l.Status().Keeper.PID, syscall.SIGKILL)
			l.NothingLeft(soon)
			if got := a.Enable(model); got.Started != "cold" {
				t.Errorf("%+v", got)
			}
			a.KillAll()
			l.NothingLeft(soon)
		})
	}
}

func TestKeeperKilledWhileSomebodyWaits(t *testing.T) {
	l := lab.New(t, false)
	a := l.Session()
	a.Send(lab.Order{Do: "enable", Spec: lab.Spec("slow")})
	lab.Eventually(t, soon, "the load begins", func() (bool, any) { s := l.Status(); return s.State == lifecycle.Loading, s })
	kill(t, l.Status().Keeper.PID, syscall.SIGKILL)
	if got := a.Answer(); !got.OK {
		t.Fatalf("%+v", got)
	}
	if got := l.Engines(); len(got) != 1 {
		t.Errorf("engines: %v", got)
	}
	a.KillAll()
	l.NothingLeft(soon)
}

func TestKeeperAndWardenKilled(t *testing.T) {
	// Nobody is left to end an engine that ignores TERM: the next localllm of any kind does.
	l := lab.New(t, false)
	a := l.Session()
	a.Enable("stubborn")
	s := l.Status()
	kill(t, s.Warden.PID, syscall.SIGSTOP)
	kill(t, s.Keeper.PID, syscall.SIGKILL)
	kill(t, s.Warden.PID, syscall.SIGKILL)
	for _, p := range []lifecycle.Process{s.Keeper, s.Warden} {
		if err := proc.AwaitExit(proc.Identity{PID: p.PID, Start: p.Start, Boot: p.Boot}); err != nil {
			t.Fatal(err)
		}
	}
	if len(l.Engines()) != 1 {
		t.Fatal("the engine was to survive for this test")
	}
	if r := a.Must(lab.Order{Do: "status"}); r.Status.State != lifecycle.Off {
		t.Errorf("%+v", r.Status)
	}
	l.NothingLeft(soon)
}

func TestWardenKilled(t *testing.T) {
	l := lab.New(t, false)
	a := l.Session()
	a.Enable("stubborn")
	was := l.Status().Warden.PID
	kill(t, was, syscall.SIGKILL)
	lab.Eventually(t, soon, "another warden", func() (bool, any) {
		now := l.Processes("warden")
		return len(now) == 1 && now[0].PID != was, now
	})
	lab.Eventually(t, soon, "the status names it", func() (bool, any) { w := l.Status().Warden.PID; return w != 0 && w != was, w })
	kill(t, l.Status().Keeper.PID, syscall.SIGKILL)
	l.NothingLeft(soon)
}

func TestSuspendedEngine(t *testing.T) {
	l := lab.New(t, false)
	a := l.Session()
	pid := a.Enable("m").Status.Server.PID
	kill(t, pid, syscall.SIGSTOP)
	lab.Eventually(t, soon, "status notices", func() (bool, any) {
		r := a.Must(lab.Order{Do: "status"})
		return r.Health == "stopped" && strings.Contains(r.Status.LastError, "suspended"), r
	})
	if got := a.Enable("m"); got.Started != "cold" || got.Status.Server.PID == pid {
		t.Errorf("the next enable has to replace it: %+v", got)
	}
	kill(t, l.Status().Server.PID, syscall.SIGSTOP)
	if got := a.Must(lab.Order{Do: "disable"}); !got.Stopped {
		t.Errorf("%+v", got)
	}
	l.NothingLeft(soon)
}

func TestKeeperTerminated(t *testing.T) {
	l := lab.New(t, false)
	a := l.Session()
	a.Enable("family")
	kill(t, l.Status().Keeper.PID, syscall.SIGTERM)
	l.NothingLeft(soon)
	a.Enable("family")
}

func TestServerStartedAgainTakesOver(t *testing.T) {
	l := lab.New(t, false)
	a := l.Session()
	pid := a.Enable("m").Status.Server.PID
	a.Signal(syscall.SIGKILL)
	lab.Eventually(t, soon, "the server is gone", func() (bool, any) { return syscall.Kill(a.Server, 0) != nil, nil })
	if first := a.Restart(); !first.TookOver {
		t.Errorf("%+v", first)
	}
	got := a.Enable("m")
	if got.Started != "joined" || got.Status.Server.PID != pid || got.Sessions != 1 {
		t.Errorf("%+v", got)
	}
	a.CloseInput()
	l.NothingLeft(soon)
}

func TestSuspendedKeeper(t *testing.T) {
	l := lab.New(t, false)
	a := l.Session()
	a.Enable("m")
	pid := l.Status().Keeper.PID
	kill(t, pid, syscall.SIGSTOP)
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
	for _, o := range []lab.Order{{Do: "enable", Spec: lab.Spec("another")}, {Do: "disable"}} {
		if got := a.Do(o); got.OK || !strings.Contains(got.Error, "is suspended") {
			t.Errorf("%s: %+v", o.Do, got)
		}
	}
	if got := a.Must(lab.Order{Do: "status"}); !strings.Contains(got.Status.LastError, "is suspended") {
		t.Errorf("status: %+v", got.Status)
	}
	kill(t, pid, syscall.SIGCONT)
	l.NothingLeft(soon) // the disable was heard after all
	if got := a.Enable("m"); got.Started != "cold" {
		t.Errorf("the next enable: %+v", got)
	}
	a.CloseInput()
	l.NothingLeft(soon)
}

// A keeper that is killed before it holds its lock must not be waited for.
func TestStillbornKeeper(t *testing.T) {
	l := lab.New(t, false)
	stillborn := filepath.Join(t.TempDir(), "localllm")
	if err := os.WriteFile(stillborn, []byte("#!/bin/sh\necho '{\"pid\":32000,\"start\":1}'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := keeper.NewClient(keeper.ClientOptions{Layout: l.Layout, Environ: l.Env, Executable: stillborn})
	begin := time.Now()
	_, err := c.Enable(t.Context(), keeper.EnableRequest{Choices: []lifecycle.Spec{lab.Spec("m")}, Session: session.Binding{Client: proc.Self(), Held: true}})
	if err == nil || !strings.Contains(err.Error(), "did not come up") || time.Since(begin) > 5*time.Second {
		t.Errorf("after %v: %v", time.Since(begin), err)
	}
	if r, err := c.Status(t.Context()); err != nil || len(r.Leases) != 0 {
		t.Errorf("a lease is left: %+v, %v", r, err)
	}
}

// A keeper has no standard error: what it dies of is in its log.
func TestKeeperDiesIntoItsLog(t *testing.T) {
	l := lab.New(t, false)
	a := l.Session()
	a.Enable("m")
	kill(t, l.Status().Keeper.PID, syscall.SIGQUIT)
	l.NothingLeft(soon)
	log, err := os.ReadFile(filepath.Join(l.Layout.State, "logs", "engine.log.keeper"))
	if err != nil || !strings.Contains(string(log), "keeper.(*keeper).run") {
		t.Errorf("the log has no stack: %v\n%s", err, log)
	}
}
