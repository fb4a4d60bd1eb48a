package harness

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"localllm/internal/practice"
	"localllm/internal/proc"
)

func TestMain(m *testing.M) { os.Exit(Run(m)) }

// listener is a test that only writes down what it is told.
type listener struct {
	testing.TB
	errors []string
	logs   []string
}

func (l *listener) Helper()      {}
func (l *listener) Failed() bool { return len(l.errors) > 0 }
func (l *listener) Errorf(format string, args ...any) {
	l.errors = append(l.errors, fmt.Sprintf(format, args...))
}

var hello = practice.Script{{Say: "Hello."}}

func TestForgottenProcessFailsTheTest(t *testing.T) {
	mark := Mark(t)
	// Through a shell that goes away: nobody waits for the child, and its parent is another.
	cmd := exec.Command("sh", "-c", "sleep 60 & echo started")
	cmd.Env = append(os.Environ(), mark)
	if out, err := startedOnly(cmd); err != nil || out != "started\n" {
		t.Fatalf("%q, %v", out, err)
	}
	Until(t, "the process being found", 5*time.Second, func() bool { return len(Processes(mark)) == 1 })
	heard := &listener{TB: t}
	noneLeft(heard, mark)
	if len(heard.errors) != 1 || !strings.Contains(heard.errors[0], "sleep 60") {
		t.Errorf("said %q", heard.errors)
	}
	Until(t, "the process being ended", 5*time.Second, func() bool { return len(Processes(mark)) == 0 })
}

func (l *listener) Logf(format string, args ...any) {
	l.logs = append(l.logs, fmt.Sprintf(format, args...))
}

// keptLog reads the log that a failed test said it kept, and removes it.
func (l *listener) keptLog(t *testing.T) string {
	t.Helper()
	for _, line := range l.logs {
		if _, after, ok := strings.Cut(line, " is kept in "); ok {
			path, _, _ := strings.Cut(after, ";")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Error(err)
			}
			_ = os.Remove(path)
			return string(text)
		}
	}
	return ""
}

// startedOnly is Output without waiting for those who inherit the pipe.
func startedOnly(cmd *exec.Cmd) (string, error) {
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	text := make([]byte, 8)
	n, err := pipe.Read(text)
	if err != nil {
		return "", err
	}
	_ = cmd.Wait()
	return string(text[:n]), nil
}

// Ollama killed by a signal that it can't handle leaves its runner behind.
func TestForgottenRunnerFailsTheTest(t *testing.T) {
	server := Start(t, Ollama, hello, practice.Options{})
	if reply := server.Ask("hi"); reply.Text != "Hello." {
		t.Fatalf("got %+v", reply)
	}
	if all := server.Processes(); len(all) != 2 {
		t.Fatalf("serving: %v", all)
	}
	heard := &listener{TB: server.t}
	server.t = heard
	server.Kill()
	server.Stop()
	if len(heard.errors) != 1 || !strings.Contains(heard.errors[0], "llama-server") {
		t.Errorf("said %q", heard.errors)
	}
	if log := heard.keptLog(t); !strings.Contains(log, "POST") {
		t.Errorf("kept the log %.200q", log)
	}
}

func TestTakenPortFailsTheTest(t *testing.T) {
	server := Start(t, LlamaServer, hello, practice.Options{})
	heard := &listener{TB: t}
	server.t = heard
	server.end()
	squatter, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", server.Port))
	if err != nil {
		t.Fatal(err)
	}
	defer squatter.Close()
	server.Stop()
	if len(heard.errors) != 1 || !strings.Contains(heard.errors[0], "still taken") {
		t.Errorf("said %q", heard.errors)
	}
	if log := heard.keptLog(t); !strings.Contains(log, "initializing") { // it says that it listens a moment after it does
		t.Errorf("kept the log %.200q", log)
	}
}

const held = "HELD_FOR_THE_PARENT"

