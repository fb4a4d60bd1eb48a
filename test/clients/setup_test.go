//go:build clients

package clients

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"localllm/internal/practice"
	"localllm/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }

// installed puts the pinned clients into node_modules once. Their own install steps run one by one: which of them npm
// runs by itself depends on its version.
var installed = sync.OnceValue(func() error {
	lock, err := os.ReadFile("package-lock.json")
	if err != nil {
		return err
	}
	sum := sha256.Sum256(lock)
	stamp := hex.EncodeToString(sum[:])
	if old, err := os.ReadFile("node_modules/.stamp"); err == nil && string(old) == stamp {
		return nil
	}
	for _, step := range [][]string{
		{"npm", "install", "--ignore-scripts", "--no-save"},
		{"node", "node_modules/@anthropic-ai/claude-code/install.cjs"},
		{"sh", "-c", "cd node_modules/opencode-ai && node postinstall.mjs"},
	} {
		if out, err := exec.Command(step[0], step[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(step, " "), err, out)
		}
	}
	return os.WriteFile("node_modules/.stamp", []byte(stamp), 0o644)
})

// client is the path of a client's program.
func client(t *testing.T, name string) string {
	t.Helper()
	if err := installed(); err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Abs(filepath.Join("node_modules", ".bin", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// slug is what the practice model writes when a prompt asks for it.
const (
	ask     = "MAKE-SLUG"
	slug    = "hello-slug\n"
	prove   = "grep -qx hello-slug slug.txt"
	proxies = "http://127.0.0.1:9" // nothing listens there: a client that reaches out fails
)

// world is a user with a project, a practice model and localllm on the path.
type world struct {
	t                           *testing.T
	binary, home, user, project string
	model                       string
	env                         []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, binary: harness.Binary(t), home: harness.Home(t)}
	w.user, w.project = filepath.Join(w.home, "user"), filepath.Join(w.home, "project")
	w.model = harness.Model(t, practice.Script{
		{When: []string{ask}, Say: "### File: slug.txt\n```text\n" + slug + "```\n"},
		{Say: "Hello."},
	}, practice.Options{})
	w.env = harness.Env(t, w.home,
		"PATH="+filepath.Dir(w.binary)+string(os.PathListSeparator)+os.Getenv("PATH"),
		"HTTP_PROXY="+proxies, "HTTPS_PROXY="+proxies, "NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost",
		"DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "NO_COLOR=1")
	w.env = append(w.env, "PWD="+w.project) // some clients believe it before the kernel
	w.write(filepath.Join(w.home, "config.toml"), fmt.Sprintf("model_dirs = [%q]\n", filepath.Dir(w.model)))
	w.write(filepath.Join(w.project, "README.md"), "A project.\n")
	return w
}

func (w *world) write(path, text string) {
	w.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		w.t.Fatal(err)
	}
}

// get is a variable of the world's environment.
func (w *world) get(name string) string {
	for _, entry := range slices.Backward(w.env) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// mark is the entry that finds every process of this world.
func (w *world) mark() string {
	for _, entry := range w.env {
		if strings.HasPrefix(entry, "LOCALLLM_TEST_MARK=") {
			return entry
		}
	}
	w.t.Fatal("the environment has no mark")
	return ""
}

// install is the one command that a user needs.
func (w *world) install(name string) {
	w.t.Helper()
	if _, err := w.run(time.Minute, nil, w.binary, "install", "--client", name); err != nil {
		w.t.Fatal(err)
	}
}

// uninstall checks that the installation was seen to answer, and leaves nothing of it.
func (w *world) uninstall(name string) {
	w.t.Helper()
	out, err := w.run(time.Minute, nil, w.binary, "install", "--status", "--json", "--client", name)
	if err != nil || !strings.Contains(strings.Join(strings.Fields(out), ""), `"answers":true`) {
		w.t.Errorf("%s: %s %v", name, out, err)
	}
	if _, err := w.run(time.Minute, nil, w.binary, "uninstall", "--client", name); err != nil {
		w.t.Error(err)
	}
	for _, dir := range []string{".claude/settings.json", ".claude/CLAUDE.md", ".claude/plugins/known_marketplaces.json", ".codex", ".config/opencode"} {
		if out, err := exec.Command("grep", "-rlE", "local_llm|localllm", filepath.Join(w.user, dir)).Output(); err == nil && !onlyHistory(string(out)) {
			w.t.Errorf("left in %s: %s", dir, out)
		}
	}
}

// onlyHistory reports whether what a client wrote itself, its logs and sessions, is all that names us.
func onlyHistory(paths string) bool {
	for path := range strings.Lines(paths) {
		for _, ours := range []string{"config.toml", "opencode.json", "AGENTS.md", "CLAUDE.md", "settings.json", "known_marketplaces.json", ".localllm-backup"} {
			if strings.HasSuffix(strings.TrimSpace(path), ours) {
				return false
			}
		}
	}
	return true
}

// run runs a program in the project and returns its standard output.
func (w *world) run(limit time.Duration, env []string, name string, args ...string) (string, error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = w.project, append(slices.Clone(w.env), env...), 5*time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(name), strings.Join(args, " "), err, tail(out.String()), tail(errs.String()))
	}
	return out.String(), err
}

func tail(s string) string { return s[max(0, len(s)-3000):] }

// quiet waits until nothing of ours lives any more: the client has gone, so the engine has to.
func (w *world) quiet() {
	w.t.Helper()
	harness.Until(w.t, "every process of this client being gone", 60*time.Second, func() bool { return len(harness.Processes(w.mark())) == 0 })
}

// proven checks the file that the local model was to write, and the log.
func (w *world) proven() {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.project, "slug.txt"))
	if err != nil || string(text) != slug {
		w.t.Errorf("slug.txt has %q, %v", text, err)
	}
	log, err := os.ReadFile(filepath.Join(w.project, ".claude", "workflow", "delegation-log.jsonl"))
	if err != nil || !strings.Contains(string(log), `"proven"`) {
		w.t.Errorf("the log has no proven delegation: %s, %v", log, err)
	}
}
