// Package harness starts real engines with practice models for tests, and finds what a test leaves behind. It never
// touches a process that it did not start.
package harness

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"localllm/internal/practice"
	"localllm/test/harness/engines"
)

// markVariable is in the environment of all that a test starts; descendants inherit it.
const markVariable = "LOCALLLM_TEST_MARK"

var (
	run   = rand.Text()
	marks atomic.Int64
)

// Until polls cond until it holds, and ends the test when it does not within limit.
func Until(t testing.TB, what string, limit time.Duration, cond func() bool) {
	t.Helper()
	if !poll(limit, cond) {
		t.Fatalf("waited %v for: %s", limit, what)
	}
}

func poll(limit time.Duration, cond func() bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if cond() {
			return true
		}
		select {
		case <-ctx.Done():
			return cond()
		case <-tick.C:
		}
	}
}

// Engines are the real engines, provided when they are missing.
func Engines(t testing.TB) engines.Paths {
	t.Helper()
	paths, err := engines.Provide(context.Background())
	if err != nil {
		t.Fatalf("providing the engines: %v", err)
	}
	return paths
}

// Model writes a practice model that lasts as long as the test, and returns its path.
func Model(t testing.TB, script practice.Script, options practice.Options) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "practice.gguf")
	if err := practice.Write(path, script, options); err != nil {
		t.Fatal(err)
	}
	return path
}

// FreePort is a port of the loopback address that nothing listens on.
func FreePort(t testing.TB) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// Mark is an entry for the environment of all that the test starts. When the test ends, a process that still carries
// it fails the test, and is ended. Cleanups that the test registers after this call run before the check.
func Mark(t testing.TB) string {
	t.Helper()
	mark := fmt.Sprintf("%s=%s.%d", markVariable, run, marks.Add(1))
	t.Cleanup(func() { noneLeft(t, mark) })
	return mark
}

// noneLeft gives processes that are ending a moment, for a kill is not the end.
func noneLeft(t testing.TB, mark string) {
	t.Helper()
	if poll(2*time.Second, func() bool { return len(Processes(mark)) == 0 }) {
		return
	}
	for _, left := range Processes(mark) {
		t.Errorf("left behind: %v", left)
		left.kill()
	}
}

// Home is an empty folder for LOCALLLM_HOME, with a short path, for sockets and locks have limits.
func Home(t testing.TB) string {
	t.Helper()
	home, err := os.MkdirTemp("", "ll-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	return home
}

// Env is a whole environment for localllm under test: the real engines by name, a LOCALLLM_HOME and a HOME of its own,
// a mark, and nothing of the caller's own settings for localllm or an engine. extra comes last.
func Env(t testing.TB, home string, extra ...string) []string {
	t.Helper()
	paths := Engines(t)
	user := filepath.Join(home, "user")
	if err := os.MkdirAll(user, 0o755); err != nil {
		t.Fatal(err)
	}
	env := append(outerEnv("HOME", "XDG_"),
		"HOME="+user, "LOCALLLM_HOME="+home, "LOCALLLM_OLLAMA="+paths.Ollama, "LOCALLLM_LLAMA_SERVER="+paths.LlamaServer,
		"OLLAMA_MODELS="+filepath.Join(home, "ollama-models"), fmt.Sprintf("OLLAMA_HOST=127.0.0.1:%d", FreePort(t)), Mark(t))
	return append(env, extra...)
}

// outerEnv is the caller's environment without what would steer an engine or localllm.
func outerEnv(without ...string) []string {
	var env []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		keep := true
		for _, prefix := range append(without, "LOCALLLM_", "OLLAMA_", "LLAMA_", "GGML_") {
			keep = keep && !strings.HasPrefix(name, prefix)
		}
		if keep {
			env = append(env, entry)
		}
	}
	return env
}

// Run is for TestMain: it runs the tests, and fails the run when a process or a goroutine of any of them is still there.
func Run(m *testing.M) int {
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintf(os.Stderr, "left behind by the tests: %v\n", err)
		code = 1
	}
	alive := func() []Process {
		return marked(func(entry string) bool { return strings.HasPrefix(entry, markVariable+"="+run+".") })
	}
	if poll(2*time.Second, func() bool { return len(alive()) == 0 }) {
		return code
	}
	for _, left := range alive() {
		fmt.Fprintf(os.Stderr, "left behind by the tests: %v\n", left)
		left.kill()
	}
	return max(code, 1)
}
