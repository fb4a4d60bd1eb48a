//go:build linux

package keeper_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"localllm/internal/keeper"
	"localllm/internal/session"
	"localllm/lifecycle"
	"localllm/test/chaos/lab"
)

// shell is a process that stands for the calling shell.
func shell(t *testing.T) (session.Binding, func()) {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b, err := session.WhilePID(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	end := func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	t.Cleanup(end)
	return b, end
}

func request(l *lab.Lab, b session.Binding, model string) keeper.EnableRequest {
	return keeper.EnableRequest{Choices: []lifecycle.Spec{lab.Spec(model)}, Session: b, Env: l.Env}
}

func TestBoundLeaseFollowsItsShell(t *testing.T) {
	l := lab.New(t, false)
	c := l.Client()
	one, endOne := shell(t)
	two, endTwo := shell(t)
	got, err := c.Enable(t.Context(), request(l, one, "m"))
	if err != nil || got.Lease.Kind != lifecycle.Bound || !strings.Contains(got.Lease.Who, "sleep") {
		t.Fatalf("%+v, %v", got, err)
	}
	if got, err := c.Enable(t.Context(), request(l, one, "m")); err != nil || len(got.Sessions) != 1 {
		t.Fatalf("twice from one shell: %+v, %v", got, err)
	}
	if _, err := c.Enable(t.Context(), request(l, two, "m")); err != nil {
		t.Fatal(err)
	}
	stranger, _ := shell(t)
	if got, err := c.Disable(t.Context(), keeper.DisableRequest{Session: stranger}); err != nil || got.Disabled || got.Stopped || !strings.Contains(got.Reason, "held by") {
		t.Errorf("a session that holds nothing: %+v, %v", got, err)
	}
	c.Close() // a command's end is not the end of its shell
	endOne()
	lab.Eventually(t, soon, "one lease is left", func() (bool, any) {
		r, err := c.Status(t.Context())
		return err == nil && len(r.Leases) == 1 && r.State == lifecycle.Ready, r
	})
	endTwo()
	l.NothingLeft(soon)
}

func TestBoundByTwoProcesses(t *testing.T) {
	// enable and disable are two processes that know each other only by the shell above them.
	l := lab.New(t, false)
	b, _ := shell(t)
	if _, err := l.Client().Enable(t.Context(), request(l, b, "m")); err != nil {
		t.Fatal(err)
	}
	other, _ := shell(t)
	if got, err := l.Client().Disable(t.Context(), keeper.DisableRequest{Session: other}); err != nil || got.Stopped || len(got.SessionsLeft) != 1 {
		t.Fatalf("another shell's disable: %+v, %v", got, err)
	}
	if got, err := l.Client().Disable(t.Context(), keeper.DisableRequest{Session: b}); err != nil || !got.Stopped {
		t.Fatalf("%+v, %v", got, err)
	}
	l.NothingLeft(soon)
	if got, err := l.Client().Disable(t.Context(), keeper.DisableRequest{Session: b}); err != nil || got.Disabled || got.Reason == "" {
		t.Errorf("nothing is enabled: %+v, %v", got, err)
	}
}

func TestForceStopsUnderOthers(t *testing.T) {
	l := lab.New(t, false)
	a := l.Session()
	a.Enable("m")
	b, _ := shell(t)
	yes := true
	if got, err := l.Client().Disable(t.Context(), keeper.DisableRequest{Session: b, StopEngine: &yes, Force: true}); err != nil || !got.Stopped {
		t.Fatalf("%+v, %v", got, err)
	}
	l.NoEngine(soon)
	if got := a.Enable("m"); got.Started != "cold" {
		t.Errorf("%+v", got)
	}
}

func TestHookEndsWhatIsLeft(t *testing.T) {
	l := lab.New(t, false)
	a := l.Session()
	a.Enable("m")
	client, err := session.WhilePID(a.Client())
	if err != nil {
		t.Fatal(err)
	}
	if n, err := l.Client().SessionEnded(t.Context(), client); err != nil || n != 0 {
		t.Fatalf("a living server's lease is not the hook's to end: %d, %v", n, err)
	}
	a.Signal(9)
	lab.Eventually(t, soon, "the hook finds the lease that the killed server left", func() (bool, any) {
		n, err := l.Client().SessionEnded(t.Context(), client)
		return n == 1, err
	})
	// The client lives on, and yet there is no forgiveness to wait for.
	l.NothingLeft(soon)
}

func TestTaskHoldsTheEngine(t *testing.T) {
	l := lab.New(t, false)
	c := l.Client()
	if _, err := c.HoldTask(t.Context(), "task 1", "", "", time.Now().Add(time.Hour)); err == nil {
		t.Fatal("held an engine that is not there")
	}
	a := l.Session()
	a.Enable("m")
	hold, err := c.HoldTask(t.Context(), "background task 1", "s", "/p", time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if got := a.Do(lab.Order{Do: "enable", Spec: lab.Spec("other")}); got.Kind != "busy" || !strings.Contains(got.Error, "background task 1") {
		t.Errorf("%+v", got)
	}
	a.KillAll()
	lab.Eventually(t, soon, "only the task is left", func() (bool, any) {
		r, err := c.Status(t.Context())
		return err == nil && len(r.Leases) == 1 && r.Leases[0].ID == hold.Lease().ID, r
	})
	if len(l.Engines()) != 1 {
		t.Fatal("the engine went under the task")
	}
	hold.Release()
	hold.Release()
	l.NothingLeft(soon)
}

func TestTaskOverItsTime(t *testing.T) {
	l := lab.New(t, false)
	c := l.Client()
	a := l.Session()
	a.Enable("m")
	if _, err := c.HoldTask(context.Background(), "task", "", "", time.Now().Add(1500*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	a.KillAll()
	l.NothingLeft(soon + 2*time.Second)
	c.Close()
}

func TestNothingIsMadeByLooking(t *testing.T) {
	l := lab.New(t, false)
	b, _ := shell(t)
	if r, err := l.Client().Status(t.Context()); err != nil || r.State != lifecycle.Off {
		t.Errorf("%+v, %v", r, err)
	}
	if got, err := l.Client().Disable(t.Context(), keeper.DisableRequest{Session: b}); err != nil || got.Disabled {
		t.Errorf("%+v, %v", got, err)
	}
	if e, ok, err := l.Client().Join(t.Context(), keeper.EnableRequest{Session: b}); err != nil || ok {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := os.Stat(l.Layout.Run); err == nil {
		t.Error("looking made the run folder")
	}
}

func TestRepairIsCheapWhereThereIsNothing(t *testing.T) {
	l := lab.New(t, false)
	begin := time.Now()
	const times = 100
	for range times {
		if err := keeper.Repair(l.Layout); err != nil {
			t.Fatal(err)
		}
	}
	each := time.Since(begin) / times
	t.Logf("%v each", each)
	if each > 10*time.Millisecond {
		t.Errorf("%v each", each)
	}
}

func TestCommandLineBelowTheClient(t *testing.T) {
	// The client's server holds the lease; a command in the client's own shell is the same session, and may let go.
	l := lab.New(t, false)
	a := l.Session()
	a.Enable("m")
	b, err := session.WhilePID(a.Client())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := l.Client().Enable(t.Context(), request(l, b, "m")); err != nil || len(got.Sessions) != 1 {
		t.Errorf("one session counted twice: %+v, %v", got, err)
	}
	if got, err := l.Client().Disable(t.Context(), keeper.DisableRequest{Session: b}); err != nil || !got.Stopped {
		t.Fatalf("%+v, %v", got, err)
	}
	l.NothingLeft(soon)
	// The server still has a lock, on a file that is gone. It has to take another.
	if got := a.Enable("m"); got.Started != "cold" || got.Sessions != 1 {
		t.Fatalf("%+v", got)
	}
	if got := a.Enable("m"); got.Started != "joined" {
		t.Fatalf("%+v", got)
	}
	pid := l.Status().Server.PID
	<-time.After(2 * lifecycle.Grace)
	if s := l.Status(); s.State != lifecycle.Ready || s.Server.PID != pid {
		t.Errorf("the engine went under its session: %+v", s)
	}
	a.CloseInput()
	l.NothingLeft(soon)
}

func TestPersistIsTakenBackByWhoAskedForIt(t *testing.T) {
	l := lab.New(t, false)
	a, b := l.Session(), l.Session()
	a.Must(lab.Order{Do: "enable", Spec: lab.Spec("m"), Persist: true})
	b.Enable("m")
	a.Must(lab.Order{Do: "disable"})
	if r := b.Must(lab.Order{Do: "status"}); r.Status.Persist || r.Status.State != lifecycle.Ready {
		t.Errorf("%+v", r.Status)
	}
	b.CloseInput()
	l.NothingLeft(soon)
	// And not by another: b lets go, what a persisted stays.
	c, d := l.Session(), l.Session()
	c.Must(lab.Order{Do: "enable", Spec: lab.Spec("m"), Persist: true})
	d.Enable("m")
	d.Must(lab.Order{Do: "disable"})
	if r := c.Must(lab.Order{Do: "status"}); !r.Status.Persist {
		t.Errorf("%+v", r.Status)
	}
	c.KillAll()
	<-time.After(2 * lifecycle.Grace)
	if len(l.Engines()) != 1 {
		t.Error("a persisted engine went with its session")
	}
}

// `sh -c 'localllm enable; localllm disable'`: the shell becomes its last command.
func TestAShellThatBecameItsLastCommand(t *testing.T) {
	l := lab.New(t, false)
	c := l.Client()
	was, err := session.WhilePID(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Enable(t.Context(), request(l, was, "m")); err != nil {
		t.Fatal(err)
	}
	parent, err := session.WhilePID(os.Getppid())
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Disable(t.Context(), keeper.DisableRequest{Session: parent})
	if err != nil || !got.Stopped || len(got.SessionsLeft) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	l.NothingLeft(soon)
}
