package setup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"localllm/internal/hint"
	"localllm/internal/paths"
	"localllm/lifecycle"
)

// counter plays a package manager that has some packages, and remembers what it was told.
type counter struct {
	has  map[string]string // the query's words: the answer
	told [][]string
	ends error
}

func (c *counter) run(_ context.Context, argv []string) (string, error) {
	if text, ok := c.has[strings.Join(argv, " ")]; ok {
		return text, nil
	}
	if slices.Contains(argv, "install") || slices.Contains(argv, "uninstall") || slices.Contains(argv, "-S") || slices.Contains(argv, "remove") {
		c.told = append(c.told, argv)
		return "last line", c.ends
	}
	return "no such package", errors.New("exit status 1")
}

func TestManagers(t *testing.T) {
	brew := map[string]string{"brew info --formula llama.cpp": "==> llama.cpp: stable 9000"}
	apt := map[string]string{"apt-cache show --no-all-versions llama.cpp": "Package: llama.cpp\nVersion: 9000\n"}
	for _, c := range []struct {
		name, engine, system, via string
		root                      bool
		has                       map[string]string
		want                      string // command, or error
		otherwise                 string
	}{
		{name: "brew", engine: lifecycle.LlamaServer, system: "darwin", has: brew, want: "brew install --formula llama.cpp"},
		{name: "winget", engine: lifecycle.Ollama, system: "windows", has: map[string]string{"winget show --exact --id Ollama.Ollama --accept-source-agreements": "Found Ollama [Ollama.Ollama]"}, want: "winget install --exact --id Ollama.Ollama --accept-source-agreements --accept-package-agreements"},
		{name: "pacman as root", engine: lifecycle.Ollama, system: "linux", root: true, has: map[string]string{"pacman -Si ollama": "Name : ollama"}, want: "pacman -S --noconfirm --needed ollama"},
		{name: "apt as root", engine: lifecycle.LlamaServer, system: "linux", root: true, has: apt, want: "apt-get install --yes llama.cpp"},
		{name: "apt asked for, not root", engine: lifecycle.LlamaServer, system: "linux", via: "apt", has: apt, want: "never becomes"},
		{name: "apt without the package", engine: lifecycle.LlamaServer, system: "linux", via: "apt", root: true, want: "apt has no llama-server"},
		{name: "no such manager", engine: lifecycle.LlamaServer, system: "linux", via: "yum", root: true, want: "yum has no llama-server"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(paths.HomeVariable, t.TempDir())
			m := &counter{has: c.has}
			o := Options{Engine: c.engine, System: c.system, Machine: "amd64", Via: c.via, Root: &c.root, Run: m.run, Env: []string{"PATH="}}
			p, err := Prepare(t.Context(), o)
			if err != nil {
				if !strings.Contains(err.Error(), c.want) || len(hint.Of(err)) == 0 {
					t.Errorf("Prepare = %v with hints %v", err, hint.Of(err))
				}
				return
			}
			if got := strings.Join(p.Command, " "); got != c.want {
				t.Errorf("command %q, want %q", got, c.want)
			}
			if len(m.told) > 0 {
				t.Errorf("done before the yes: %v", m.told)
			}
		})
	}
}

func TestNobodyIsMadeRoot(t *testing.T) {
	s := serve(t, &site{file: "llama-b7000-bin-ubuntu-x64.zip", data: packed(t, ".zip", engine)})
	o := options(t, s)
	o.Via = ""
	m := &counter{has: map[string]string{"apt-cache show --no-all-versions llama.cpp": "Package: llama.cpp\n"}}
	o.Run = m.run
	p, err := Prepare(t.Context(), o)
	if err != nil || p.Via != Release {
		t.Fatalf("Prepare = %+v, %v", p, err)
	}
	if want := "sudo apt-get install --yes llama.cpp"; !slices.Contains(p.Otherwise, want) || !strings.Contains(strings.Join(p.Words(), "\n"), want) {
		t.Errorf("the other way is not said: %v", p.Words())
	}
}

