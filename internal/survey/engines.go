package survey

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"localllm/capability"
	"localllm/internal/engine/program"
	"localllm/internal/proc"
)

const (
	// versionLimit is for a program's own --version, which loads its back ends on some builds.
	versionLimit = time.Second
	versionLen   = 64
)

// Where engines install themselves beside the search path: clients start us with a short one.
var programDirs = []string{"/usr/local/bin", "/opt/homebrew/bin", "/usr/bin", "/Applications/Ollama.app/Contents/Resources"}

// program finds an engine's program: the one named by the variable, or the first on the path.
func (s *Surveyor) program(variable, name string) string {
	if named := s.Env(variable); variable != "" && named != "" {
		if executable(named) {
			return named
		}
		return ""
	}
	if path := program.Recorded(filepath.Join(s.State, "engines", name)); path != "" {
		return path // by localllm setup
	}
	if windows {
		name += ".exe"
	}
	for _, dir := range append(filepath.SplitList(s.Env("PATH")), programDirs...) {
		if full := filepath.Join(dir, name); filepath.IsAbs(full) && executable(full) {
			return full
		}
	}
	return ""
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && (windows || info.Mode()&0o111 != 0)
}

// engines asks about both at the same time.
func (s *Surveyor) engines(ctx context.Context, c *cache) (ollama ollamaFound, server capability.EngineInfo) {
	var group sync.WaitGroup
	group.Go(func() { ollama = s.ollama(ctx, c) })
	group.Go(func() {
		server = capability.EngineInfo{Name: capability.LlamaServer, State: capability.Missing}
		named := s.Env("LOCALLLM_LLAMA_SERVER")
		server.Path = s.program("LOCALLLM_LLAMA_SERVER", "llama-server")
		switch {
		case server.Path != "":
			server.State = capability.Installed
			server.Version = s.version(ctx, c, server.Path)
		case named != "":
			server.Detail = "LOCALLLM_LLAMA_SERVER names " + named + ", which is no program"
		}
	})
	group.Wait()
	return ollama, server
}

var versionPatterns = []*regexp.Regexp{
	regexp.MustCompile(`\bbuild (\d+)`),                  // version: 0.7.0 (build 11669, commit …)
	regexp.MustCompile(`version: (\d+) \(`),              // version: 6123 (a1b2c3d)
	regexp.MustCompile(`version (?:is )?v?(\d[\w.+-]*)`), // client version is 0.34.2
	regexp.MustCompile(`version: v?(\d[\w.+-]*)`),
}

// version asks a program for its version, once for each state of its file. Unknown is empty.
func (s *Surveyor) version(ctx context.Context, c *cache, path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	if v, ok := c.version(path, info); ok {
		return v
	}
	ctx, cancel := context.WithTimeout(ctx, versionLimit)
	defer cancel()
	var out bytes.Buffer
	w := &bounded{w: &out, left: 1 << 16}
	if _, err := proc.Run(ctx, proc.Command{Path: path, Args: []string{"--version"}, Stdout: w, Stderr: w, Grace: versionLimit / 10}); err != nil {
		return ""
	}
	v := parseVersion(out.String())
	c.setVersion(path, info, v)
	return v
}

func parseVersion(text string) string {
	for _, p := range versionPatterns {
		if m := p.FindStringSubmatch(text); m != nil && len(m[1]) <= versionLen {
			if p == versionPatterns[0] || p == versionPatterns[1] {
				return "b" + m[1]
			}
			return strings.TrimRight(m[1], ".")
		}
	}
	return ""
}

// bounded keeps the first bytes and swallows the rest. One goroutine writes at a time.
type bounded struct {
	mu   sync.Mutex
	w    *bytes.Buffer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(p), b.left)
	b.left -= n
	b.w.Write(p[:n])
	return len(p), nil
}
