//go:build unix

package logfile

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"localllm/stats"
)

func mkfifo(path string) error { return unix.Mkfifo(path, 0o600) }

// restrict makes the appending child as unlucky as its environment says.
func restrict() error {
	if text := os.Getenv("LOGFILE_FSIZE"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return err
		}
		signal.Ignore(syscall.SIGXFSZ)
		return unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: n, Max: n})
	}
	return nil
}

// Eight processes at once, with rotation under way. LOCALLLM_APPENDS raises the number of lines each.
func TestEightProcessesAppendAtOnce(t *testing.T) {
	each := 10_000
	if testing.Short() || raceEnabled {
		each = 500
	}
	root := t.TempDir()
	ended := make(chan error, 8)
	for i := range 8 {
		cmd, stderr := child(t, "append", root, "LOGFILE_N="+strconv.Itoa(each), "LOGFILE_NAME="+strconv.Itoa(i), "LOGFILE_LIMIT="+strconv.Itoa(2<<20))
		go func() { // ends with its child
			err := cmd.Run()
			if err != nil {
				err = fmt.Errorf("%w: %s", err, stderr)
			}
			ended <- err
		}()
	}
	for range 8 {
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	if s := summary(t, root); s.Delegations != 8*each || s.SkippedLines != 0 {
		t.Errorf("%d good lines, %d bad; want %d and 0", s.Delegations, s.SkippedLines, 8*each)
	}
	next := map[string]int{}
	for _, text := range lines(t, root) {
		var r stats.Record
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		name, number, _ := strings.Cut(r.Task, "-")
		if number != strconv.Itoa(next[name]) {
			t.Fatalf("process %s: line %s comes after %d", name, number, next[name])
		}
		next[name]++
	}
}

// A writer that is killed leaves at most one torn line and no lock.
func TestKilledWriters(t *testing.T) {
	root := t.TempDir()
	for round := range 8 {
		cmd, _ := child(t, "append", root, "LOGFILE_N=1000000", "LOGFILE_NAME="+strconv.Itoa(round))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		from := logSize(root)
		for deadline := time.Now().Add(30 * time.Second); logSize(root) < from+20_000; {
			if time.Now().After(deadline) {
				t.Fatal("the writer does not write")
			}
			runtime.Gosched()
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		before := summary(t, root)
		began := time.Now()
		if err := Open(root, same).Append(t.Context(), record("after the kill")); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > patience/2 {
			t.Errorf("the dead writer's lock held for %v", took)
		}
		if s := summary(t, root); s.Delegations != before.Delegations+1 || s.SkippedLines > round+1 {
			t.Errorf("%d delegations, before %d; %d skipped", s.Delegations, before.Delegations, s.SkippedLines)
		}
	}
}

func logSize(root string) int64 {
	info, err := os.Stat(logPath(root))
	if err != nil {
		return 0
	}
	return info.Size()
}

// What a full disk lets through of a line is taken back: the log stays as it was.
func TestFullDiskLeavesTheLogAsItWas(t *testing.T) {
	root := t.TempDir()
	before := strings.Repeat(`{"timestamp":"2026-01-21T15:30:00Z","status":"proven"}`+"\n", 20)
	plant(t, root, before, 0o600)
	cmd, stderr := child(t, "append", root, "LOGFILE_N=1", "LOGFILE_FSIZE="+strconv.Itoa(len(before)+30))
	if err := cmd.Run(); err == nil || !strings.Contains(stderr.String(), "logging to "+logPath(root)) {
		t.Errorf("%v, said %q", err, stderr)
	}
	if now, err := os.ReadFile(logPath(root)); err != nil || string(now) != before {
		t.Errorf("the log has %d bytes, before %d, %v; it ends in %q", len(now), len(before), err, now[max(0, len(now)-60):])
	}
	// And goes on when there is room again.
	if err := Open(root, same).Append(t.Context(), record("room")); err != nil {
		t.Fatal(err)
	}
	if s := summary(t, root); s.Delegations != 21 || s.SkippedLines != 0 {
		t.Errorf("%d delegations, %d skipped", s.Delegations, s.SkippedLines)
	}
}

func TestUnreadableAndUnwritableLogs(t *testing.T) {
	for name, c := range map[string]struct {
		file, dir os.FileMode
	}{"unreadable": {0, 0o777}, "read-only folder": {0o644, 0o555}} {
		t.Run(name, func(t *testing.T) {
			root := openToNobody(t)
			plant(t, root, "{}\n", c.file)
			if err := os.Chmod(logPath(root), c.file); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(filepath.Dir(logPath(root)), c.dir); err != nil {
				t.Fatal(err)
			}
			cmd, stderr := child(t, "append", root, "LOGFILE_N=1")
			if os.Getuid() == 0 {
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			}
			if err := cmd.Run(); err == nil || !strings.Contains(stderr.String(), "permission denied") {
				t.Errorf("%v, said %q", err, stderr)
			}
			if err := os.Chmod(filepath.Dir(logPath(root)), 0o755); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// openToNobody is a folder that another user can reach, with a test binary that it can run.
func openToNobody(t *testing.T) string {
	t.Helper()
	root, err := os.MkdirTemp("", "logfile-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for dir := filepath.Dir(os.Args[0]); dir != "/"; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o001 == 0 && os.Getuid() == 0 {
			if err := os.Chmod(dir, info.Mode().Perm()|0o001); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

// A million lines by LOCALLLM_LINES=1000000; the default is a tenth of it, held to the same speed.
func TestStatsIsFastAndSmall(t *testing.T) {
	n := 100_000
	if text := os.Getenv("LOCALLLM_LINES"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	root := t.TempDir()
	size, broken := bigLog(t, root, n)
	began := time.Now()
	cmd, stderr := child(t, "summarize", root)
	out, err := cmd.Output()
	took := time.Since(began)
	if err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	var s stats.Summary
	if err := json.Unmarshal(out, &s); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if s.Delegations != n-broken || s.SkippedLines != broken {
		t.Errorf("%d delegations, %d skipped; want %d and %d", s.Delegations, s.SkippedLines, n-broken, broken)
	}
	peak := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
	if runtime.GOOS == "darwin" {
		peak /= 1024
	}
	t.Logf("%d lines, %d MB: %v, peak %d MiB", n, size/1_000_000, took.Round(time.Millisecond), peak/1024)
	if !raceEnabled && peak > 80<<10 {
		t.Errorf("peak memory is %d MiB", peak/1024)
	}
	if limit := max(2*time.Second, time.Duration(n)*5*time.Microsecond); !raceEnabled && took > limit {
		t.Errorf("took %v, over %v, which is twice what it may", took, limit)
	}
}

// bigLog writes n lines of 400 bytes, one of a hundred broken.
func bigLog(t *testing.T, root string, n int) (size int64, broken int) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(logPath(root)), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(logPath(root))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b []byte
	for i := range n {
		from := len(b)
		b = fmt.Appendf(b, `{"timestamp":"2026-%02d-%02dT15:30:%02dZ","task":"Write handler %d, errors \"as they are\"","task_type":"generate","score":0.%02d,"decision":"delegate","verification_passed":true,"tokens_generated":%d,"time_seconds":%d.5,"id":"%08d","status":"proven","model":"qwen3-coder:30b","attempts":1,"tokens_prompt":%d,"tokens_cached":900,"files":["a.go"],"verify_exit":0,"version":"`, 3+i%10, 1+i%30, i%60, i, i%100, i%2000, i%200, i, 1000+i%9000)
		for len(b)-from < 397 {
			b = append(b, '0')
		}
		b = append(b, "\"}\n"...)
		if i%100 == 7 {
			b = append(b[:len(b)-2], '\n')
			broken++
		}
		if len(b) > 1<<20 || i == n-1 {
			if _, err := f.Write(b); err != nil {
				t.Fatal(err)
			}
			size += int64(len(b))
			b = b[:0]
		}
	}
	return size, broken
}
