package engines

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// What the tests and the adapters pass on a command line. An engine that lacks one of these would exit at once.
var needed = map[string][]string{
	"llama-server": {
		"--host", "--port", "--ctx-size", "--parallel", "--alias", "--api-key-file", "--cors-origins", "--no-ui", "--slots", "--metrics",
		"--offline", "--cache-ram", "--slot-save-path", "--kv-unified", "--jinja", "--chat-template-file", "--no-warmup",
	},
	"llama-fit-params": {"--fit-print", "--cache-type-k", "--no-repack", "--load-mode"},
}

// leastOllama is the oldest release whose API reports cached prompt tokens as the tests read them.
var leastOllama = [2]int{0, 34}

var release = regexp.MustCompile(`(\d+)\.(\d+)\.(\d+)`)

// usable says in a line what the program is, or what it lacks.
func usable(ctx context.Context, path string) (version string, err error) {
	name := filepath.Base(path)
	if name == "ollama" {
		return usableOllama(ctx, path)
	}
	help, err := output(ctx, path, "--help")
	if err != nil {
		return "", err
	}
	for _, flag := range needed[name] {
		if !regexp.MustCompile(`(^|[\s,])` + regexp.QuoteMeta(flag) + `([\s,]|$)`).MatchString(help) {
			return "", fmt.Errorf("%s has no option %s, which the tests use", path, flag)
		}
	}
	if name != "llama-server" {
		return name, nil
	}
	text, err := output(ctx, path, "--version")
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return name + " " + strings.TrimPrefix(line, "version: "), nil
}

func usableOllama(ctx context.Context, path string) (string, error) {
	text, err := output(ctx, path, "--version")
	if err != nil {
		return "", err
	}
	// With a server running, the first line is the server's version and the client's comes after it.
	if _, client, ok := strings.Cut(text, "client version is "); ok {
		text = client
	}
	found := release.FindStringSubmatch(text)
	if found == nil {
		return "", fmt.Errorf("%s does not say its version", path)
	}
	major, _ := strconv.Atoi(found[1])
	minor, _ := strconv.Atoi(found[2])
	if major < leastOllama[0] || major == leastOllama[0] && minor < leastOllama[1] {
		return "", fmt.Errorf("%s is version %s, older than %d.%d", path, found[0], leastOllama[0], leastOllama[1])
	}
	return "ollama " + found[0], nil
}

func assert(ctx context.Context, paths Paths) (versions []string, err error) {
	for _, path := range []string{paths.LlamaServer, paths.LlamaFitParams, paths.Ollama} {
		version, err := usable(ctx, path)
		if err != nil {
			return nil, err
		}
		versions = append(versions, version)
	}
	return versions, nil
}

// fromPath links the program that PATH has into bin, if it is usable.
func fromPath(ctx context.Context, folder, name string) bool {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		real, err := filepath.EvalSymlinks(path)
		if err != nil || !filepath.IsAbs(path) || strings.HasPrefix(real, folder+string(filepath.Separator)) {
			continue
		}
		if _, err := usable(ctx, path); err != nil || name == "ollama" && !helped(real) {
			continue
		}
		return relink(path, filepath.Join(folder, "bin", name)) == nil
	}
	return false
}

// helped reports whether an Ollama can start models: one that go install left somewhere has no helper beside it.
func helped(program string) bool {
	if runtime.GOOS != "linux" {
		return true
	}
	_, err := os.Stat(filepath.Join(filepath.Dir(program), "..", "lib", "ollama", "llama-server"))
	return err == nil
}

func relink(target, link string) error {
	if err := os.Remove(link); err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.Symlink(target, link)
}

func output(ctx context.Context, path string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	text, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("running %s %s: %w: %s", path, strings.Join(args, " "), err, lastLine(string(text)))
	}
	return string(text), nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