// TestHeld is the other half of the next test: it starts both engines and waits to be killed.
func TestHeld(t *testing.T) {
	if os.Getenv(held) == "" {
		return
	}
	for _, kind := range Kinds {
		if reply := Start(t, kind, hello, practice.Options{}).Ask("hi"); reply.Text != "Hello." {
			t.Fatalf("got %+v", reply)
		}
	}
	fmt.Println(held)
	select {}
}

// go test kills a test binary that takes too long, and nothing of the binary's own runs then.
func TestKilledTestTakesItsEngines(t *testing.T) {
	entry := held + "=" + Mark(t)
	cmd := exec.Command(os.Args[0], "-test.run", "^TestHeld$", "-test.v")
	cmd.Env = append(os.Environ(), entry, "TMPDIR="+t.TempDir())
	var out proc.Tail
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	Until(t, "the other half being ready", time.Minute, func() bool { return strings.Contains(out.String(), held) })
	// The binary itself, llama-server, ollama and its runner.
	if all := Processes(entry); len(all) != 4 {
		t.Errorf("running: %v", all)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	Until(t, "its engines being gone", 10*time.Second, func() bool { return len(Processes(entry)) == 0 })
}

// What signals the pid signals the engine: the wrappers are gone by then.
func TestPIDIsTheEngines(t *testing.T) {
	for _, kind := range Kinds {
		server := Start(t, kind, hello, practice.Options{})
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", server.PID))
		if err != nil || strings.TrimSpace(string(name)) != string(kind) {
			t.Errorf("the process of %s is %q, %v", kind, name, err)
		}
		server.Stop()
		if left := server.Processes(); len(left) > 0 {
			t.Errorf("after the stop: %v", left)
		}
	}
}

func TestEnvHidesTheCallers(t *testing.T) {
	t.Setenv("OLLAMA_KEEP_ALIVE", "7h")
	t.Setenv("LOCALLLM_PROFILE", "mine")
	t.Setenv("LLAMA_ARG_PORT", "7")
	home := Home(t)
	all := strings.Join(Env(t, home, "EXTRA=1"), "\n") + "\n"
	for _, gone := range []string{"OLLAMA_KEEP_ALIVE", "LOCALLLM_PROFILE", "LLAMA_ARG_PORT", "\nHOME=" + os.Getenv("HOME") + "\n"} {
		if strings.Contains(all, gone) {
			t.Errorf("still has %q", gone)
		}
	}
	for _, want := range []string{"LOCALLLM_HOME=" + home, "PATH=", markVariable + "=", "LOCALLLM_LLAMA_SERVER=/", "EXTRA=1"} {
		if !strings.Contains(all, want) {
			t.Errorf("lacks %q", want)
		}
	}
}

func TestBinary(t *testing.T) {
	path := Binary(t)
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command(path, "version").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, text)
	}
	// Another test process builds it again, and must leave the file to those who run it.
	if again, err := build(); err != nil || again != path {
		t.Fatalf("%q, %v", again, err)
	}
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Error("the same build replaced the file")
	}
}

func TestFitParamsReadsTheHeader(t *testing.T) {
	paths := Engines(t)
	model := Model(t, hello, practice.Options{Layers: 4, Width: 512})
	text, err := exec.Command(paths.LlamaFitParams, "-m", model, "-c", "8192", "-np", "1", "-lm", "none", "--no-repack", "--fit-print", "on").Output()
	var weights, cache, compute int
	found := false
	for line := range strings.Lines(string(text)) {
		if n, _ := fmt.Sscanf(line, "Host %d %d %d", &weights, &cache, &compute); n == 3 {
			found = true
		}
	}
	// One KV head of 64 in F16, keys and values, 4 layers, 8192 tokens.
	if err != nil || !found || cache != 8192*4*2*64*2>>20 {
		t.Errorf("weights %d, cache %d MiB: %v: %s", weights, cache, err, text)
	}
}