func TestManagerInstallsAndRemoves(t *testing.T) {
	t.Setenv(paths.HomeVariable, t.TempDir())
	bin := t.TempDir()
	no := false
	m := &counter{has: map[string]string{"brew info --formula ollama": "ollama"}}
	o := Options{Engine: lifecycle.Ollama, System: "darwin", Machine: "arm64", Root: &no, Run: m.run, Env: []string{"PATH=" + bin}}
	p, err := Prepare(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Do(t.Context(), o, p); err == nil || !strings.Contains(err.Error(), "not on PATH") {
		t.Errorf("a manager that installed nothing: %v", err)
	}
	if err := os.WriteFile(filepath.Join(bin, "ollama"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if path, err := Do(t.Context(), o, p); err != nil || path != filepath.Join(bin, "ollama") {
		t.Fatalf("Do = %s, %v", path, err)
	}
	if removed, err := Remove(t.Context(), o); err != nil || strings.Join(removed.Command, " ") != "brew uninstall --formula ollama" {
		t.Errorf("Remove = %+v, %v", removed, err)
	}
	m.ends = errors.New("exit status 1")
	if _, err := Do(t.Context(), o, p); err == nil || !strings.Contains(err.Error(), "last line") {
		t.Errorf("a manager that fails: %v", err)
	}
}

func TestUnknownEngine(t *testing.T) {
	if _, err := Prepare(t.Context(), Options{Engine: "vllm"}); err == nil || len(hint.Of(err)) == 0 {
		t.Errorf("Prepare = %v", err)
	}
}

func TestEveryMachineHasAnArchive(t *testing.T) {
	names := map[string][]string{
		lifecycle.Ollama:      {"ollama-darwin.tgz", "ollama-linux-amd64.tar.zst", "ollama-linux-arm64.tar.zst", "ollama-linux-arm64-jetpack6.tar.zst", "ollama-linux-amd64-rocm.tar.zst", "ollama-windows-amd64.zip", "ollama-windows-arm64.zip", "ollama-windows-amd64-rocm.zip"},
		lifecycle.LlamaServer: {"llama-b7000-bin-macos-arm64.tar.gz", "llama-b7000-bin-macos-x64.tar.gz", "llama-b7000-bin-ubuntu-x64.tar.gz", "llama-b7000-bin-ubuntu-arm64.tar.gz", "llama-b7000-bin-ubuntu-vulkan-x64.tar.gz", "llama-b7000-bin-win-cpu-x64.zip", "llama-b7000-bin-win-cpu-arm64.zip", "llama-b7000-bin-win-vulkan-x64.zip", "llama-b7000-bin-win-cuda-12.4-x64.zip"},
	}
	want := map[string]string{
		"ollama linux/amd64": "ollama-linux-amd64.tar.zst", "ollama linux/arm64": "ollama-linux-arm64.tar.zst", "ollama darwin/arm64": "ollama-darwin.tgz", "ollama windows/amd64": "ollama-windows-amd64.zip",
		"llama-server linux/amd64": "llama-b7000-bin-ubuntu-x64.tar.gz", "llama-server linux/amd64 nvidia": "llama-b7000-bin-ubuntu-vulkan-x64.tar.gz", "llama-server linux/arm64": "llama-b7000-bin-ubuntu-arm64.tar.gz",
		"llama-server darwin/arm64": "llama-b7000-bin-macos-arm64.tar.gz", "llama-server windows/amd64": "llama-b7000-bin-win-cpu-x64.zip", "llama-server windows/amd64 amd": "llama-b7000-bin-win-vulkan-x64.zip",
	}
	for key, name := range want {
		fields := strings.Fields(key)
		system, machine, _ := strings.Cut(fields[1], "/")
		gpu := ""
		if len(fields) > 2 {
			gpu = fields[2]
		}
		var assets []asset
		for _, n := range names[fields[0]] {
			assets = append(assets, asset{Name: n})
		}
		if got, ok := pick(assets, builds(fields[0], system, machine, gpu)); !ok || got.Name != name {
			t.Errorf("%s: %q, want %q", key, got.Name, name)
		}
	}
}
