//go:build unix

package scratch

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"localllm/internal/filelock"
	"localllm/internal/paths"
	"localllm/internal/proc"
)

const makerVariable = "SCRATCH_TEST_MAKER"

// The test binary is also the process that is killed.
func TestMain(m *testing.M) {
	if run := os.Getenv(makerVariable); run != "" {
		maker(paths.Layout{Run: run})
	}
	os.Exit(m.Run())
}

// maker makes a folder, starts something in it that leaves its group, says so, and waits to be killed.
func maker(layout paths.Layout) {
	f, err := Make(layout, "", "localllm-scratch-test-")
	if err != nil {
		panic(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	line := `mkdir -p ro/deep; touch ro/deep/file; chmod -R a-w ro; (setsid sleep 300 >/dev/null 2>&1 &); echo begun; exec sleep 300`
	p, err := proc.Start(proc.Command{Path: "/bin/sh", Args: []string{"-c", line}, Dir: f.Path, Nonce: f.Nonce, Stdout: w})
	if err != nil {
		panic(err)
	}
	_ = w.Close()
	if _, err := bufio.NewReader(r).ReadString('\n'); err != nil {
		panic(err)
	}
	fmt.Println(f.Path, f.Nonce)
	_ = p.Wait()
}

// killed is what a maker left that was killed.
func killed(t *testing.T, layout paths.Layout) (path, nonce string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env, cmd.Stderr = append(os.Environ(), makerVariable+"="+layout.Run), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	if err := errors.Join(err, cmd.Process.Kill()); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if _, err := fmt.Sscan(said, &path, &nonce); err != nil {
		t.Fatal(err)
	}
	return path, nonce
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func records(t *testing.T, layout paths.Layout) []os.DirEntry {
	t.Helper()
	entries, err := os.ReadDir(recordsOf(layout))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return entries
}

func TestWhatAKilledMakerLeftIsEnded(t *testing.T) {
	layout := paths.Layout{Run: filepath.Join(t.TempDir(), "run")}
	Sweep(layout) // nothing was ever made
	living, err := Make(layout, "", "localllm-scratch-test-")
	if err != nil {
		t.Fatal(err)
	}
	at := proc.NewNonce()
	bystander, err := proc.Start(proc.Command{Path: "/bin/sleep", Args: []string{"300"}, Nonce: at})
	if err != nil {
		t.Fatal(err)
	}
	defer bystander.Stop(t.Context())
	path, nonce := killed(t, layout)
	if !there(path) || len(proc.Marked(nonce)) == 0 || len(records(t, layout)) != 2 {
		t.Fatalf("the kill left nothing: %s, %v, %v", path, proc.Marked(nonce), records(t, layout))
	}
	var all sync.WaitGroup
	for range 4 { // as several clients that start together do
		all.Go(func() { Sweep(layout) })
	}
	all.Wait()
	if left := proc.Marked(nonce); there(path) || len(left) > 0 {
		t.Errorf("left: the folder %v, processes %v", there(path), left)
	}
	if !there(living.Path) || len(proc.Marked(at)) != 1 {
		t.Error("what lives was swept away")
	}
	if left := records(t, layout); len(left) != 1 || left[0].Name() != living.Nonce {
		t.Errorf("records: %v", left)
	}
	if err := living.Remove(); err != nil || there(living.Path) || len(records(t, layout)) > 0 {
		t.Errorf("after Remove: %v, %v", err, records(t, layout))
	}
}

// Whoever comes while another one sweeps goes on to put files back: no process may be left by then that writes to them.
func TestASweepWaitsForAnothersSweep(t *testing.T) {
	layout := paths.Layout{Run: filepath.Join(t.TempDir(), "run")}
	path, nonce := killed(t, layout)
	other, err := filelock.Take(t.Context(), filepath.Join(recordsOf(layout), nonce))
	if err != nil {
		t.Fatal(err)
	}
	swept := make(chan int, 1)
	go func() {
		Sweep(layout)
		swept <- len(proc.Marked(nonce))
	}()
	select {
	case left := <-swept:
		end(nonce)
		t.Fatalf("it did not wait, and %d processes were left", left)
	case <-time.After(patience / 4):
	}
	end(nonce)
	if left := <-swept; left > 0 || !there(path) {
		t.Errorf("%d processes; the folder %v, which the other one holds", left, there(path))
	}
	if err := other.Release(); err != nil {
		t.Fatal(err)
	}
	Sweep(layout)
	if there(path) || len(records(t, layout)) > 0 {
		t.Errorf("left: the folder %v, records %v", there(path), records(t, layout))
	}
}

// A record that names what it could not have made is no reason to remove anything.
func TestOnlyWhatIsItsOwnIsRemoved(t *testing.T) {
	layout := paths.Layout{Run: filepath.Join(t.TempDir(), "run")}
	if err := os.MkdirAll(recordsOf(layout), 0o700); err != nil {
		t.Fatal(err)
	}
	victim := t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.Mkdir(outside, 0o700); err != nil {
		t.Fatal(err)
	}
	nonce := proc.NewNonce()
	link := filepath.Join(t.TempDir(), nameOf("x-", nonce))
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		proc.NewNonce(): mustJSON(record{format, victim, proc.Identity{}}),
		"short":         mustJSON(record{format, victim, proc.Identity{}}),
		nonce:           mustJSON(record{format, link, proc.Identity{}}),
		proc.NewNonce(): mustJSON(record{format + 1, victim, proc.Identity{}}),
		proc.NewNonce(): `{"version": 1, "pa`,
	} {
		if err := os.WriteFile(filepath.Join(recordsOf(layout), name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	Sweep(layout)
	if !there(victim) || !there(outside) || there(link) {
		t.Errorf("the victim %v, behind the link %v, the link %v", there(victim), there(outside), there(link))
	}
	if left := records(t, layout); len(left) != 2 { // of a newer release, and one that is being written
		t.Errorf("left: %v", left)
	}
	slow := proc.NewNonce() // its maker has written nothing yet
	lock, err := filelock.Try(filepath.Join(recordsOf(layout), slow))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range records(t, layout) {
		old := time.Now().Add(-2 * time.Hour)
		if err := os.Chtimes(filepath.Join(recordsOf(layout), e.Name()), old, old); err != nil {
			t.Fatal(err)
		}
	}
	Sweep(layout)
	if left := records(t, layout); len(left) != 2 || !there(filepath.Join(recordsOf(layout), slow)) {
		t.Errorf("left after an hour: %v", left)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	Sweep(layout)
	if left := records(t, layout); len(left) != 1 {
		t.Errorf("left after an hour, when its maker is gone: %v", left)
	}
}

func mustJSON(r record) string {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func TestMake(t *testing.T) {
	layout := paths.Layout{Run: filepath.Join(t.TempDir(), "run")}
	in := filepath.Join(t.TempDir(), "not", "there", "yet")
	f, err := Make(layout, in, "p-")
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(f.Path)
	if err != nil || info.Mode().Perm() != 0o700 || !strings.HasPrefix(filepath.Base(f.Path), "p-") {
		t.Errorf("%s: %v %v", f.Path, info, err)
	}
	if err := f.Remove(); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(layout.Run, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Make(paths.Layout{Run: filepath.Join(layout.Run, "file")}, in, ""); err == nil {
		t.Error("a folder without a record")
	}
	if left, err := os.ReadDir(in); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
