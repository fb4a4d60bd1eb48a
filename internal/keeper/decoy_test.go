//go:build linux

package keeper_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"localllm/internal/keeper"
	"localllm/internal/proc"
	"localllm/lifecycle"
	"localllm/test/chaos/lab"
)

// decoy is a stranger's process that reports signals. It leads its own group, as an engine would.
type decoy struct {
	identity proc.Identity
	address  string
	out      *bufio.Reader
}

func newDecoy(t *testing.T, env ...string) *decoy {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "lab-decoy")
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	d := &decoy{out: bufio.NewReader(out)}
	line, err := d.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	d.address = line[:len(line)-1]
	if d.identity, err = proc.Identify(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	return d
}

// untouched fails the test if the decoy got any signal. It is sent one of the test's own, so that «nothing came»
// is an answer and not a wait.
func (d *decoy) untouched(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(d.identity.PID, syscall.SIGUSR1); err != nil {
		t.Fatalf("the decoy is gone: %v", err)
	}
	line, err := d.out.ReadString('\n')
	if err != nil || line != "signalled: "+syscall.SIGUSR1.String()+"\n" {
		t.Errorf("the decoy was signalled: %q, %v", line, err)
	}
}

func TestRepairSparesStrangers(t *testing.T) {
	for _, c := range []struct {
		name string
		bend func(id *proc.Identity, boot *string)
	}{
		{"pid used again", func(id *proc.Identity, _ *string) { id.Start -= 100 }},
		{"start time unknown", func(id *proc.Identity, _ *string) { id.Start = 0 }},
		{"right pid and start, not our nonce", func(*proc.Identity, *string) {}},
		{"of another boot", func(id *proc.Identity, boot *string) { id.Boot, *boot = "before", "before" }},
		{"pid 1", func(id *proc.Identity, _ *string) { id.PID = 1 }},
		{"pid 0", func(id *proc.Identity, _ *string) { id.PID = 0 }},
		{"a negative pid", func(id *proc.Identity, _ *string) { id.PID = -id.PID }},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := lab.New(t, false)
			d := newDecoy(t)
			id, boot := d.identity, proc.BootID()
			id.Nonce = "0123456789abcdef01234567"
			c.bend(&id, &boot)
			leaveRecord(t, l, id, boot)
			if err := keeper.Repair(l.Layout); err != nil {
				t.Fatal(err)
			}
			d.untouched(t)
			l.NothingLeft(soon)
		})
	}
}

// TestRepairEndsOurs is the other half: the same record does end a process that carries the nonce.
func TestRepairEndsOurs(t *testing.T) {
	l := lab.New(t, false)
	nonce := proc.NewNonce()
	d := newDecoy(t, proc.NonceVariable+"="+nonce)
	id := d.identity
	id.Nonce = nonce
	leaveRecord(t, l, id, proc.BootID())
	if err := keeper.Repair(l.Layout); err != nil {
		t.Fatal(err)
	}
	if id.Alive() {
		t.Error("what is provably ours still lives")
	}
}

func leaveRecord(t *testing.T, l *lab.Lab, id proc.Identity, boot string) {
	t.Helper()
	dirs := []string{filepath.Join(l.Layout.Run, "leases"), filepath.Join(l.Layout.State, "logs")}
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(l.Layout.Run, "engine.json"), map[string]any{
		"version": 1, "boot": boot, "nonce": id.Nonce, "engine": id, "keeper": proc.Identity{PID: 4_000_000}, "at": time.Now(),
	})
	write(t, filepath.Join(l.Layout.Run, "status.json"), lifecycle.Status{
		Version: 1, Boot: boot, Generation: 3, State: lifecycle.Ready, Keeper: lifecycle.Process{PID: 4_000_000, Start: 1, Boot: boot},
	})
}

func write(t *testing.T, path string, v any) {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestForeignServerAtOurAddress has a stranger's process at the endpoint of the status, after ours died with its
// keeper: nothing may be done to it.
func TestForeignServerAtOurAddress(t *testing.T) {
	l := lab.New(t, false)
	a := l.Session()
	a.Enable("m")
	d := newDecoy(t)
	s := l.Status()
	kill(t, s.Keeper.PID, syscall.SIGKILL)
	l.NothingLeft(soon)
	s.Endpoint.URL = "http://" + d.address
	s.Server = lifecycle.Process{PID: d.identity.PID, Start: d.identity.Start, Boot: d.identity.Boot}
	write(t, filepath.Join(l.Layout.Run, "status.json"), s)
	if r, err := l.Client().Status(context.Background()); err != nil || r.State != lifecycle.Off {
		t.Fatalf("%+v, %v", r, err)
	}
	a.Enable("m")
	a.Must(lab.Order{Do: "disable"})
	d.untouched(t)
}

func TestForeignEnvironments(t *testing.T) {
	// The run folder follows the user and not the environment: in the lab LOCALLLM_HOME stands for the user. A
	// session with nothing in its environment and one with other folders meet the same keeper.
	l := lab.New(t, false)
	home := "LOCALLLM_HOME=" + l.Home
	a := l.SessionWith([]string{home})
	b := l.SessionWith([]string{home, "HOME=/nonexistent", "XDG_STATE_HOME=/nowhere", "XDG_RUNTIME_DIR=/no", "XDG_CONFIG_HOME=/no", "OLLAMA_HOST=1.2.3.4:5", "TMPDIR=/no"})
	one := a.Enable("m")
	two := b.Enable("m")
	if two.Started != "joined" || one.Status.Keeper.PID != two.Status.Keeper.PID {
		t.Errorf("two keepers: %+v, %+v", one.Status.Keeper, two.Status.Keeper)
	}
	b.KillAll()
	a.KillAll()
	l.NothingLeft(soon)
	// The other way round: the one with the odd environment starts it.
	c := l.SessionWith([]string{home, "HOME=/nonexistent", "TMPDIR=/no", "PATH=/none"})
	c.Enable("m")
}

func TestNewerFormat(t *testing.T) {
	l := lab.New(t, false)
	a := l.Session()
	a.Enable("m")
	a.Must(lab.Order{Do: "disable"})
	l.NothingLeft(soon)
	write(t, filepath.Join(l.Layout.Run, "wanted.json"), map[string]any{"version": 99})
	got := a.Do(lab.Order{Do: "enable", Spec: lab.Spec("m")})
	if got.OK || !contains(got.Error, "newer localllm", "format 99") {
		t.Errorf("%+v", got)
	}
}
