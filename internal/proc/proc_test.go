//go:build unix

package proc

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The test binary plays the children, so that they are real processes with known behaviour.
func TestMain(m *testing.M) {
	switch os.Getenv("PROC_TEST_ROLE") {
	case "":
		goleak.VerifyTestMain(m)
	case "stubborn": // ignores TERM and has a child that does so too
		signal.Ignore(syscall.SIGTERM)
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "PROC_TEST_ROLE=sleeper")
		_ = child.Start()
		os.Stdout.WriteString(strconv.Itoa(child.Process.Pid) + "\n")
		live()
	case "sleeper":
		signal.Ignore(syscall.SIGTERM)
		live()
	case "daemon": // starts a grandchild in its own session, and ends
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "PROC_TEST_ROLE=sleeper")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		child.Stdout = os.Stdout
		_ = child.Start()
		os.Stdout.WriteString(strconv.Itoa(child.Process.Pid) + "\n")
	case "parent": // starts a child that must die with it
		p, err := Start(Command{Path: os.Args[0], Env: append(os.Environ(), "PROC_TEST_ROLE=mortal"), Death: syscall.SIGTERM})
		if err != nil {
			os.Exit(3)
		}
		os.Stdout.WriteString(strconv.Itoa(p.PID()) + "\n")
		live()
	case "mortal":
		live()
	}
}

// live is what a child does until it is killed. One that a killed test left is gone within the hour.
func live() { time.Sleep(time.Hour) }

func role(name string) []string { return append(os.Environ(), "PROC_TEST_ROLE="+name) }

func gone(t *testing.T, pid int) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		if _, err := Identify(pid); errors.Is(err, ErrNotThere) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %d still lives", pid)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func firstPID(t *testing.T, text string) int {
	t.Helper()
	line, _, _ := strings.Cut(text, "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatalf("no pid in %q", text)
	}
	return pid
}

func TestStopEndsAGroupThatIgnoresTERM(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := Start(Command{Path: os.Args[0], Env: role("stubborn"), Stdout: w, Grace: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	grandchild := firstPID(t, line)
	p.Stop(t.Context())
	gone(t, p.PID())
	gone(t, grandchild)
	if code := p.ExitCode(); code != 128+9 {
		t.Errorf("exit code %d", code)
	}
}

func TestRunLeavesNoDaemonBehind(t *testing.T) {
	var out Tail
	code, err := Run(t.Context(), Command{Path: os.Args[0], Env: role("daemon"), Stdout: &out, Nonce: NewNonce()})
	if err != nil || code != 0 {
		t.Fatalf("Run = %d, %v", code, err)
	}
	gone(t, firstPID(t, out.String()))
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := Run(ctx, Command{Path: os.Args[0], Env: role("mortal"), Grace: 50 * time.Millisecond})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Run = %v", err)
	}
}

func TestParentDeathReachesTheChild(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = role("parent")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child := firstPID(t, line)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	gone(t, child)
}

func TestOnlyTheVeryProcessIsSignalled(t *testing.T) {
	nonce := NewNonce()
	p, err := Start(Command{Path: os.Args[0], Env: role("mortal"), Nonce: nonce})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop(t.Context())
	id := p.Identity()
	if !id.Alive() || !id.Ours() {
		t.Fatalf("our own child is not recognised: %+v", id)
	}
	for what, other := range map[string]Identity{
		"another start time": {PID: id.PID, Start: id.Start + 1, Boot: id.Boot, Exe: id.Exe, Nonce: nonce},
		"another boot":       {PID: id.PID, Start: id.Start, Boot: "x", Exe: id.Exe, Nonce: nonce},
		"another nonce":      {PID: id.PID, Start: id.Start, Boot: id.Boot, Exe: id.Exe, Nonce: "x"},
		"no nonce":           {PID: id.PID, Start: id.Start, Boot: id.Boot, Exe: id.Exe},
		"no start time":      {PID: id.PID, Boot: id.Boot, Exe: id.Exe, Nonce: nonce},
	} {
		if err := Signal(other, syscall.SIGKILL); !errors.Is(err, ErrNotThere) {
			t.Errorf("%s: Signal = %v", what, err)
		}
	}
	if !id.Alive() {
		t.Fatal("the decoy was signalled")
	}
	ended := make(chan error, 1)
	go func() { ended <- AwaitExit(id) }()
	if err := Signal(id, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	_ = p.Wait()
	if id.Alive() {
		t.Error("alive after its end")
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	tail := Tail{Limit: 5}
	for _, s := range []string{"ab", "cdef", "ghijklmn", "o"} {
		if n, err := tail.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatal(n, err)
		}
	}
	if tail.String() != "klmno" || tail.Lost() != 10 {
		t.Errorf("tail %q, lost %d", tail.String(), tail.Lost())
	}
}

// In a container the coding client itself can be process 1: its life counts, and nothing of it is ever ours.
func TestTheFirstProcessLivesAndIsNeverOurs(t *testing.T) {
	first, err := Identify(1)
	if err != nil {
		t.Fatal(err)
	}
	if !first.Alive() {
		t.Error("process 1 counts as dead")
	}
	first.Nonce = "x"
	if first.Ours() || !errors.Is(Signal(first, 0), ErrNotThere) {
		t.Error("process 1 counts as ours")
	}
}
