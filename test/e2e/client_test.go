//go:build unix

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"localllm/test/harness"
)

// agent is a coding agent with its «localllm mcp»: a client process, which timeout plays, and the server that it started.
// The test can kill both. It makes one call at a time.
type agent struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	last int
}

// agent starts a server for a project as a client would.
func (m *machine) agent(project string, env ...string) *agent {
	m.t.Helper()
	a := &agent{t: m.t, cmd: exec.Command("timeout", "--foreground", "600", harness.Binary(m.t), "mcp")}
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	a.cmd.Dir, a.cmd.Env = project, append(append([]string{}, m.env...), append(env, "CLAUDE_PROJECT_DIR="+project)...)
	a.cmd.Stderr = os.Stderr
	in, err := a.cmd.StdinPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	a.in, a.out = in, bufio.NewReaderSize(out, 1<<20)
	if err := a.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(a.kill)
	a.request("initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "e2e", "version": "1"}})
	a.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	return a
}

func (a *agent) send(message any) {
	a.t.Helper()
	raw, err := json.Marshal(message)
	if err == nil {
		_, err = a.in.Write(append(raw, '\n'))
	}
	if err != nil {
		a.t.Fatal(err)
	}
}

func (a *agent) request(method string, params any) json.RawMessage {
	a.t.Helper()
	a.last++
	a.send(map[string]any{"jsonrpc": "2.0", "id": a.last, "method": method, "params": params})
	for {
		line, err := a.out.ReadBytes('\n')
		if err != nil {
			a.t.Fatalf("%s: %v", method, err)
		}
		var m struct {
			ID     int             `json:"id"`
			Result json.RawMessage `json:"result"`
			Error  json.RawMessage `json:"error"`
		}
		if json.Unmarshal(line, &m) == nil && m.ID == a.last {
			if m.Error != nil {
				a.t.Fatalf("%s: %s", method, m.Error)
			}
			return m.Result
		}
	}
}

// call calls the tool, with or without a progress token, and reads its result into out.
func (a *agent) call(patient bool, arguments map[string]any, out any) {
	a.t.Helper()
	params := map[string]any{"name": "local_llm", "arguments": arguments}
	if patient {
		params["_meta"] = map[string]any{"progressToken": a.last + 1}
	}
	var got struct {
		IsError           bool            `json:"isError"`
		StructuredContent json.RawMessage `json:"structuredContent"`
		Content           []struct{ Text string }
	}
	if err := json.Unmarshal(a.request("tools/call", params), &got); err != nil {
		a.t.Fatal(err)
	}
	if got.IsError {
		a.t.Fatalf("%v: %+v", arguments, got.Content)
	}
	if err := json.Unmarshal(got.StructuredContent, out); err != nil {
		a.t.Fatal(err)
	}
}

// kill ends the client and its server at once, as a crash would.
func (a *agent) kill() {
	if a.cmd.ProcessState != nil {
		return
	}
	_ = syscall.Kill(-a.cmd.Process.Pid, syscall.SIGKILL)
	_ = a.cmd.Wait()
}

// home is the machine's LOCALLLM_HOME.
func (m *machine) home() string {
	home := ""
	for _, entry := range m.env {
		if value, ok := strings.CutPrefix(entry, "LOCALLLM_HOME="); ok {
			home = value
		}
	}
	return home
}

// ask asks the engine itself.
func (m *machine) ask(path string) string {
	m.t.Helper()
	var status struct {
		Endpoint struct {
			URL string `json:"url"`
			Key string `json:"api_key_file"`
		} `json:"endpoint"`
	}
	raw, err := os.ReadFile(filepath.Join(m.home(), "run", "status.json"))
	if err == nil {
		err = json.Unmarshal(raw, &status)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	key, err := os.ReadFile(status.Endpoint.Key)
	if err != nil {
		m.t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodGet, status.Endpoint.URL+path, nil)
	if err != nil {
		m.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(key)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		m.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		m.t.Fatalf("asking for %s: %d %s %v", path, resp.StatusCode, body, err)
	}
	return string(body)
}

// working is how many of the engine's slots are at work.
func (m *machine) working() int {
	m.t.Helper()
	return strings.Count(m.ask("/slots"), `"is_processing":true`)
}

// input calls the program with a JSON request.
func (m *machine) input(request any, args ...string) (stdout, stderr string, code int) {
	m.t.Helper()
	raw, err := json.Marshal(request)
	if err != nil {
		m.t.Fatal(err)
	}
	file := filepath.Join(m.t.TempDir(), "request.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		m.t.Fatal(err)
	}
	return m.run(append(args, "--input", file)...)
}

// statusSeen and enabledSeen are what the tests look at in a result.
type statusSeen struct {
	Endpoint string     `json:"endpoint"`
	Persist  bool       `json:"persist"`
	Sessions []struct{} `json:"sessions"`
	Slots    struct {
		Busy int `json:"busy"`
	} `json:"slots"`
	Keeper struct {
		PID int `json:"pid"`
	} `json:"keeper"`
}

type enabledSeen struct {
	Enabled  bool   `json:"enabled"`
	Started  string `json:"started"`
	Endpoint string `json:"endpoint"`
	Persist  bool   `json:"persist"`
	Sessions int    `json:"sessions"`
}

func (m *machine) status() statusSeen {
	m.t.Helper()
	var st statusSeen
	if err := json.NewDecoder(bytes.NewBufferString(m.ok("status", "--json"))).Decode(&st); err != nil {
		m.t.Fatal(err)
	}
	return st
}
