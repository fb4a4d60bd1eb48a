package program

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"localllm/internal/atomicfile"
	"localllm/internal/paths"
)

func TestMain(m *testing.M) {
	Usual = nil
	os.Exit(m.Run())
}

func binary(t *testing.T, dir, name string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOrderOfPlaces(t *testing.T) {
	t.Setenv(paths.HomeVariable, t.TempDir())
	dir := t.TempDir()
	onPath := binary(t, filepath.Join(dir, "path"), "ollama")
	named := binary(t, filepath.Join(dir, "named"), "ollama")
	env := []string{"PATH=relative" + string(os.PathListSeparator) + dir + "/nowhere" + string(os.PathListSeparator) + filepath.Dir(onPath)}
	if _, _, err := Find("llama-server", env); !errors.Is(err, ErrNone) {
		t.Errorf("nothing there: %v", err)
	}
	if got, where, err := Find("ollama", env); err != nil || got != onPath || where != ByPath {
		t.Errorf("by PATH: %s, %s, %v", got, where, err)
	}
	folder, err := Folder("ollama")
	if err != nil {
		t.Fatal(err)
	}
	own := binary(t, filepath.Join(folder, "v1"), "ollama")
	if err := atomicfile.WriteJSON(Record(folder), Installed{Engine: "ollama", Path: own}); err != nil {
		t.Fatal(err)
	}
	if got, where, err := Find("ollama", env); err != nil || got != own || where != BySetup {
		t.Errorf("by setup: %s, %s, %v", got, where, err)
	}
	env = append(env, OllamaVariable+"="+named)
	if got, where, err := Find("ollama", env); err != nil || got != named || where != ByVariable {
		t.Errorf("by variable: %s, %s, %v", got, where, err)
	}
	for _, bad := range []string{filepath.Join(dir, "none"), dir} {
		if _, _, err := Find("ollama", append(env, OllamaVariable+"="+bad)); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("a wrong variable is not an error: %v", err)
		}
	}
	_ = os.Remove(own)
	if got, _, err := Find("ollama", env[:1]); err != nil || got != onPath {
		t.Errorf("after the installed one went: %s, %v", got, err)
	}
}

func TestTheProjectsFolderIsNotSearched(t *testing.T) {
	t.Setenv(paths.HomeVariable, t.TempDir())
	dir := t.TempDir()
	binary(t, dir, "ollama")
	t.Chdir(dir)
	for _, path := range []string{"", ".", "./"} {
		if got, _, err := Find("ollama", []string{"PATH=" + path}); err == nil {
			t.Errorf("PATH=%q found %s", path, got)
		}
	}
}

func TestLookupTakesTheLast(t *testing.T) {
	if got := Lookup([]string{"A=1", "AB=2", "A=3=4", "odd"}, "A"); got != "3=4" {
		t.Errorf("%q", got)
	}
}
