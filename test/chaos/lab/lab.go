//go:build linux

// Package lab runs keepers, clients, servers and engines as real processes for tests that kill them. The test binary
// plays every part itself, by its first argument. It is no part of the product.
package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"localllm/internal/engine/llamaserver"
	"localllm/internal/engine/ollama"
	"localllm/internal/keeper"
	"localllm/internal/paths"
	"localllm/internal/proc"
	"localllm/lifecycle"
	"localllm/test/harness/engines"
)

const (
	realVariable  = "LOCALLLM_LAB_REAL" // "1": the real engines
	probeVariable = "LOCALLLM_LAB_PROBE"
	roundsName    = "LOCALLLM_CHAOS"
)

// Main is what TestMain calls: it plays a part, or runs the tests.
func Main(m *testing.M) {
	if len(os.Args) < 2 {
		os.Exit(m.Run())
	}
	switch os.Args[1] {
	case "keeper":
		if err := keeper.Main(os.Args[2:], keeperOptions); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "lab-client":
		playClient()
	case "lab-server":
		playServer()
	case "lab-engine":
		playEngine(os.Args[2:])
	case "lab-decoy":
		playDecoy()
	default:
		os.Exit(m.Run())
	}
	os.Exit(0)
}

func keeperOptions() (keeper.Options, error) {
	layout, err := paths.Find()
	if err != nil {
		return keeper.Options{}, err
	}
	o := keeper.Options{Layout: layout, Engines: map[string]lifecycle.Engine{lifecycle.LlamaServer: Fake{}, lifecycle.Ollama: Fake{}}}
	if os.Getenv(realVariable) != "" {
		o.Engines = map[string]lifecycle.Engine{lifecycle.LlamaServer: llamaserver.New(llamaserver.Options{}), lifecycle.Ollama: ollama.New(ollama.Options{})}
	}
	if file := os.Getenv(probeVariable); file != "" {
		o.FreeMemory = func(context.Context) (map[string]uint64, error) { return readProbe(file) }
		o.Holders = func(context.Context) []string { return []string{"a hog"} }
	}
	return o, nil
}

// readProbe is a made-up device: 8 GiB, less one for each engine that lives, less what the hog holds.
func readProbe(file string) (map[string]uint64, error) {
	free := uint64(8 << 30)
	pids, _ := filepath.Glob(file + ".engine.*")
	for _, path := range pids {
		var pid int
		if _, err := fmt.Sscanf(filepath.Ext(path), ".%d", &pid); err == nil {
			if _, err := proc.Identify(pid); err == nil {
				free -= 1 << 30
			}
		}
	}
	if _, err := os.Stat(file + ".hog"); err == nil {
		free -= 1 << 30
	}
	return map[string]uint64{"GPU-0": free}, nil
}

// Rounds is how often a loop of chaos runs: few as a rule, as many as LOCALLLM_CHAOS says where that is set, divided
// by share.
func Rounds(few, share int) int {
	var n int
	if _, err := fmt.Sscan(os.Getenv(roundsName), &n); err != nil || n <= 0 {
		return few
	}
	return max(few, n/share)
}

// Lab is one run folder and everything that lives around it.
type Lab struct {
	t      testing.TB
	Home   string
	Layout paths.Layout
	Env    []string // of clients
	Probe  string   // the made-up device's file; empty: none
}

// New makes a lab with made-up engines, or with the real ones.
func New(t testing.TB, realEngines bool) *Lab {
	t.Helper()
	home, err := os.MkdirTemp("", "lab")
	if err != nil {
		t.Fatal(err)
	}
	l := &Lab{t: t, Home: home, Layout: paths.Layout{Run: filepath.Join(home, "run"), State: filepath.Join(home, "state"), Config: filepath.Join(home, "config.toml")}}
	l.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), paths.HomeVariable + "=" + home}
	if realEngines {
		got, err := engines.Provide(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		l.Env = append(l.Env, realVariable+"=1", "LOCALLLM_LLAMA_SERVER="+got.LlamaServer, "LOCALLLM_OLLAMA="+got.Ollama)
	}
	t.Cleanup(l.close)
	return l
}

// WithProbe gives the keeper a made-up device to look at.
func (l *Lab) WithProbe() *Lab {
	l.Probe = filepath.Join(l.Home, "device")
	l.Env = append(l.Env, probeVariable+"="+l.Probe)
	return l
}

