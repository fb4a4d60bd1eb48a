//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"localllm/internal/engine/child"
	"localllm/internal/practice"
	"localllm/test/harness"
	"localllm/test/harness/engines"
)

// box is the program under measurement and the places it may use.
type box struct {
	root    string // the checkout
	dir     string // everything that is written
	program string
	engines engines.Paths
	model   string // a practice model
	homes   int
}

func newBox(ctx context.Context) (b *box, err error) {
	b = &box{}
	if b.engines, err = engines.Provide(ctx); err != nil {
		return nil, err
	}
	if b.root, err = engines.Checkout(); err != nil {
		return nil, err
	}
	if b.dir, err = os.MkdirTemp("", "llb-"); err != nil {
		return nil, err
	}
	b.program, b.model = filepath.Join(b.dir, "localllm"), filepath.Join(b.dir, "practice.gguf")
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags", "-s -w"+commit(ctx), "-o", b.program, "./cmd/localllm")
	build.Dir = b.root
	if out, err := build.CombinedOutput(); err != nil {
		b.close()
		return nil, fmt.Errorf("building: %w\n%s", err, out)
	}
	return b, practice.Write(b.model, practice.Script{{Say: "Yes."}}, practice.Options{})
}

func (b *box) close() { _ = os.RemoveAll(b.dir) }

// commit is the linker's flag that lets the program say which one it is; empty outside a checkout.
func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return ""
	}
	return " -X main.commit=" + strings.TrimSpace(string(out))
}

func (b *box) versions(ctx context.Context) string {
	var all []string
	if out, err := exec.CommandContext(ctx, b.program, "version").Output(); err == nil {
		all = append(all, strings.SplitN(strings.TrimSpace(string(out)), "\n", 2)[0])
	}
	for _, v := range b.engines.Versions {
		if !strings.Contains(v, "fit") {
			all = append(all, strings.TrimSpace(v))
		}
	}
	return strings.Join(all, "; ")
}

// home is a fresh state, so nothing is joined and no cache is warm, and the environment that goes with it.
func (b *box) home(extra ...string) (dir string, env []string, err error) {
	b.homes++
	dir = filepath.Join(b.dir, fmt.Sprintf("h%d", b.homes))
	if err := os.MkdirAll(filepath.Join(dir, "project"), 0o755); err != nil {
		return "", nil, err
	}
	port, err := child.FreePort()
	if err != nil {
		return "", nil, err
	}
	for _, entry := range os.Environ() {
		keep := true
		for _, prefix := range []string{"HOME=", "XDG_", "LOCALLLM_", "OLLAMA_", "LLAMA_", "GGML_", "CLAUDE", "CODEX", "OPENCODE"} {
			keep = keep && !strings.HasPrefix(entry, prefix)
		}
		if keep {
			env = append(env, entry)
		}
	}
	env = append(env, "HOME="+dir, "LOCALLLM_HOME="+dir, "LOCALLLM_OLLAMA="+b.engines.Ollama, "LOCALLLM_LLAMA_SERVER="+b.engines.LlamaServer,
		"OLLAMA_MODELS="+filepath.Join(dir, "ollama"), fmt.Sprintf("OLLAMA_HOST=127.0.0.1:%d", port))
	return dir, append(env, extra...), nil
}

// session is a client's server over standard input and output.
type session struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr bytes.Buffer
	id     int
}

// client starts «localllm mcp» below a process of its own: what one client starts is one session.
func (b *box) client(ctx context.Context, home string, env []string) (*session, error) {
	s, _, err := b.start(exec.CommandContext(ctx, "sh", "-c", `CLAUDE_PID=$$ "$0" mcp; exit $?`, b.program), home, env)
	return s, err
}

// start runs a server and shakes hands; exec to the first answer is what it returns.
func (b *box) start(cmd *exec.Cmd, home string, env []string) (*session, time.Duration, error) {
	s := &session{cmd: cmd}
	s.cmd.Dir, s.cmd.Env, s.cmd.Stderr = filepath.Join(home, "project"), env, &s.stderr
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, 0, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, 0, err
	}
	s.out = bufio.NewReader(out)
	began := time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, 0, err
	}
	_, err = s.request("initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "bench", "version": "1"}})
	took := time.Since(began)
	if err != nil {
		s.close()
		return nil, 0, err
	}
	_, err = fmt.Fprintln(s.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return s, took, err
}

func (s *session) request(method string, params any) (json.RawMessage, error) {
	s.id++
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": s.id, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	if _, err := s.in.Write(append(line, '\n')); err != nil {
		return nil, err
	}
	for {
		line, err := s.out.ReadBytes('\n')
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %s", method, err, s.stderr.String())
		}
		var m struct {
			ID     int             `json:"id"`
			Result json.RawMessage `json:"result"`
			Error  json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, fmt.Errorf("%s: %w in %s", method, err, line)
		}
		if m.ID != s.id {
			continue
		}
		if m.Error != nil {
			return nil, fmt.Errorf("%s: %s", method, m.Error)
		}
		return m.Result, nil
	}
}

// call is one call of the tool and how long it took.
func (s *session) call(fields map[string]any, out any) (time.Duration, error) {
	began := time.Now()
	raw, err := s.request("tools/call", map[string]any{
		"name": "local_llm", "arguments": fields,
		// As coding agents do: a client that shows no progress gets long work done in the background instead.
		"_meta": map[string]any{"progressToken": s.id + 1},
	})
	took := time.Since(began)
	if err != nil {
		return took, err
	}
	var r struct {
		IsError bool            `json:"isError"`
		Result  json.RawMessage `json:"structuredContent"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return took, err
	}
	if r.IsError {
		return took, fmt.Errorf("%v: %s", fields["action"], raw)
	}
	return took, json.Unmarshal(r.Result, out)
}

func (s *session) close() {
	_ = s.in.Close()
	_ = s.cmd.Wait()
}

// processes are those of one home.
func processes(home, role string) []int {
	var pids []int
	for _, p := range harness.Processes("LOCALLLM_HOME=" + home) {
		if strings.Contains(p.Command, role) {
			pids = append(pids, p.PID)
		}
	}
	return pids
}

func until(ctx context.Context, limit time.Duration, cond func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for !cond() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %v in vain", limit)
		case <-time.After(2 * time.Millisecond):
		}
	}
	return nil
}
