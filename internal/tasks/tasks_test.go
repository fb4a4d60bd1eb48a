//go:build unix

package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"localllm/internal/filelock"
	"localllm/internal/hint"
	"localllm/internal/paths"
	"localllm/internal/proc"
	"localllm/test/harness"
)

// The test binary is the runner too: a task's state must be right when a real process is killed.
func TestMain(m *testing.M) {
	if id := os.Getenv("TASKS_TEST_RUN"); id != "" {
		layout, err := paths.Find()
		if err != nil {
			os.Exit(9)
		}
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		if err := Open(layout).Run(ctx, id, testWork); err != nil {
			os.Exit(8)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func testWork(ctx context.Context, o Order, report func(string)) (any, int, error) {
	switch o.Title {
	case "hang":
		report("hanging")
		<-ctx.Done()
		return map[string]string{"status": "cancelled"}, 130, nil
	case "break":
		panic("oh no")
	case "refuse":
		return map[string]bool{"ok": false}, 3, nil
	case "err":
		return nil, 12, hint.New("no engine is enabled", "localllm enable")
	}
	return map[string]bool{"ok": true}, 0, nil
}

// added is a task that nobody runs yet, in the home that the environment names.
func added(t *testing.T, title string) (Store, Order) {
	t.Helper()
	layout, err := paths.Find()
	if err != nil {
		t.Fatal(err)
	}
	s := Open(layout)
	o, err := s.Add(Order{Action: "delegate", Input: json.RawMessage(`{}`), Title: title, Deadline: time.Now().Add(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	return s, o
}

func begin(t *testing.T, title string) (Store, Order, *exec.Cmd) {
	t.Helper()
	if os.Getenv(paths.HomeVariable) == "" {
		t.Setenv(paths.HomeVariable, t.TempDir())
	}
	s, o := added(t, title)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TASKS_TEST_RUN="+o.ID, proc.NonceVariable+"="+o.Nonce)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return s, o, cmd
}

func await(t *testing.T, s Store, id string, what func(State) bool) State {
	t.Helper()
	var st State
	defer func() {
		if t.Failed() {
			t.Logf("the task is %+v", st)
		}
	}()
	harness.Until(t, "the task's state", 10*time.Second, func() bool {
		var err error
		if st, err = s.Get(id); err != nil {
			t.Fatal(err)
		}
		return what(st)
	})
	return st
}

func TestAnotherProcessCollectsTheResult(t *testing.T) {
	for title, want := range map[string]State{
		"work":   {State: Done, Exit: 0},
		"refuse": {State: Failed, Exit: 3},
		"err":    {State: Failed, Exit: 12, Error: "no engine is enabled"},
		"break":  {State: Failed, Exit: 1, Error: "the task broke: oh no"},
	} {
		s, o, _ := begin(t, title)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		st, err := s.Wait(ctx, o.ID)
		cancel()
		if err != nil || st.State != want.State || st.Exit != want.Exit || st.Error != want.Error {
			t.Errorf("%s: %+v, %v", title, st, err)
		}
		if title == "err" && (len(st.Hints) != 1 || st.Hints[0] != "localllm enable") {
			t.Errorf("hints %q", st.Hints)
		}
		if title == "work" && string(st.Result) == "" {
			t.Error("no result")
		}
	}
}

func TestAKilledRunnerHasFailed(t *testing.T) {
	s, o, cmd := begin(t, "hang")
	await(t, s, o.ID, func(st State) bool { return st.Phase == "hanging" })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	st := await(t, s, o.ID, State.Ended)
	if took := time.Since(killed); took > 5*time.Second { // milliseconds: the kernel drops the runner's lock
		t.Errorf("it took %v", took)
	}
	if st.State != Failed || !strings.Contains(st.Error, "died without a result while hanging") {
		t.Errorf("%+v", st)
	}
}

func TestCancelEndsTheRunner(t *testing.T) {
	s, o, _ := begin(t, "hang")
	await(t, s, o.ID, func(st State) bool { return st.Phase == "hanging" })
	if _, err := s.Cancel(o.ID); err != nil {
		t.Fatal(err)
	}
	if st := await(t, s, o.ID, State.Ended); st.State != Cancelled || st.Exit != 130 {
		t.Errorf("%+v", st)
	}
	if st, err := s.Cancel(o.ID); err != nil || st.State != Cancelled {
		t.Errorf("cancelling twice: %+v, %v", st, err)
	}
}

func TestListingCleansUpAfterAWeek(t *testing.T) {
	t.Setenv(paths.HomeVariable, t.TempDir())
	s, young, _ := begin(t, "work")
	_, old, _ := begin(t, "work")
	await(t, s, young.ID, State.Ended)
	await(t, s, old.ID, State.Ended)
	path := s.path(old.ID, "order.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	aged := strings.Replace(string(data), old.Created.Format("2006-01-02"), old.Created.AddDate(0, 0, -8).Format("2006-01-02"), 1)
	if err := os.WriteFile(path, []byte(aged), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := s.List()
	if err != nil || len(all) != 1 || all[0].ID != young.ID {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := os.Stat(filepath.Dir(path)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old task is still there: %v", err)
	}
}

func TestAnIdIsNoPath(t *testing.T) {
	s := Store{t.TempDir()}
	for _, id := range []string{"", "..", "../x", "t-../../aaaa", "t-0123456789/..", "t-0123456789"} {
		if _, err := s.Get(id); err == nil || !strings.Contains(err.Error(), "there is no task") {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestTheDeadlineEndsATask(t *testing.T) {
	t.Setenv(paths.HomeVariable, t.TempDir())
	layout, err := paths.Find()
	if err != nil {
		t.Fatal(err)
	}
	s := Open(layout)
	o, err := s.Add(Order{Action: "delegate", Input: json.RawMessage(`{}`), Title: "hang", Deadline: time.Now().Add(200 * time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context(), o.ID, testWork); err != nil {
		t.Fatal(err)
	}
	if st, err := s.Get(o.ID); err != nil || st.State != TimedOut || !st.Ended() || st.Result == nil {
		t.Errorf("%+v, %v", st, err)
	}
}

// Whoever cancels before the runner has begun must not be overtaken by it, at whichever moment it comes up.
func TestCancelReachesARunnerThatIsJustStarting(t *testing.T) {
	for _, locked := range []bool{false, true} {
		t.Setenv(paths.HomeVariable, t.TempDir())
		s, o := added(t, "work")
		var lock *filelock.Lock
		var err error
		if locked { // it has its lock and has not said yet who it is
			if lock, err = filelock.Try(s.path(o.ID, "lock")); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Cancel(o.ID); err != nil {
			t.Fatal(err)
		}
		if locked {
			if err := lock.Release(); err != nil {
				t.Fatal(err)
			}
		}
		err = s.Run(t.Context(), o.ID, func(context.Context, Order, func(string)) (any, int, error) {
			t.Error("the work began")
			return nil, 0, nil
		})
		if st, gerr := s.Get(o.ID); err != nil || gerr != nil || st.State != Cancelled || st.Exit != 130 {
			t.Errorf("locked %v: %+v, %v %v", locked, st, err, gerr)
		}
	}
}

// A task that was done before the wish to cancel it reached it is done.
func TestWorkThatIsDoneIsNotCancelled(t *testing.T) {
	t.Setenv(paths.HomeVariable, t.TempDir())
	s, o := added(t, "work")
	ctx, cancel := context.WithCancel(t.Context())
	err := s.Run(ctx, o.ID, func(ctx context.Context, o Order, report func(string)) (any, int, error) {
		cancel()
		return testWork(ctx, o, report)
	})
	if st, gerr := s.Get(o.ID); err != nil || gerr != nil || st.State != Done {
		t.Errorf("%+v, %v %v", st, err, gerr)
	}
}