func (l *Lab) close() {
	if l.t.Failed() {
		if log, err := os.ReadFile(filepath.Join(l.Layout.State, "logs", "engine.log.keeper")); err == nil {
			l.t.Logf("the keeper's log:\n%s", tail(string(log), 6000))
		}
	}
	// Sessions are ended by their own clean-ups, which run before.
	for range 50 {
		left := l.Processes("")
		if len(left) == 0 {
			break
		}
		for _, p := range left {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
		time.Sleep(10 * time.Millisecond)
	}
	_ = os.RemoveAll(l.Home)
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

// Found is a living process of the lab.
type Found struct {
	PID  int
	Role string // keeper, warden, spawn, engine, or another word that it was started with
	Args string
}

// Processes are the living ones of the lab that play role; all but clients, servers and decoys where it is empty.
func (l *Lab) Processes(role string) []Found {
	l.t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		l.t.Fatal(err)
	}
	mark := paths.HomeVariable + "=" + l.Home
	var found []Found
	for _, e := range entries {
		var pid int
		if _, err := fmt.Sscan(e.Name(), &pid); err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err != nil || !strings.Contains("\x00"+string(env), "\x00"+mark+"\x00") {
			continue
		}
		if _, err := proc.Identify(pid); err != nil {
			continue // a zombie counts as gone
		}
		raw, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		args := strings.Split(strings.TrimRight(string(raw), "\x00"), "\x00")
		f := Found{PID: pid, Role: roleOf(args), Args: strings.Join(args, " ")}
		if role == f.Role || role == "" && !strings.HasPrefix(f.Role, "lab-") {
			found = append(found, f)
		}
	}
	return found
}

func roleOf(args []string) string {
	switch {
	case args[0] == "":
		return "between" // in the middle of an exec
	case len(args) > 2 && args[1] == "keeper":
		return strings.TrimPrefix(args[2], "--")
	case len(args) > 1 && args[1] == "keeper":
		return "keeper"
	case len(args) > 1 && strings.HasPrefix(args[1], "lab-") && args[1] != "lab-engine":
		return args[1]
	}
	return "engine"
}

// sayWho logs every process of the lab with its state, for a test that hangs.
func (l *Lab) sayWho() {
	for _, role := range []string{"", "lab-client", "lab-server"} {
		for _, p := range l.Processes(role) {
			stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
			_, state, _ := strings.Cut(string(stat), ") ")
			l.t.Logf("%-10s %6d %.1s %s", p.Role, p.PID, state, p.Args)
		}
	}
	status, _ := os.ReadFile(filepath.Join(l.Layout.Run, "status.json"))
	wanted, _ := os.ReadFile(filepath.Join(l.Layout.Run, "wanted.json"))
	l.t.Logf("status: %s\nwanted: %s", status, wanted)
}

// Engines are the living engine processes.
func (l *Lab) Engines() []Found { return l.Processes("engine") }

// Status is what the status file says.
func (l *Lab) Status() lifecycle.Status {
	var s lifecycle.Status
	data, err := os.ReadFile(filepath.Join(l.Layout.Run, "status.json"))
	if err == nil {
		_ = json.Unmarshal(data, &s)
	}
	return s
}

// Client is a client in the test's own process, for looking.
func (l *Lab) Client() *keeper.Client {
	return keeper.NewClient(keeper.ClientOptions{Layout: l.Layout, Environ: l.Env})
}

// Eventually waits for a condition and fails the test with what and the last answer.
func Eventually(t testing.TB, within time.Duration, what string, look func() (bool, any)) {
	t.Helper()
	var last any
	for end := time.Now().Add(within); ; time.Sleep(5 * time.Millisecond) {
		ok, got := look()
		if ok {
			return
		}
		if last = got; time.Now().After(end) {
			t.Fatalf("not within %v: %s; last: %v", within, what, last)
		}
	}
}

// NothingLeft waits until no keeper, warden or engine lives, no lease counts, and the status says off.
func (l *Lab) NothingLeft(within time.Duration) {
	l.t.Helper()
	Eventually(l.t, within, "nothing of ours lives", func() (bool, any) {
		left := l.Processes("")
		return len(left) == 0, left
	})
	report, err := l.Client().Status(context.Background())
	if err != nil {
		l.t.Fatal(err)
	}
	if report.State != lifecycle.Off || report.KeeperAlive {
		l.t.Fatalf("the status is stale: %+v", report)
	}
	if _, err := os.Stat(filepath.Join(l.Layout.Run, "engine.json")); err == nil {
		l.t.Fatal("the engine's record is still there")
	}
}

// NoEngine waits until no engine process lives.
func (l *Lab) NoEngine(within time.Duration) {
	l.t.Helper()
	Eventually(l.t, within, "no engine lives", func() (bool, any) {
		left := l.Engines()
		return len(left) == 0, left
	})
}
