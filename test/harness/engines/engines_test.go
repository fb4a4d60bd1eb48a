package engines

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestSecondRunDoesNothing(t *testing.T) {
	root, err := Checkout()
	if err != nil {
		t.Fatal(err)
	}
	first, err := Provide(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%q", first.Versions)
	// Without any program to be found, the second run can only look.
	t.Setenv("PATH", t.TempDir())
	start := time.Now()
	second, err := ProvideIn(t.Context(), filepath.Join(root, ".engines"), func(step string) { t.Errorf("did something: %s", step) })
	if err != nil || !reflect.DeepEqual(first, second) {
		t.Errorf("got %v, %v, want %v", second, err, first)
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
}

// From another folder, through a link of a link, with an empty environment.
func TestRunsFromAnywhere(t *testing.T) {
	paths, err := Provide(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{paths.LlamaServer, paths.LlamaFitParams, paths.Ollama} {
		folder := t.TempDir()
		link := filepath.Join(folder, "second")
		if err := os.Symlink(path, filepath.Join(folder, "first")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("first", link); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), link, "--help")
		cmd.Env, cmd.Dir = []string{}, "/"
		text, err := cmd.CombinedOutput()
		if err != nil || len(text) < 500 {
			t.Errorf("%s --help: %v: %.300s", path, err, text)
		}
	}
}

func TestWithoutNetwork(t *testing.T) {
	folder := t.TempDir()
	llama := "could not get llama.cpp-tools"
	if _, err := exec.LookPath("apt-get"); err != nil {
		llama = "put llama-server"
	}
	t.Setenv("PATH", only(t, "apt-get", "apt-config", "dpkg", "go"))
	// Nothing listens on port 1.
	for _, name := range []string{"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "GOPROXY"} {
		t.Setenv(name, "http://127.0.0.1:1")
	}
	t.Setenv("GOMODCACHE", filepath.Join(folder, "modules"))
	t.Setenv("GOTOOLCHAIN", "local")
	_, err := ProvideIn(t.Context(), filepath.Join(folder, "engines"), func(string) {})
	if err == nil {
		t.Fatal("no error")
	}
	t.Log(err)
	for _, want := range []string{llama, "could not get ollama " + OllamaVersion} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than a sentence: %v", err)
	}
	if _, err := os.Stat(filepath.Join(folder, "engines", "stamp.json")); err == nil {
		t.Error("left a finished folder")
	}
}

// only is a PATH with these programs and no others.
func only(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// What a machine without them gets does what the tasks of the benchmark need.
func TestProgramsThatTheMachineLacks(t *testing.T) {
	root, err := Checkout()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(root, ".engines")
	bin, err := toolsIn(t.Context(), folder)
	if _, none := exec.LookPath("apt-get"); none != nil {
		if err == nil || !strings.Contains(err.Error(), "put python3, sqlite3 and bwrap") {
			t.Errorf("without packages: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"python3", "-B", "-c", "import configparser, json, unittest, sqlite3, subprocess, ssl; print(6 * 7)"},
		{"sqlite3", ":memory:", "select 6 * 7"},
	} {
		cmd := exec.Command(filepath.Join(bin, args[0]), args[1:]...)
		cmd.Env, cmd.Dir = []string{}, "/"
		if text, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(text)) != "42" {
			t.Errorf("%q: %s, %v", args, text, err)
		}
	}
	// Without any program to be found, the second time can only look.
	t.Setenv("PATH", t.TempDir())
	if again, err := toolsIn(t.Context(), folder); err != nil || again != bin {
		t.Errorf("the second time: %q, %v", again, err)
	}
	if path, err := Path(t.Context(), "sqlite3"); err != nil || path != bin+string(filepath.ListSeparator)+os.Getenv("PATH") {
		t.Errorf("PATH is %q, %v", path, err)
	}
}

// install puts programs that say what real ones say about themselves into a folder laid out as packages do it.
func install(t *testing.T, flags []string, ollama string) (bin string) {
	t.Helper()
	root := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("bin/llama-server", fmt.Sprintf("case $1 in --help) echo '-x, %s VALUE';; *) echo 'version: 1 (abc)';; esac", strings.Join(flags, " ")))
	write("bin/llama-fit-params", fmt.Sprintf("echo '%s'", strings.Join(needed["llama-fit-params"], ", ")))
	write("bin/ollama", fmt.Sprintf("echo 'ollama version is 0.30.1'; echo 'Warning: client version is %s'", ollama))
	write("lib/ollama/llama-server", "")
	return filepath.Join(root, "bin")
}

// All at once, as the packages of one go test do; the work is done by one of them.
func TestProgramsOnPath(t *testing.T) {
	folder := t.TempDir()
	bin := install(t, needed["llama-server"], "0.35.0")
	t.Setenv("PATH", bin)
	var wait sync.WaitGroup
	var mutex sync.Mutex
	var steps []string
	for range 4 {
		wait.Go(func() {
			paths, err := ProvideIn(t.Context(), folder, func(step string) {
				mutex.Lock()
				defer mutex.Unlock()
				steps = append(steps, step)
			})
			if err != nil {
				t.Error(err)
				return
			}
			if target, err := os.Readlink(paths.Ollama); err != nil || target != filepath.Join(bin, "ollama") {
				t.Errorf("ollama is %q, %v", target, err)
			}
		})
	}
	wait.Wait()
	if len(steps) != 2 {
		t.Errorf("not done once: %q", steps)
	}
}

func TestUsable(t *testing.T) {
	for name, c := range map[string]struct {
		flags  []string
		ollama string
		server bool
		serves bool
	}{
		"right":          {needed["llama-server"], "0.34.0", true, true},
		"newer":          {append([]string{"--new"}, needed["llama-server"]...), "1.0.0", true, true},
		"a flag missing": {needed["llama-server"][1:], "0.33.9", false, false},
		"a longer flag":  {append([]string{needed["llama-server"][0] + "-name"}, needed["llama-server"][1:]...), "0.34.2-rc1", false, true},
		"no version":     {needed["llama-server"], "dev", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			bin := install(t, c.flags, c.ollama)
			if _, err := usable(t.Context(), filepath.Join(bin, "llama-server")); (err == nil) != c.server {
				t.Errorf("llama-server: %v", err)
			}
			if _, err := usable(t.Context(), filepath.Join(bin, "ollama")); (err == nil) != c.serves {
				t.Errorf("ollama: %v", err)
			}
		})
	}
	bin := install(t, needed["llama-server"], "0.35.0")
	if err := os.Remove(filepath.Join(bin, "../lib/ollama/llama-server")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	if fromPath(context.Background(), t.TempDir(), "ollama") {
		t.Error("an ollama without its helper was taken")
	}
}

func TestPickArchives(t *testing.T) {
	for name, c := range map[string]struct {
		targets string
		want    []string
	}{
		"never updated": {"http://m/debian/|bookworm|main|$(ORIGIN)\nhttp://m/debian/|bookworm-updates|main|\nhttp://s/security/|bookworm-security|main|\n", []string{"http://m/debian/"}},
		"others' first": {"http://a/|bookworm|main|\nhttp://d/|bookworm|stable|Docker\nhttp://p/|bookworm-pgdg|main|apt\nhttp://m/debian/|bookworm|main|Debian\n", []string{"http://m/debian/", "http://a/"}},
		"not Debian":    {"http://u/|bookworm|main|Ubuntu\n", nil},
		"by suite":      {"http://m/debian/|stable|main|Debian\nhttp://m/debian/|testing|main|Debian\n", []string{"http://m/debian/"}},
		"nothing":       {"", nil},
	} {
		if got := pickArchives(c.targets, "bookworm"); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestComplaints(t *testing.T) {
	apt := "Reading package lists...\nErr:1 http://m sid InRelease\n  Temporary failure\nE: Failed to fetch http://m/InRelease  Temporary failure\nE: Some index files failed\n"
	if got := aptSays(apt); got != "Failed to fetch http://m/InRelease Temporary failure" {
		t.Errorf("got %q", got)
	}
	if got := goSays("go: downloading a v1\ngo: b: no such host\n", nil); got != "b: no such host" {
		t.Errorf("got %q", got)
	}
	if got := goSays("", exec.ErrNotFound); got != exec.ErrNotFound.Error() {
		t.Errorf("got %q", got)
	}
}
