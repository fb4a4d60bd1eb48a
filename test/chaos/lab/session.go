//go:build linux

package lab

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"localllm/internal/proc"
	"localllm/lifecycle"
)

// Order is a line to a server; Answer one from it.
type Order struct {
	Do      string         `json:"do"` // enable, join, disable, status, call, close
	Spec    lifecycle.Spec `json:"spec,omitzero"`
	Steps   []int          `json:"steps,omitempty"` // smaller contexts
	Persist bool           `json:"persist,omitempty"`
	Force   bool           `json:"force,omitempty"`
	Keep    bool           `json:"keep,omitempty"` // disable with stop_engine false
	Hurry   int            `json:"hurry,omitempty"`
}

// Answer is what an order came to.
type Answer struct {
	PID      int              `json:"pid,omitempty"` // of the server, in its first line
	OK       bool             `json:"ok"`
	Error    string           `json:"error,omitempty"`
	Kind     string           `json:"kind,omitempty"` // busy, start, not-enabled
	Cause    string           `json:"cause,omitempty"`
	Started  string           `json:"started,omitempty"`
	Detached bool             `json:"detached,omitempty"`
	Fresh    bool             `json:"fresh,omitempty"`
	Stopped  bool             `json:"stopped,omitempty"`
	Released uint64           `json:"released,omitempty"`
	HeldBy   []string         `json:"held_by,omitempty"`
	Reason   string           `json:"reason,omitempty"`
	Sessions int              `json:"sessions,omitempty"`
	Warnings []string         `json:"warnings,omitempty"`
	Status   lifecycle.Status `json:"status,omitzero"`
	Health   string           `json:"health,omitempty"`
	TookOver bool             `json:"took_over,omitempty"`
	Micros   int64            `json:"micros,omitempty"`
	Progress []string         `json:"progress,omitempty"`
}

// Session is a client process with its server.
type Session struct {
	lab    *Lab
	t      testing.TB
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    chan Answer
	Server int    // pid
	First  Answer // the server's first line
	server proc.Identity
	once   sync.Once
	closed chan struct{}
}

// Patience is how long a session waits for an answer.
const Patience = 90 * time.Second

// Session starts a client, in a process group of its own, and its server. Extra variables come last and win.
func (l *Lab) Session(extra ...string) *Session {
	l.t.Helper()
	return l.SessionWith(append(append([]string{}, l.Env...), extra...))
}

// SessionWith is Session with exactly this environment.
func (l *Lab) SessionWith(env []string) *Session {
	l.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		l.t.Fatal(err)
	}
	s := &Session{lab: l, t: l.t, out: make(chan Answer, 64), closed: make(chan struct{})}
	s.cmd = exec.Command(exe, "lab-client")
	s.cmd.Env, s.cmd.Stderr = env, os.Stderr
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		l.t.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	go func() { // ends when every process with the pipe has gone
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadBytes('\n')
			var a Answer
			if bad := json.Unmarshal(line, &a); bad == nil {
				s.out <- a
			} else if len(line) > 1 {
				fmt.Fprintf(os.Stderr, "not an answer: %v: %q\n", bad, line)
			}
			if err != nil {
				close(s.out)
				return
			}
		}
	}()
	l.t.Cleanup(s.KillAll)
	s.First = s.Answer()
	s.know()
	return s
}

// know remembers which process the server is: a pid alone may be somebody else's when it is signalled.
func (s *Session) know() {
	s.Server = s.First.PID
	s.server, _ = proc.Identify(s.Server)
}

// Client is the client's pid.
func (s *Session) Client() int { return s.cmd.Process.Pid }

// Send gives an order without waiting.
func (s *Session) Send(o Order) {
	s.t.Helper()
	data, err := json.Marshal(o)
	if err != nil {
		s.t.Fatal(err)
	}
	_, _ = s.in.Write(append(data, '\n'))
}

// Answer waits for the next answer.
func (s *Session) Answer() Answer {
	s.t.Helper()
	select {
	case a, ok := <-s.out:
		if !ok {
			return Answer{Error: "the session is gone", Kind: "gone"}
		}
		return a
	case <-time.After(Patience):
		s.lab.sayWho()
		s.Signal(syscall.SIGQUIT) // the server says on standard error where it hangs
		select {
		case <-s.out:
		case <-time.After(2 * time.Second):
		}
		s.t.Fatal("the session does not answer")
	}
	return Answer{}
}

// Poll is the next answer if there is one already.
func (s *Session) Poll() (a Answer, ok bool) {
	select {
	case a, ok = <-s.out:
		if !ok {
			return Answer{Error: "the session is gone", Kind: "gone"}, true
		}
		return a, true
	default:
		return Answer{}, false
	}
}

// Do sends and waits.
func (s *Session) Do(o Order) Answer {
	s.t.Helper()
	s.Send(o)
	return s.Answer()
}

// Must is Do where it has to work.
func (s *Session) Must(o Order) Answer {
	s.t.Helper()
	a := s.Do(o)
	if !a.OK {
		s.t.Fatalf("%s: %s (%s)", o.Do, a.Error, a.Kind)
	}
	return a
}

// Enable gets a model or fails the test.
func (s *Session) Enable(model string) Answer {
	s.t.Helper()
	return s.Must(Order{Do: "enable", Spec: Spec(model)})
}

// Spec is a small model on the engine that stands for llama-server.
func Spec(model string) lifecycle.Spec {
	spec := lifecycle.Spec{Engine: lifecycle.LlamaServer, Model: model, Context: 2048, Slots: 1}
	if strings.HasPrefix(model, "/") {
		spec.Path = model
	}
	return spec
}

// Restart has the client start its server again, as clients do at the next call.
func (s *Session) Restart() Answer {
	s.t.Helper()
	_, _ = fmt.Fprintln(s.in, "!restart")
	// What the dead server still said comes before.
	for s.First = s.Answer(); s.First.PID == 0 && s.First.Kind != "gone"; s.First = s.Answer() {
	}
	s.know()
	return s.First
}

// CloseInput is the end of file that a server sees when its client closes.
func (s *Session) CloseInput() { _ = s.in.Close() }

// Signal signals the server alone.
func (s *Session) Signal(sig syscall.Signal) {
	if s.server.Alive() {
		_ = syscall.Kill(s.Server, sig)
	}
}

// KillClient kills the client alone; the server sees its input end.
func (s *Session) KillClient() {
	_ = s.cmd.Process.Kill()
	s.reap()
}

// KillGroup kills the server's whole process group, the client's not.
func (s *Session) KillGroup() {
	if s.server.Alive() {
		_ = syscall.Kill(-s.Server, syscall.SIGKILL)
	}
}

// KillAll kills client and server.
func (s *Session) KillAll() {
	_ = s.cmd.Process.Kill()
	s.KillGroup()
	s.reap()
}

// reap waits for the client, so that its pid is no zombie.
func (s *Session) reap() {
	s.once.Do(func() {
		_ = s.in.Close()
		go func() {
			for range s.out { // so that the reader can end
			}
		}()
		_, _ = s.cmd.Process.Wait()
		close(s.closed)
	})
	<-s.closed
}
