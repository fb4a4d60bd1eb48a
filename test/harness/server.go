package harness

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"localllm/internal/practice"
)

// Kind is one of the two real engines.
type Kind string

// The kinds.
const (
	LlamaServer Kind = "llama-server"
	Ollama      Kind = "ollama"
)

// Kinds are both engines, for tests that do the same with each.
var Kinds = []Kind{LlamaServer, Ollama}

// Server is a running engine. It is stopped when the test ends, and what it leaves behind fails the test.
type Server struct {
	Kind  Kind
	URL   string // http://127.0.0.1:PORT
	Port  int
	Model string // what requests name
	File  string // the model's GGUF file
	PID   int
	Log   string // the engine's output

	t    testing.TB
	mark string
	env  []string
	stop sync.Once
	done chan struct{}
}

// Start starts the engine on a free port with a practice model of the script loaded (llama-server) or created
// (Ollama, which loads at the first request). args are added to llama-server's command line.
func Start(t testing.TB, kind Kind, script practice.Script, options practice.Options, args ...string) *Server {
	t.Helper()
	return StartFile(t, kind, Model(t, script, options), options, args...)
}

// StartFile is Start with a model file that is already there. Of the options only those of the chat template matter.
func StartFile(t testing.TB, kind Kind, file string, options practice.Options, args ...string) *Server {
	t.Helper()
	s := &Server{Kind: kind, File: file, Model: "practice", t: t, mark: Mark(t)}
	folder := t.TempDir()
	s.Log = filepath.Join(folder, "engine.log")
	// Between finding a free port and listening on it somebody else may take it.
	for attempt := 1; ; attempt++ {
		s.Port = FreePort(t)
		s.URL = fmt.Sprintf("http://127.0.0.1:%d", s.Port)
		s.launch(folder, args)
		if s.ready() {
			break
		}
		s.end()
		if attempt == 3 || !strings.Contains(s.tail(), "bind") {
			t.Fatalf("%s did not get ready:\n%s", kind, s.tail())
		}
	}
	t.Cleanup(s.Stop)
	if kind == Ollama {
		s.Create(s.Model, file, options)
	}
	return s
}

func (s *Server) launch(folder string, args []string) {
	s.t.Helper()
	paths := Engines(s.t)
	program := paths.Ollama
	s.env = append(outerEnv(), s.mark)
	if s.Kind == LlamaServer {
		program = paths.LlamaServer
		args = append([]string{"--host", "127.0.0.1", "--port", fmt.Sprint(s.Port), "-m", s.File, "--alias", s.Model,
			"-c", "16384", "-np", "1", "--cache-ram", "0", "--offline", "--no-ui", "--jinja"}, args...)
	} else {
		args = []string{"serve"}
		s.env = append(s.env, fmt.Sprintf("OLLAMA_HOST=127.0.0.1:%d", s.Port), "HOME="+folder,
			"OLLAMA_MODELS="+filepath.Join(folder, "models"), "OLLAMA_NOPRUNE=1")
	}
	log, err := os.OpenFile(s.Log, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = s.env, folder, log, log, attributes()
	s.done = make(chan struct{})
	started := make(chan error)
	// The parent-death signal is sent when the thread that started the child ends, so this goroutine keeps its thread
	// until the child has ended.
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(s.done)
		defer log.Close()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		s.t.Fatal(err)
	}
	s.PID = cmd.Process.Pid
}

func (s *Server) ready() bool {
	path := "/health"
	if s.Kind == Ollama {
		path = "/api/version"
	}
	answered := false
	poll(60*time.Second, func() bool {
		select {
		case <-s.done:
			return true
		default:
		}
		response, err := http.Get(s.URL + path)
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		answered = response.StatusCode == http.StatusOK
		return answered
	})
	return answered
}

// Create makes a practice model file another model of an Ollama server.
func (s *Server) Create(name, file string, options practice.Options) {
	s.t.Helper()
	modelfile := filepath.Join(s.t.TempDir(), "Modelfile")
	if err := os.WriteFile(modelfile, []byte(practice.Modelfile(file, options)), 0o644); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, Engines(s.t).Ollama, "create", name, "-f", modelfile)
	cmd.Env = s.env
	if text, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("creating the model %s: %v\n%s", name, err, text)
	}
}

// Stop ends the engine in order. A process of it that stays, or a port that stays taken, fails the test.
func (s *Server) Stop() {
	s.stop.Do(func() {
		s.t.Helper()
		s.end()
		noneLeft(s.t, s.mark)
		if !poll(2*time.Second, s.portFree) {
			s.t.Errorf("port %d is still taken after the %s of the test has ended", s.Port, s.Kind)
		}
		if s.t.Failed() {
			s.keepLog()
		}
	})
}

// Kill ends the engine's first process at once, as a crash would. Its children, if it has any, stay: the test shows what becomes of them.
func (s *Server) Kill() {
	if process, err := os.FindProcess(s.PID); err == nil {
		_ = process.Kill()
	}
	<-s.done
}

// Processes are the engine's processes that are alive.
func (s *Server) Processes() []Process { return Processes(s.mark) }

func (s *Server) end() {
	process, err := os.FindProcess(s.PID)
	if err != nil {
		return
	}
	select {
	case <-s.done:
		return
	default:
	}
	_ = process.Signal(syscall.SIGTERM)
	select {
	case <-s.done:
	case <-time.After(15 * time.Second):
		s.t.Errorf("the %s of the test did not end on SIGTERM", s.Kind)
		_ = process.Kill()
		<-s.done
	}
}

func (s *Server) portFree() bool {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", s.Port))
	if err != nil {
		return false
	}
	_ = listener.Close()
	return true
}

// keepLog saves the log from the test's folder, which goes with the test.
func (s *Server) keepLog() {
	text, err := os.ReadFile(s.Log)
	if err != nil {
		return
	}
	kept, err := os.CreateTemp("", "localllm-"+string(s.Kind)+"-*.log")
	if err != nil {
		return
	}
	defer kept.Close()
	_, _ = kept.Write(text)
	s.t.Logf("the log of %s is kept in %s; its end:\n%s", s.Kind, kept.Name(), s.tail())
}

func (s *Server) tail() string {
	text, _ := os.ReadFile(s.Log)
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}
