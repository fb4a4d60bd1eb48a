//go:build clients

package clients

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"localllm/internal/mcpserver"
	"localllm/internal/request"
)

// TestInspectorCallsEveryAction lists the tool and calls all seven actions in both eras of the protocol.
func TestInspectorCallsEveryAction(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			w := newWorld(t)
			inspect := func(args ...string) (string, error) {
				all := []string{"--cli", "-q", "--format", "json", "--protocol-era", era}
				// It passes a short list of variables to the server.
				for _, name := range []string{"LOCALLLM_HOME", "LOCALLLM_LLAMA_SERVER", "LOCALLLM_OLLAMA", "OLLAMA_HOST", "OLLAMA_MODELS", "LOCALLLM_TEST_MARK"} {
					all = append(all, "-e", name+"="+w.get(name))
				}
				return w.run(2*time.Minute, nil, client(t, "mcp-inspector"), append(append(all, args...), w.binary, "mcp")...)
			}
			if out, err := inspect("--strict", "--method", "tools/list"); err != nil || !strings.Contains(out, `"anthropic/alwaysLoad":true`) || strings.Contains(out, "schemaFindings") {
				t.Errorf("%s %v", tail(out), err)
			}
			call := func(arguments map[string]any) (string, error) {
				raw, _ := json.Marshal(arguments)
				return inspect("--method", "tools/call", "--tool-name", mcpserver.Name, "--tool-args-json", string(raw))
			}
			// Every call is a session of its own, so the engine has to stay between them.
			steps := script(w, "true:persist")
			for i, want := range []string{`"can_enable":true`, `"started":"cold"`, `"recommendation":`, `"status":"proven"`, `"delegations":1`, `"disabled":true`} {
				if i == 2 {
					if out, err := call(map[string]any{"action": "status"}); err != nil || !strings.Contains(out, `"state":"ready"`) {
						t.Errorf("status: %s %v", tail(out), err)
					}
				}
				if out, err := call(steps[i]); err != nil || !strings.Contains(out, want) {
					t.Errorf("%v: %s %v, want %s", steps[i]["action"], tail(out), err, want)
				}
			}
			w.proven()
			if out, err := call(map[string]any{"action": "stat"}); err == nil || !strings.Contains(out, `did you mean \"stats\"?`) {
				t.Errorf("a wrong action: %s %v", out, err)
			}
			w.quiet()
		})
	}
}

// TestConformance runs the scenarios of the protocol's own suite that fit a server with one tool.
func TestConformance(t *testing.T) {
	w := newWorld(t)
	cmd := exec.Command(w.binary, "mcp", "--http", "127.0.0.1:0")
	cmd.Dir, cmd.Env = w.project, w.env
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
		w.quiet()
	}()
	url := ""
	for lines := bufio.NewScanner(errs); url == "" && lines.Scan(); {
		_, url, _ = strings.Cut(lines.Text(), "serving ")
	}
	if url == "" {
		t.Fatal("the server did not say where it serves")
	}
	for _, scenario := range []string{"server-initialize", "ping", "logging-set-level", "tools-list", "dns-rebinding-protection", "server-sse-multiple-streams"} {
		out, err := w.run(time.Minute, nil, client(t, "conformance"), "server", "--url", url, "--scenario", scenario)
		if err != nil || !strings.Contains(out, "0 failed, 0 warnings") {
			t.Errorf("%s: %s %v", scenario, tail(out), err)
		}
	}
}

// TestFirstAnswerIsQuick starts the real server 50 times. On a busy machine the best tenth counts: the work is the same.
func TestFirstAnswerIsQuick(t *testing.T) {
	w := newWorld(t)
	var took []time.Duration
	var resident []int
	for range 50 {
		cmd := exec.Command(w.binary, "mcp")
		cmd.Dir, cmd.Env = w.project, w.env
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := in.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n")); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		took = append(took, time.Since(start))
		if err != nil || !strings.Contains(line, "serverInfo") {
			t.Fatalf("%q, %v", line, err)
		}
		if kib := residentKiB(cmd.Process.Pid); kib > 0 {
			resident = append(resident, kib)
		}
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	slices.Sort(took)
	slices.Sort(resident)
	t.Logf("first answer: median %v, of 50 from %v to %v", took[25], took[0], took[49])
	if took[5] > 25*time.Millisecond {
		t.Errorf("the first answer takes %v", took[5])
	}
	if len(resident) == 50 {
		t.Logf("resident: median %d KiB, at most %d KiB", resident[25], resident[49])
		if resident[25] > 30<<10 {
			t.Errorf("%d KiB of memory", resident[25])
		}
	}
	w.quiet()
}

// residentKiB is 0 where the system doesn't say.
func residentKiB(pid int) int {
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kib, _ := strconv.Atoi(number)
	return kib
}

// TestToolIsSmallForTheModel counts with a real tokenizer (o200k; others differ by a tenth or two).
func TestToolIsSmallForTheModel(t *testing.T) {
	w := newWorld(t)
	client(t, "claude") // the tokenizer comes with the clients
	folder, err := filepath.Abs("node_modules/gpt-tokenizer/cjs/encoding/o200k_base.js")
	if err != nil {
		t.Fatal(err)
	}
	count := func(text string) int {
		t.Helper()
		w.write(filepath.Join(w.home, "text"), text)
		out, err := w.run(time.Minute, nil, "node", "-e", `console.log(require(process.argv[1]).encode(require("fs").readFileSync(process.argv[2],"utf8")).length)`, folder, filepath.Join(w.home, "text"))
		n, bad := strconv.Atoi(strings.TrimSpace(out))
		if err != nil || bad != nil {
			t.Fatal(out, err, bad)
		}
		return n
	}
	schema, description, instructions := count(string(request.Schema())), count(mcpserver.Description()), count(mcpserver.Instructions)
	t.Logf("tokens: schema %d, description %d, instructions %d", schema, description, instructions)
	if schema+description >= 1500 {
		t.Errorf("schema and description have %d tokens", schema+description)
	}
}
