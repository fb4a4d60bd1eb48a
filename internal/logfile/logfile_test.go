package logfile

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"localllm/internal/hint"
	"localllm/stats"
)

// The test binary is also the process that appends, reads as nobody, or measures itself.
func TestMain(m *testing.M) {
	if role := os.Getenv("LOGFILE_ROLE"); role != "" {
		os.Exit(roles[role]())
	}
	os.Exit(m.Run())
}

var roles = map[string]func() int{"append": roleAppend, "summarize": roleSummarize}

func same(s string) string { return s }

func record(task string) stats.Record {
	return stats.Record{Timestamp: time.Date(2026, 1, 21, 15, 30, 0, 0, time.UTC), Task: task, TaskType: "fix", Decision: "delegate", Status: "proven", TimeSeconds: 1}
}

// roleAppend appends LOGFILE_N records and says on stderr what the first error was.
func roleAppend() int {
	l := Open(os.Getenv("LOGFILE_ROOT"), same)
	n, _ := strconv.Atoi(os.Getenv("LOGFILE_N"))
	limit, _ := strconv.ParseInt(os.Getenv("LOGFILE_LIMIT"), 10, 64)
	if limit > 0 {
		l.limit = limit
	}
	if err := restrict(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	for i := range n {
		if err := l.Append(context.Background(), record(fmt.Sprintf("%s-%d", os.Getenv("LOGFILE_NAME"), i))); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return 0
}

func child(t *testing.T, role, root string, env ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append([]string{"LOGFILE_ROLE=" + role, "LOGFILE_ROOT=" + root}, env...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	return cmd, &stderr
}

func lines(t *testing.T, root string) []string {
	t.Helper()
	r, err := Open(root, same).Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var all []string
	for _, part := range r.Parts() {
		s := bufio.NewScanner(part)
		for s.Scan() {
			all = append(all, s.Text())
		}
	}
	return all
}

func summary(t *testing.T, root string) stats.Summary {
	t.Helper()
	r, err := Open(root, same).Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s, err := stats.Summarize(t.Context(), r.Parts(), stats.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func logPath(root string) string {
	return filepath.Join(root, ".claude", "workflow", "delegation-log.jsonl")
}

func TestFirstAppendMakesAPrivateLog(t *testing.T) {
	root := t.TempDir()
	l := Open(root, func(s string) string { return strings.ReplaceAll(s, "hunter2", "[redacted]") })
	if err := l.Append(t.Context(), record("the password is hunter2")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(l.Path())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", info, err)
	}
	got := lines(t, root)
	var m map[string]any
	if len(got) != 1 || json.Unmarshal([]byte(got[0]), &m) != nil || m["task"] != "the password is [redacted]" {
		t.Errorf("%q", got)
	}
}

func TestAnOpenModeIsTightened(t *testing.T) {
	root := t.TempDir()
	plant(t, root, "{}\n", 0o644)
	if err := Open(root, same).Append(t.Context(), record("x")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(logPath(root)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

func plant(t *testing.T, root, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(logPath(root)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(logPath(root), []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

func TestTornLastLineCostsOnlyItself(t *testing.T) {
	root := t.TempDir()
	plant(t, root, `{"timestamp":"2026-01-21T15:30:00Z","status":"proven"}`+"\n"+`{"timestamp":"2026-01-2`, 0o600)
	if err := Open(root, same).Append(t.Context(), record("after the crash")); err != nil {
		t.Fatal(err)
	}
	if s := summary(t, root); s.Delegations != 2 || s.SkippedLines != 1 {
		t.Errorf("%d delegations, %d skipped", s.Delegations, s.SkippedLines)
	}
}

func TestRotationLosesNothing(t *testing.T) {
	root := t.TempDir()
	l := Open(root, same)
	l.limit = 1000
	for i := range 40 {
		if i == 20 { // a writer dies just before the log is put aside
			f, err := os.OpenFile(l.Path(), os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteString(`{"torn`); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Append(t.Context(), record(strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
	}
	parts, err := filepath.Glob(filepath.Join(filepath.Dir(l.Path()), "delegation-log.*.jsonl"))
	if err != nil || len(parts) < 5 {
		t.Fatalf("%q %v", parts, err)
	}
	for _, p := range append(parts, l.Path()) {
		b, err := os.ReadFile(p)
		if err != nil || len(b) > 1000 || b[len(b)-1] != '\n' {
			t.Errorf("%s has %d bytes, %v", p, len(b), err)
		}
	}
	if s := summary(t, root); s.Delegations != 40 || s.SkippedLines != 1 {
		t.Errorf("%d delegations, %d skipped", s.Delegations, s.SkippedLines)
	}
	next := 0
	for _, text := range lines(t, root) {
		r, ok := stats.ParseLine([]byte(text))
		if !ok {
			continue
		}
		if r.Task != strconv.Itoa(next) {
			t.Fatalf("line %d is of task %s", next, r.Task)
		}
		next++
	}
}

func TestReaderGoesOnFromAnyByte(t *testing.T) {
	root := t.TempDir()
	l := Open(root, same)
	l.limit = 400
	for i := range 7 {
		if err := l.Append(t.Context(), record(strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
	}
	r, err := l.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all, err := io.ReadAll(io.MultiReader(r.Parts()...))
	if err != nil || int64(len(all)) != r.Size() {
		t.Fatalf("%d bytes of %d, %v", len(all), r.Size(), err)
	}
	for from := range len(all) + 1 {
		got, err := io.ReadAll(io.MultiReader(r.From(int64(from))...))
		if err != nil || !bytes.Equal(got, all[from:]) {
			t.Fatalf("from %d: %v", from, err)
		}
	}
}

func TestNoLogIsAnEmptyOne(t *testing.T) {
	if s := summary(t, t.TempDir()); s.Delegations != 0 || s.SkippedLines != 0 {
		t.Errorf("%+v", s)
	}
	r, err := Open(filepath.Join(t.TempDir(), "gone"), same).Read(t.Context())
	if !errors.Is(err, fs.ErrNotExist) || r != nil {
		t.Errorf("a project that is not there: %v", err)
	}
}

func TestWhatIsNoPlainFileIsRefused(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(outside, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	within := func(root, name string) string { return filepath.Join(root, ".claude", filepath.FromSlash(name)) }
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, plant := range map[string]func(root string){
		"a link out of the project": func(root string) {
			must(os.MkdirAll(within(root, "workflow"), 0o755))
			must(os.Symlink(outside, logPath(root)))
		},
		"a link to a file inside": func(root string) {
			must(os.MkdirAll(within(root, "workflow"), 0o755))
			must(os.WriteFile(filepath.Join(root, "inside"), []byte("x"), 0o600))
			must(os.Symlink("../../inside", logPath(root)))
		},
		"a dangling link": func(root string) {
			must(os.MkdirAll(within(root, "workflow"), 0o755))
			must(os.Symlink("nowhere", logPath(root)))
		},
		"a folder": func(root string) { must(os.MkdirAll(logPath(root), 0o755)) },
		"a folder that is a link": func(root string) {
			must(os.MkdirAll(within(root, ""), 0o755))
			must(os.Mkdir(filepath.Join(root, "elsewhere"), 0o755))
			must(os.Symlink("../elsewhere", within(root, "workflow")))
		},
		"an upper folder that is a link out": func(root string) { must(os.Symlink(filepath.Dir(outside), within(root, ""))) },
		"a file in the folder's place":       func(root string) { must(os.WriteFile(within(root, ""), nil, 0o600)) },
		"a lock that is a link": func(root string) {
			must(os.MkdirAll(within(root, "workflow"), 0o755))
			must(os.Symlink(outside, within(root, "workflow/delegation-log.lock")))
		},
		"a pipe": func(root string) { must(os.MkdirAll(within(root, "workflow"), 0o755)); must(mkfifo(logPath(root))) },
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			plant(root)
			err := Open(root, same).Append(t.Context(), record("x"))
			if err == nil || !strings.HasPrefix(err.Error(), "logging to "+logPath(root)) {
				t.Errorf("append: %v", err)
			}
			if name != "a file in the folder's place" && name != "an upper folder that is a link out" && len(hint.Of(err)) == 0 {
				t.Errorf("no hint with %v", err)
			}
			if b, err := os.ReadFile(outside); err != nil || string(b) != "precious" {
				t.Errorf("the file outside is now %q, %v", b, err)
			}
			if entries, err := os.ReadDir(filepath.Join(root, "elsewhere")); err == nil && len(entries) > 0 {
				t.Errorf("written through a linked folder: %v", entries)
			}
		})
	}
}
