//go:build linux

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"localllm/internal/proc"
	"localllm/lifecycle"
)

// Fake is an engine with a real process. Words in the model's name make it misbehave: slow, hang, oomN (does not fit
// over a context of N), crash (once it was ready), stillborn, stubborn (ignores TERM), family (has grandchildren).
type Fake struct{}

type fakeServer struct {
	p        *proc.Process
	endpoint lifecycle.Endpoint
	tail     *proc.Tail
}

// Start implements lifecycle.Engine.
func (Fake) Start(ctx context.Context, spec lifecycle.Spec, host lifecycle.Host) (lifecycle.Server, error) {
	var limit int
	if _, after, ok := strings.Cut(spec.Model, "oom"); ok {
		if _, err := fmt.Sscan(after, &limit); err == nil && spec.Context > limit {
			return nil, &lifecycle.StartError{Cause: lifecycle.OutOfMemory, Reason: "the engine is out of memory"}
		}
	}
	if err := host.Record(0); err != nil {
		return nil, err
	}
	address := filepath.Join(host.Dir, "address")
	s := &fakeServer{tail: &proc.Tail{}}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s.p, err = proc.Start(proc.Command{
		Path: exe, Args: []string{"lab-engine", address, spec.Model}, Env: host.Env, Stdout: s.tail, Stderr: s.tail,
		Nonce: host.Nonce, Death: syscall.SIGTERM, Grace: 500 * time.Millisecond,
	})
	if err != nil {
		return nil, err
	}
	if err := host.Record(s.p.PID()); err != nil {
		s.p.Kill()
		<-s.p.Done()
		return nil, err
	}
	begin := time.Now()
	for {
		if data, err := os.ReadFile(address); err == nil && bytes.HasSuffix(data, []byte("\n")) {
			s.endpoint = lifecycle.Endpoint{
				Engine: spec.Engine, URL: "http://" + strings.TrimSpace(string(data)), Model: spec.Model,
				Context: spec.Context, Slots: max(spec.Slots, 1), Owned: true,
			}
			return s, nil
		}
		host.Report(lifecycle.Progress{Phase: "loading", Seconds: int(time.Since(begin).Seconds())})
		select {
		case <-s.p.Done():
			return nil, &lifecycle.StartError{Cause: lifecycle.Crashed, Reason: "the engine ended: " + strings.TrimSpace(s.tail.String())}
		case <-ctx.Done():
			s.p.Kill()
			<-s.p.Done()
			return nil, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (s *fakeServer) Endpoint() lifecycle.Endpoint { return s.endpoint }
func (s *fakeServer) Done() <-chan struct{}        { return s.p.Done() }
func (s *fakeServer) Err() error {
	return errors.New("the engine died, saying: " + strings.TrimSpace(s.tail.String()))
}
func (s *fakeServer) Renew(context.Context) error { return nil }
func (s *fakeServer) Memory(context.Context) (lifecycle.Memory, error) {
	return lifecycle.Memory{TotalBytes: 1 << 30, GPUBytes: 1 << 29}, nil
}
func (s *fakeServer) Stop(ctx context.Context) (lifecycle.Stopped, error) {
	s.p.Stop(ctx)
	return lifecycle.Stopped{Process: true, Model: true}, nil
}

// playEngine is the made-up server's process: a port, a load, and an answer to everything.
func playEngine(args []string) {
	address, model := args[0], args[1]
	has := func(word string) bool { return strings.Contains(model, word) }
	if has("stubborn") {
		signal.Ignore(syscall.SIGTERM)
	}
	if probe := os.Getenv(probeVariable); probe != "" {
		_ = os.WriteFile(fmt.Sprintf("%s.engine.%d", probe, os.Getpid()), nil, 0o600)
	}
	switch {
	case has("stillborn"):
		fmt.Println("my weights are torn")
		os.Exit(1)
	case has("slow"):
		time.Sleep(700 * time.Millisecond)
	case has("hang"):
		time.Sleep(time.Hour)
	case has("grandchild"):
		time.Sleep(time.Hour)
	}
	if has("family") {
		exe, _ := os.Executable()
		child, err := os.StartProcess(exe, []string{exe, "lab-engine", address, "grandchild"}, &os.ProcAttr{Env: os.Environ(), Sys: &syscall.SysProcAttr{Setsid: true}})
		if err == nil {
			_ = child.Release()
		}
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		os.Exit(1)
	}
	if err := os.WriteFile(address, []byte(l.Addr().String()+"\n"), 0o600); err != nil {
		os.Exit(1)
	}
	if has("crash") {
		go func() {
			time.Sleep(100 * time.Millisecond)
			fmt.Println("out of patience")
			os.Exit(3)
		}()
	}
	_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }))
}

// playDecoy is a stranger: it says what signals it gets.
func playDecoy() {
	got := make(chan os.Signal, 8)
	signal.Notify(got, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		os.Exit(1)
	}
	fmt.Println(l.Addr())
	fmt.Println("signalled:", <-got)
}
