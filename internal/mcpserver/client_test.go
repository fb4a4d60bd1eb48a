package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"localllm/delegate"
	"localllm/internal/hint"
	"localllm/internal/proc"
)

// The library keeps one stdio session a process, so every server under test is this binary started again.
func TestMain(m *testing.M) {
	if os.Getenv("MCPSERVER_UNDER_TEST") == "" {
		goleak.VerifyTestMain(m)
		return
	}
	err := Stdio(context.Background(), Config{Version: "test", Actions: &double{}, Leaving: func() { fmt.Fprintln(os.Stderr, "LEAVING") }})
	if err != nil {
		fmt.Fprintln(os.Stderr, "serving:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// double does what a task's first word says.
type double struct{ together atomic.Int64 }

func (d *double) Do(ctx context.Context, action string, in any, report func(Progress)) (any, error) {
	task, ok := in.(*delegate.Task)
	if !ok {
		return map[string]any{"action": action, "project": Project(ctx), "progress": HasProgress(ctx)}, nil
	}
	word, _, _ := strings.Cut(task.Task, " ")
	switch word {
	case "busy": // as much progress as it can
		for i := range 40 {
			report(Progress{Phase: fmt.Sprintf("phase %d", i), Done: int64(i), Total: 40})
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(time.Millisecond):
			}
		}
	case "endless":
		for i := 0; ctx.Err() == nil; i++ {
			report(Progress{Phase: fmt.Sprintf("phase %d", i)})
			select {
			case <-ctx.Done():
			case <-time.After(time.Millisecond):
			}
		}
		return nil, ctx.Err()
	case "deaf": // ignores its context
		report(Progress{Phase: "deaf"})
		select {}
	case "together": // returns when 64 calls are here at once
		d.together.Add(1)
		for d.together.Load() < 64 {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(time.Millisecond):
			}
		}
	case "panic":
		panic("boom")
	case "print":
		fmt.Println("a stray line")
		os.Stdout.WriteString("another")
		child := exec.Command("sh", "-c", "echo from a child; echo more >&1")
		child.Stdout = os.Stdout
		if err := child.Run(); err != nil {
			return nil, err
		}
	case "fail":
		return nil, hint.New("no engine is\ninstalled", "install Ollama", "run localllm doctor")
	case "list":
		return []string{"not an object"}, nil
	}
	return map[string]any{"ok": true, "length": len(task.Task)}, nil
}

// message is any line that the server writes.
type message struct {
	JSONRPC string `json:"jsonrpc"`
	ID      any    `json:"id"`
	Method  string `json:"method"`
	Params  struct {
		ProgressToken any     `json:"progressToken"`
		Progress      float64 `json:"progress"`
		Message       string  `json:"message"`
	} `json:"params"`
	Result struct {
		ProtocolVersion   string          `json:"protocolVersion"`
		Instructions      string          `json:"instructions"`
		Tools             []any           `json:"tools"`
		IsError           bool            `json:"isError"`
		StructuredContent json.RawMessage `json:"structuredContent"`
		Content           []struct{ Text string }
	} `json:"result"`
	Error *struct {
		Code    int
		Message string
	} `json:"error"`
}

func (m message) text() string {
	if len(m.Result.Content) == 0 {
		return ""
	}
	return m.Result.Content[0].Text
}

type client struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.Closer
	lines  chan message // closed at the end of the output
	stderr *proc.Tail
}

func start(t *testing.T, env ...string) *client {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, cmd: exec.Command(exe), lines: make(chan message, 100000), stderr: &proc.Tail{}}
	c.cmd.Env = append(os.Environ(), append([]string{"MCPSERVER_UNDER_TEST=1", "CLAUDE_PROJECT_DIR="}, env...)...)
	c.cmd.Stderr = c.stderr
	c.cmd.WaitDelay = 10 * time.Second
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = out
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.cmd.Process.Kill(); _ = c.cmd.Wait() })
	go func() {
		defer close(c.lines)
		r := bufio.NewReaderSize(out, 1<<20)
		for {
			line, err := r.ReadString('\n')
			if line != "" {
				var m message
				if json.Unmarshal([]byte(line), &m) != nil || m.JSONRPC != "2.0" {
					t.Errorf("not a message: %.200q", line)
				}
				c.lines <- m
			}
			if err != nil {
				return
			}
		}
	}()
	return c
}

// says waits for a text in the standard error, which comes on its own way.
func (c *client) says(want string) bool {
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if strings.Contains(c.stderr.String(), want) {
			return true
		}
	}
	return false
}

func (c *client) send(lines ...string) {
	for _, l := range lines {
		if _, err := io.WriteString(c.in, l+"\n"); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *client) next() message {
	c.t.Helper()
	select {
	case m, ok := <-c.lines:
		if !ok {
			c.t.Fatalf("the server went; it said: %s", c.stderr)
		}
		return m
	case <-time.After(30 * time.Second):
		c.t.Fatalf("no message for 30 s; the server said: %s", c.stderr)
	}
	return message{}
}

// answer skips notifications.
func (c *client) answer() message {
	c.t.Helper()
	for {
		if m := c.next(); m.Method == "" {
			return m
		}
	}
}

func (c *client) initialize(version, capabilities string) message {
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":"t","version":"1"}}}`, version, capabilities),
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c.answer()
}

func callLine(id any, token bool, arguments any) string {
	params := map[string]any{"name": Name, "arguments": arguments}
	if token {
		params["_meta"] = map[string]any{"progressToken": fmt.Sprint("p", id)}
	}
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func taskLine(id any, token bool, task string) string {
	return callLine(id, token, map[string]any{"action": "delegate", "task": task})
}

func cancelLine(id any) string {
	raw, _ := json.Marshal(id)
	return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + string(raw) + `}}`
}

// end waits for the server's exit.
func (c *client) end(within time.Duration) error {
	c.t.Helper()
	ended := make(chan error, 1)
	go func() {
		for range c.lines {
		}
		ended <- c.cmd.Wait()
	}()
	select {
	case err := <-ended:
		return err
	case <-time.After(within):
		c.t.Fatalf("still there after %v", within)
		return nil
	}
}
