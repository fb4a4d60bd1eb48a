//go:build unix

package verify

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"localllm/delegate"
	"localllm/internal/paths"
	"localllm/internal/proc"
	"localllm/test/harness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func in(t *testing.T, dir string) Folder {
	return Folder{Dir: dir, Layout: paths.Layout{Run: filepath.Join(t.TempDir(), "run")}}
}

func run(t *testing.T, f Folder, c delegate.Command) delegate.Outcome {
	t.Helper()
	if c.Timeout == 0 {
		c.Timeout = 30 * time.Second
	}
	o, err := f.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestOutcomes(t *testing.T) {
	f := in(t, t.TempDir())
	rows := []struct {
		name   string
		c      delegate.Command
		exit   int
		output string
	}{
		{"a line", delegate.Command{Shell: "echo out; echo err >&2; exit 3"}, 3, "out\nerr\n"},
		{"an argument vector, with no shell", delegate.Command{Argv: []string{"echo", "$HOME; x"}}, 0, "$HOME; x\n"},
		{"no input", delegate.Command{Shell: "cat; read x || echo none"}, 0, "none\n"},
		{"the folder's path goes", delegate.Command{Shell: `echo "$PWD/a.go:1:2: bad"; echo "in $PWD"; echo "$PWD-more"`}, 0, "a.go:1:2: bad\nin .\n" + f.Dir + "-more\n"},
		{"the shell finds no program", delegate.Command{Shell: "no-such-program"}, 127, ""},
		{"killed", delegate.Command{Shell: "kill -9 $$"}, 137, ""},
	}
	for _, r := range rows {
		o := run(t, f, r.c)
		if o.Exit != r.exit || r.output != "" && o.Output != r.output || o.Missing != "" || o.TimedOut || o.Green() != (r.exit == 0) {
			t.Errorf("%s: %+v", r.name, o)
		}
	}
	if o := run(t, f, delegate.Command{Shell: "cut -d' ' -f6 /proc/self/stat"}); strings.TrimSpace(o.Output) == strconv.Itoa(session(t)) {
		t.Error("verify shares our session, and so our terminal")
	}
	if o := run(t, f, delegate.Command{Argv: []string{"./nothing"}}); o.Missing == "" || o.Green() {
		t.Errorf("a program that is not there: %+v", o)
	}
}

func session(t *testing.T) int {
	t.Helper()
	id, err := unix.Getsid(0)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestCheckSaysWhatCanNotStart(t *testing.T) {
	f := in(t, t.TempDir())
	if err := os.WriteFile(filepath.Join(f.Dir, "plain"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, argv := range [][]string{{"no-such-program"}, {"./plain"}, {"./nothing"}} {
		if err := f.Check(delegate.Command{Argv: argv}); err == nil || !strings.Contains(err.Error(), argv[0]) {
			t.Errorf("%v: %v", argv, err)
		}
	}
	if err := f.Check(delegate.Command{Argv: []string{"sh", "-c", "x"}}); err != nil {
		t.Error(err)
	}
	if err := in(t, filepath.Join(f.Dir, "gone")).Check(delegate.Command{Shell: "true"}); err == nil {
		t.Error("a working folder that is gone")
	}
}

func TestTheEnvironmentHoldsNoKeys(t *testing.T) {
	t.Setenv("SENTINEL_API_KEY", "sk-sentinel-1234")
	t.Setenv("ANTHROPIC_API_KEY", "sk-sentinel-1234")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "sk-sentinel-1234")
	t.Setenv("GOFLAGS", "-count=1")
	t.Setenv("GOPROXY", "https://me:sk-sentinel-1234@proxy.example")
	t.Setenv("LC_ALL", "C")
	o := run(t, in(t, t.TempDir()), delegate.Command{Shell: "env; cat /proc/self/environ | tr '\\0' '\\n'"})
	if strings.Contains(o.Output, "sentinel") {
		t.Errorf("verify sees a key:\n%s", o.Output)
	}
	for _, want := range []string{"GOFLAGS=-count=1", "LC_ALL=C", "PATH=", "TMPDIR="} {
		if !strings.Contains(o.Output, want) {
			t.Errorf("verify has no %s:\n%s", want, o.Output)
		}
	}
}

// What verify starts and leaves behind is gone when Run returns: a daemon in its own session, one that ignores TERM, one
// that holds the output open.
func TestNothingIsLeft(t *testing.T) {
	dir := t.TempDir()
	line := `(setsid sh -c 'echo $$ > one; exec sleep 300' >/dev/null 2>&1 &) ; (trap "" TERM HUP; echo $$ > two; exec sleep 300) & sh -c 'echo $$ > three; exec sleep 300' & ` +
		`while [ ! -s one ] || [ ! -s two ] || [ ! -s three ]; do sleep 0.01; done; `
	for name, c := range map[string]delegate.Command{"ended": {Shell: line + "exit 0"}, "out of time": {Shell: line + "sleep 300", Timeout: 3 * time.Second}} {
		started := time.Now()
		o := run(t, in(t, dir), c)
		if took := time.Since(started); took > 20*time.Second || o.TimedOut != (c.Timeout > 0) {
			t.Errorf("%s: %v, %+v", name, took, o)
		}
		for _, n := range []string{"one", "two", "three"} {
			raw, err := os.ReadFile(filepath.Join(dir, n))
			if err != nil {
				t.Fatal(err)
			}
			if alive(t, strings.TrimSpace(string(raw))) {
				t.Errorf("%s: process %s is left", name, n)
			}
			_ = os.Remove(filepath.Join(dir, n))
		}
	}
}

func alive(t *testing.T, pid string) bool {
	t.Helper()
	n := 0
	for _, c := range pid {
		n = 10*n + int(c-'0')
	}
	_, err := proc.Identify(n)
	return err == nil
}

func TestCancelled(t *testing.T) {
	dir := t.TempDir()
	f := in(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := f.Run(ctx, delegate.Command{Shell: "touch up; sleep 300", Timeout: time.Minute})
		ended <- err
	}()
	harness.Until(t, "the command runs", 20*time.Second, func() bool { _, err := os.Stat(filepath.Join(dir, "up")); return err == nil })
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("still there 20 s after the cancel")
	}
}

func TestOutputIsBounded(t *testing.T) {
	o := run(t, in(t, t.TempDir()), delegate.Command{Shell: "echo first; yes | head -c 20000000; echo last; exit 1"})
	if len(o.Output) > 100<<10 || !strings.HasPrefix(o.Output, "first\n") || !strings.HasSuffix(o.Output, "last\n") || !strings.Contains(o.Output, "bytes left out") {
		t.Errorf("%d bytes, from %q to %q", len(o.Output), o.Output[:10], o.Output[len(o.Output)-10:])
	}
}

func TestChangedFilesAreNoticed(t *testing.T) {
	f := in(t, t.TempDir())
	for name, body := range map[string]string{"a": "1", "b": "1", "dir/c": "1", ".git/config": "x", ".git/index": "x", "node_modules/m": "x"} {
		p := filepath.Join(f.Dir, name)
		_ = os.MkdirAll(filepath.Dir(p), 0o755)
		if err := os.WriteFile(p, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	o := run(t, f, delegate.Command{Shell: "echo 22 > a; rm b; echo x > dir/new; chmod 600 dir/c; echo y >> .git/config; mkdir -p .git/hooks; echo z > .git/hooks/pre-commit; echo z > .git/index; echo n > node_modules/m; echo t > .localllm-x"})
	want := []string{".git/config", ".git/hooks/pre-commit", "a", "b", "dir/c", "dir/new"}
	if !slices.Equal(o.Changed, want) || o.Unseen {
		t.Errorf("changed %q, want %q", o.Changed, want)
	}
	if o := run(t, f, delegate.Command{Shell: "cat a"}); len(o.Changed) > 0 {
		t.Errorf("reading changed %q", o.Changed)
	}
}

func TestFingerprint(t *testing.T) {
	f := in(t, t.TempDir())
	p := filepath.Join(f.Dir, "a")
	at := time.Unix(1_700_000_000, 5)
	set := func(body string, at time.Time) string {
		if err := os.WriteFile(p, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(p, at, at); err != nil {
			t.Fatal(err)
		}
		return f.Fingerprint(t.Context())
	}
	one := set("x", at)
	if one == "" || set("x", at.Add(1)) == one || set("xy", at) == one || set("x", at) != one {
		t.Error("a fingerprint follows size and time of each file")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range 600 {
		_ = os.WriteFile(filepath.Join(f.Dir, "f"+strings.Repeat("x", i%200)+string(rune('a'+i%26))), nil, 0o644)
	}
	if f.Fingerprint(ctx) != "" {
		t.Error("an unfinished look has no fingerprint")
	}
}

func TestATemporaryFolderOfItsOwn(t *testing.T) {
	dir := t.TempDir()
	o := run(t, in(t, dir), delegate.Command{Shell: `mkdir -p "$TMPDIR/ro/x"; touch "$TMPDIR/ro/x/f"; chmod -R a-w "$TMPDIR/ro"; printf '%s' "$TMPDIR" > where; echo "$TMPDIR/ro"`})
	where, err := os.ReadFile(filepath.Join(dir, "where"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(string(where)); err == nil || len(where) == 0 {
		t.Errorf("%s is left", where)
	}
	if o.Output != "$TMPDIR/ro\n" {
		t.Errorf("output %q", o.Output)
	}
}
