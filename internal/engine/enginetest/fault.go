//go:build unix

package enginetest

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// The test binary is started in the engine's place with one of these in its environment.
const (
	faultVariable = "ENGINETEST_FAULT"
	realVariable  = "ENGINETEST_REAL"
	waitVariable  = "ENGINETEST_WAIT"
)

// The faults.
const (
	crash      = "crash"     // says something and ends
	killed     = "killed"    // dies as by the kernel's out-of-memory killer
	silent     = "silent"    // does nothing, and ignores TERM
	talking    = "talking"   // prints for a while, then is the real engine
	growing    = "growing"   // takes memory for a while, then is the real engine
	stubborn   = "stubborn"  // runs the real engine below itself and a daemon beside it; ignores TERM
	daemonRole = "daemon"    // what stubborn leaves behind
	starved    = "starved"   // is the real engine with little memory
	spoken     = "spoken"    // prints ENGINETEST_WAIT and ends with status 1
	elsewhere  = "elsewhere" // says that it listens, and doesn't
	addressMax = 3 << 30     // bytes of address space of a starved engine
)

// Play plays the fault that the environment asks for and does not return; without one it does nothing. TestMain
// calls it first.
func Play() {
	fault := os.Getenv(faultVariable)
	if fault == "" {
		return
	}
	real := os.Getenv(realVariable)
	wait, _ := strconv.Atoi(os.Getenv(waitVariable))
	switch fault {
	case crash:
		fmt.Fprintln(os.Stderr, "the dog ate my weights")
		os.Exit(7)
	case killed:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case spoken:
		fmt.Fprintln(os.Stderr, os.Getenv(waitVariable))
		os.Exit(1)
	case silent:
		signal.Ignore(syscall.SIGTERM)
		leaveDaemon()
		select {}
	case daemonRole:
		signal.Ignore(syscall.SIGTERM)
		time.Sleep(time.Hour)
	case talking:
		for end := time.Now().Add(time.Duration(wait) * time.Millisecond); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			fmt.Fprintln(os.Stderr, "reading tensor after tensor")
		}
		become(real)
	case growing:
		var held [][]byte
		for end := time.Now().Add(time.Duration(wait) * time.Millisecond); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			more := make([]byte, 3<<20)
			for i := range more {
				more[i] = 1
			}
			held = append(held, more)
		}
		_ = held
		become(real)
	case stubborn:
		signal.Ignore(syscall.SIGTERM)
		leaveDaemon()
		cmd := exec.Command(real, os.Args[1:]...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		_ = cmd.Run()
		select {}
	case starved:
		limit := syscall.Rlimit{Cur: addressMax, Max: addressMax}
		_ = syscall.Setrlimit(syscall.RLIMIT_AS, &limit)
		become(real)
	case elsewhere:
		fmt.Fprintln(os.Stderr, "srv  llama_server: listening on http://127.0.0.1:1")
		fmt.Fprintln(os.Stderr, "Listening on 127.0.0.1:1")
		select {}
	}
	os.Exit(99)
}

// leaveDaemon starts a process in a session of its own, as a group's signal does not reach it.
func leaveDaemon() {
	self, err := os.Executable()
	if err != nil {
		os.Exit(98)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), faultVariable+"="+daemonRole)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if cmd.Start() != nil {
		os.Exit(98)
	}
}

func become(real string) {
	_ = os.Unsetenv(faultVariable)
	err := syscall.Exec(real, append([]string{real}, os.Args[1:]...), os.Environ())
	fmt.Fprintln(os.Stderr, err)
	os.Exit(97)
}
