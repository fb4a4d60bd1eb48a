//go:build linux

package containment

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"localllm/internal/proc"
	"localllm/test/harness/engines"
)

// The test binary is its own hidden command.
func TestMain(m *testing.M) {
	if exit, did := Dispatch(os.Args[1:]); did {
		os.Exit(exit)
	}
	os.Exit(m.Run())
}

// boxes are all that this machine has, and never none of them.
func boxes(t *testing.T) []Box {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path, err := engines.Path(t.Context(), "bwrap")
	if err != nil {
		t.Log(err) // where there are no packages, there may be Landlock
	} else {
		t.Setenv("PATH", path)
	}
	var out []Box
	if b, ok := bubblewrap(t.Context(), self); ok {
		out = append(out, b)
	}
	if b, ok := landlocked(t.Context(), self); ok {
		out = append(out, b)
	}
	if first := Find(t.Context(), self); len(out) > 0 && first.Name != out[0].Name || len(out) == 0 && first != None {
		t.Errorf("found %s, of %v", first.Name, out)
	}
	if len(out) == 0 {
		t.Log("this kernel allows neither bubblewrap nor Landlock: nothing contained to look at")
	}
	return out
}

func shell(t *testing.T, b Box, p Policy, line string) (string, int) {
	t.Helper()
	path, args, err := b.Command(p, []string{"sh", "-c", line})
	if err != nil {
		t.Fatal(err)
	}
	if !filepath.IsAbs(path) {
		if path, err = exec.LookPath(path); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	exit, err := proc.Run(t.Context(), proc.Command{Path: path, Args: args, Dir: p.Write[0], Stdout: &out, Stderr: &out, Nonce: proc.NewNonce()})
	if err != nil && exit == -1 {
		t.Fatal(err)
	}
	return out.String(), exit
}

func TestContained(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Addr().String())
	for _, b := range boxes(t) {
		t.Run(b.Name, func(t *testing.T) {
			outside, inside := t.TempDir(), t.TempDir()
			secret := filepath.Join(outside, "keys", "id")
			for name, text := range map[string]string{"plain": "readable\n", "keys/id": "hidden-key\n", "single": "hidden-file\n"} {
				p := filepath.Join(outside, name)
				if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			link := filepath.Join(inside, "link")
			if err := os.Symlink(outside, link); err != nil {
				t.Fatal(err)
			}
			p := Policy{Write: []string{inside}, Hide: []string{filepath.Join(outside, "keys"), filepath.Join(outside, "single")}}
			rows := []struct {
				name, line string
				works      bool
			}{
				{"write inside", "echo x > a && mkdir d && mv a d/b && cat d/b && rm -r d", true},
				{"read outside", "cat " + outside + "/plain", true},
				{"the null device", "echo x > /dev/null", true},
				{"write outside", "echo x > " + outside + "/new", false},
				{"append outside", "echo x >> " + outside + "/plain", false},
				{"truncate outside", ": > " + outside + "/plain", false},
				{"remove outside", "rm -f " + outside + "/plain", false},
				{"through a link", "echo x > link/new", false},
				{"a new link", "ln -s " + outside + " other; echo x > other/new", false},
				{"hard link to outside", "ln " + outside + "/plain hard && echo x > hard", false},
				{"into the system", "echo x > /etc/localllm-test", false},
				{"hidden folder", "cat " + secret, false},
				{"hidden file", "grep hidden-file " + outside + "/single", false},
				{"by the process's root", "cat /proc/self/root" + secret, false},
				{"the network", "command -v bash >/dev/null || exit 1; bash -c 'exec 3<>/dev/tcp/127.0.0.1/" + port + "'", false},
				{"datagrams", "command -v bash >/dev/null || exit 1; bash -c 'exec 3<>/dev/udp/192.0.2.1/53 && echo x >&3'", false},
			}
			for _, r := range rows {
				out, exit := shell(t, b, p, r.line)
				if (exit == 0) != r.works || strings.Contains(out, "hidden-") {
					t.Errorf("%s: exit %d, %s", r.name, exit, out)
				}
			}
			if raw, err := os.ReadFile(filepath.Join(outside, "plain")); string(raw) != "readable\n" {
				t.Errorf("outside is now %q, %v", raw, err)
			}
			if _, exit := shell(t, b, p, "exit 37"); exit != 37 {
				t.Errorf("exit %d", exit)
			}
			p.Network = true
			if out, exit := shell(t, b, p, "bash -c 'exec 3<>/dev/tcp/127.0.0.1/"+port+"'"); exit != 0 {
				t.Errorf("with the network allowed: %d %s", exit, out)
			}
			if says := b.Says(false); !strings.HasPrefix(says, b.Name) {
				t.Errorf("says %q", says)
			}
		})
	}
}

// A command may write within what is hidden, where that is what it was given.
func TestWriteWithinHidden(t *testing.T) {
	for _, b := range boxes(t) {
		state := t.TempDir()
		inner := filepath.Join(state, "agent", "tree")
		if err := os.MkdirAll(inner, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(state, "key"), []byte("hidden-key"), 0o644); err != nil {
			t.Fatal(err)
		}
		out, exit := shell(t, b, Policy{Write: []string{inner}, Hide: []string{state}}, "echo x > a && cat a && ! cat "+state+"/key")
		if exit != 0 || strings.Contains(out, "hidden-key") {
			t.Errorf("%s: %d %s", b.Name, exit, out)
		}
	}
}

func TestNothingIsContainedSilently(t *testing.T) {
	path, args, err := None.Command(Policy{}, []string{"/bin/sh", "-c", "x"})
	if err != nil || path != "/bin/sh" || len(args) != 2 || !strings.HasPrefix(None.Says(false), "none: ") {
		t.Error(path, args, err)
	}
	if _, _, err := None.Command(Policy{}, nil); err == nil {
		t.Error("no command at all")
	}
	for _, args := range [][]string{nil, {"{}"}, {"{}", "--"}, {"nonsense", "--", "true"}, {"{}", "--", "no-such-program"}} {
		if err := become(args); err == nil {
			t.Errorf("%q ran", args)
		}
	}
}
