//go:build linux

package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"localllm/delegate"
	"localllm/internal/engine/llamaserver"
	"localllm/internal/engine/ollama"
	"localllm/internal/keeper"
	"localllm/internal/paths"
	"localllm/internal/session"
	"localllm/lifecycle"
)

// playClient is a coding client: it starts a server in a group of its own and passes lines on. It lives until its
// input ends or it is killed.
func playClient() {
	var in io.WriteCloser
	start := func() {
		exe, _ := os.Executable()
		cmd := exec.Command(exe, "lab-server")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		var err error
		if in, err = cmd.StdinPipe(); err == nil {
			err = cmd.Start()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "lab-client:", err)
			os.Exit(1)
		}
		go func() { _, _ = cmd.Process.Wait() }()
	}
	start()
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break
		}
		if strings.HasPrefix(line, "!restart") {
			start()
			continue
		}
		_, _ = io.WriteString(in, line)
	}
	_ = in.Close()
	time.Sleep(500 * time.Millisecond) // as clients do before they kill what does not go
}

// playServer is an MCP server reduced to what matters: a lease for as long as it lives, and an orderly end where it
// is given one.
func playServer() {
	out := json.NewEncoder(os.Stdout)
	layout, err := paths.Find()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	bound, err := session.ForServer(os.Getenv)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	c := keeper.NewClient(keeper.ClientOptions{Layout: layout})
	ctx, stop := context.WithCancel(context.Background())
	sigs := make(chan os.Signal, 4)
	signal.Notify(sigs, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	go func() { // ends with the process
		<-sigs
		c.Close()
		stop()
		os.Exit(0)
	}()
	_ = keeper.Repair(layout)
	took, _ := c.TakeOver(ctx, bound)
	_ = out.Encode(Answer{PID: os.Getpid(), OK: true, TookOver: took})
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var o Order
		if json.Unmarshal(line, &o) == nil {
			if err := out.Encode(serve(ctx, c, bound, o)); err != nil {
				fmt.Fprintln(os.Stderr, "lab-server: answering:", err)
			}
		}
	}
	c.Close()
}

func serve(ctx context.Context, c *keeper.Client, b session.Binding, o Order) Answer {
	if o.Hurry > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(o.Hurry)*time.Millisecond)
		defer cancel()
	}
	begin := time.Now()
	a, err := obey(ctx, c, b, o)
	a.OK = err == nil
	if err != nil {
		a.Error, a.Kind = err.Error(), "other"
		var busy *lifecycle.BusyError
		var start *lifecycle.StartError
		switch {
		case errors.As(err, &busy):
			a.Kind = "busy"
		case errors.As(err, &start):
			a.Kind, a.Cause = "start", string(start.Cause)
		case errors.Is(err, lifecycle.ErrNotEnabled):
			a.Kind = "not-enabled"
		}
	}
	a.Micros = time.Since(begin).Microseconds()
	return a
}

func obey(ctx context.Context, c *keeper.Client, b session.Binding, o Order) (a Answer, err error) {
	r := keeper.EnableRequest{Choices: []lifecycle.Spec{o.Spec}, Persist: o.Persist, Force: o.Force, Session: b, Env: os.Environ(), Report: func(p lifecycle.Progress) {
		a.Progress = append(a.Progress, p.Phase)
	}}
	for _, size := range o.Steps {
		smaller := o.Spec
		smaller.Context = size
		r.Choices = append(r.Choices, smaller)
	}
	var e *keeper.Enabled
	switch o.Do {
	case "enable":
		e, err = c.Enable(ctx, r)
	case "join":
		var ok bool
		if e, ok, err = c.Join(ctx, keeper.EnableRequest{Session: b}); err == nil && !ok {
			return a, lifecycle.ErrNotEnabled
		}
	case "disable":
		d := keeper.DisableRequest{Session: b, Force: o.Force}
		if o.Keep {
			d.StopEngine = new(bool)
		}
		got, err := c.Disable(ctx, d)
		if err != nil {
			return a, err
		}
		return Answer{Stopped: got.Stopped, Reason: got.Reason, Sessions: len(got.SessionsLeft), Released: got.Released, HeldBy: got.HeldBy}, nil
	case "status":
		got, err := c.Status(ctx)
		if err != nil {
			return a, err
		}
		return Answer{Status: got.Status, Health: string(got.Health), Sessions: len(got.Leases)}, nil
	case "ask":
		return Answer{}, ask(ctx, c)
	default:
		return a, fmt.Errorf("unknown order %q", o.Do)
	}
	if err != nil {
		return a, err
	}
	a.Started, a.Detached, a.Fresh, a.Status, a.Sessions, a.Warnings = e.Started, e.Detached, e.Fresh, e.Status, len(e.Sessions), e.Warnings
	return a, nil
}

// ask is a delegation reduced to its request.
func ask(ctx context.Context, c *keeper.Client) error {
	r, err := c.Status(ctx)
	if err != nil {
		return err
	}
	if r.State != lifecycle.Ready || r.Endpoint == nil {
		return lifecycle.ErrNotEnabled
	}
	var engine interface {
		delegate.Completer
		Close()
	}
	if r.Endpoint.Engine == lifecycle.Ollama {
		engine, err = ollama.Connect(*r.Endpoint)
	} else {
		engine, err = llamaserver.Connect(*r.Endpoint)
	}
	if err != nil {
		return fmt.Errorf("asking: %w", err)
	}
	defer engine.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err = engine.Complete(ctx, delegate.Request{Messages: []delegate.Message{{Role: "user", Content: "go"}}, MaxTokens: 8})
	if err != nil {
		return fmt.Errorf("asking: %w", err)
	}
	return nil
}
