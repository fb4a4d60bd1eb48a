// Package program finds the engines' executables. It never runs one.
package program

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"localllm/internal/atomicfile"
	"localllm/internal/paths"
)

// Variables name a binary each.
const (
	OllamaVariable      = "LOCALLLM_OLLAMA"
	LlamaServerVariable = "LOCALLLM_LLAMA_SERVER"
)

// Where says how a program was found.
type Where string

// The places, in the order in which they are looked at.
const (
	ByVariable Where = "environment"
	BySetup    Where = "setup"
	ByPath     Where = "path"
)

// ErrNone means that no place has the program.
var ErrNone = errors.New("not found")

// Find looks for an engine's executable ("ollama", "llama-server"): the variable that names it, the folder that
// `localllm setup` installs to, then PATH. env is the environment to go by, nil for this process's own. A variable
// that names something that can't be run is an error, not a reason to look further: it was meant.
func Find(engine string, env []string) (string, Where, error) {
	if env == nil {
		env = os.Environ()
	}
	if named := Lookup(env, variable(engine)); named != "" {
		if err := runnable(named); err != nil {
			return "", ByVariable, fmt.Errorf("%s names %s: %w", variable(engine), named, err)
		}
		path, err := filepath.Abs(named)
		return path, ByVariable, err
	}
	if path := installed(engine); path != "" {
		return path, BySetup, nil
	}
	for _, dir := range append(filepath.SplitList(Lookup(env, "PATH")), Usual...) {
		// A relative entry would run whatever a project's own folder holds.
		if !filepath.IsAbs(dir) {
			continue
		}
		path := filepath.Join(dir, executable(engine))
		if runnable(path) == nil {
			return path, ByPath, nil
		}
	}
	return "", "", fmt.Errorf("looking for %s: %w", engine, ErrNone)
}

// Usual are folders that installers put programs in and that are not on the PATH of a client which was started from
// a desktop. Tests empty it.
var Usual = []string{"/usr/local/bin", "/opt/homebrew/bin", "/usr/bin", "/Applications/Ollama.app/Contents/Resources"}

func variable(engine string) string {
	if engine == "ollama" {
		return OllamaVariable
	}
	return LlamaServerVariable
}

func executable(engine string) string {
	if runtime.GOOS == "windows" {
		return engine + ".exe"
	}
	return engine
}

func runnable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return errors.Unwrap(err)
	case info.IsDir():
		return errors.New("it is a folder")
	case runtime.GOOS != "windows" && info.Mode()&0o111 == 0:
		return errors.New("it is not executable")
	}
	return nil
}

// Lookup is the last value of name in env, as exec sees it.
func Lookup(env []string, name string) string {
	value := ""
	for _, entry := range env {
		if key, v, ok := strings.Cut(entry, "="); ok && key == name {
			value = v
		}
	}
	return value
}

// Installed is the record that setup leaves beside what it installed.
type Installed struct {
	Engine  string `json:"engine"`
	Version string `json:"version"`
	Path    string `json:"path"` // of the executable
	SHA256  string `json:"sha256"`
	Source  string `json:"source"`
}

// Folder is where setup keeps one engine.
func Folder(engine string) (string, error) {
	layout, err := paths.Find()
	if err != nil {
		return "", err
	}
	return filepath.Join(layout.State, "engines", engine), nil
}

// Record is the path of an engine's Installed record.
func Record(folder string) string { return filepath.Join(folder, "installed.json") }

func installed(engine string) string {
	folder, err := Folder(engine)
	if err != nil {
		return ""
	}
	return Recorded(folder)
}

// Recorded is the executable that setup has installed in folder, empty if there is none that can be run.
func Recorded(folder string) string {
	var record Installed
	if atomicfile.ReadJSON(Record(folder), &record) != nil || runnable(record.Path) != nil {
		return ""
	}
	return record.Path
}
