// Package containment runs a command so that it can write in one folder only and, unless allowed, reach no network:
// by bubblewrap or by Landlock with a system call filter, whichever the machine has. It never claims more than holds.
package containment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"localllm/internal/proc"
)

// verb is the hidden command of our own program that restricts itself and becomes the command.
const verb = "contain"

// Policy is what a contained command may do. Paths are absolute. It may read all that its user can, but for Hide.
type Policy struct {
	Write   []string `json:"write"`          // folders it may write in
	Hide    []string `json:"hide,omitempty"` // files and folders that it can't read, unless they are within Write
	Network bool     `json:"network,omitempty"`
}

// dispatches: this program carries out verb.
var dispatches bool

// Dispatch carries out the hidden command, if args ask for it. A program that begins with this call can be the one
// that restricts itself; another would do who knows what with these arguments, and is never started with them.
func Dispatch(args []string) (exit int, did bool) {
	dispatches = true
	if len(args) == 0 || args[0] != verb {
		return 0, false
	}
	fmt.Fprintln(os.Stderr, "localllm: error:", become(args[1:]))
	return cannot, true
}

// cannot is the exit code of a command that did not run, as others of this kind have it.
const cannot = 125

// Box is one way of containing.
type Box struct {
	Name string // bubblewrap, landlock or none

	program string // bwrap, or ourselves
	abi     int
}

// None contains nothing.
var None = Box{Name: "none"}

const probeLimit = 5 * time.Second

// Find looks for what this machine has, the stronger first, and tries it. self is our own executable.
func Find(ctx context.Context, self string) Box {
	for _, find := range []func(context.Context, string) (Box, bool){bubblewrap, landlocked} {
		if b, ok := find(ctx, self); ok {
			return b
		}
	}
	return None
}

// works tries a box on a command that does nothing.
func (b Box) works(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	nothing, err := exec.LookPath("true")
	if err != nil {
		return false
	}
	path, args, err := b.Command(Policy{Write: []string{os.TempDir()}}, []string{nothing})
	if err != nil {
		return false
	}
	exit, err := proc.Run(ctx, proc.Command{Path: path, Args: args, Dir: os.TempDir(), Nonce: proc.NewNonce()})
	return err == nil && exit == 0
}

// Command is what to start instead of argv.
func (b Box) Command(p Policy, argv []string) (path string, args []string, err error) {
	if len(argv) == 0 {
		return "", nil, errors.New("containing a command: there is none")
	}
	p = p.real()
	switch b.Name {
	case "bubblewrap":
		return b.program, append(bwrapArgs(p), argv...), nil
	case "landlock":
		raw, err := json.Marshal(p)
		if err != nil {
			return "", nil, fmt.Errorf("containing a command: %w", err)
		}
		return b.program, append([]string{verb, string(raw), "--"}, argv...), nil
	}
	return argv[0], argv[1:], nil
}

// real resolves links, where there are any: rules are about files, not about their names.
func (p Policy) real() Policy {
	resolve := func(paths []string) []string {
		var out []string
		for _, path := range paths {
			if real, err := filepath.EvalSymlinks(path); err == nil {
				out = append(out, real)
			}
		}
		return out
	}
	return Policy{resolve(p.Write), resolve(p.Hide), p.Network}
}

// Says tells in a clause what holds for commands under this box.
func (b Box) Says(network bool) string {
	switch {
	case b.Name == "bubblewrap" && network:
		return "bubblewrap: writes only to a copy of the project and a temporary folder; network allowed"
	case b.Name == "bubblewrap":
		return "bubblewrap: writes only to a copy of the project and a temporary folder; no network"
	case b.Name == "landlock" && network:
		return fmt.Sprintf("landlock (ABI %d): writes only to a copy of the project and a temporary folder; network allowed", b.abi)
	case b.Name == "landlock":
		return fmt.Sprintf("landlock (ABI %d) and seccomp: writes only to a copy of the project and a temporary folder; no sockets", b.abi)
	}
	return "none: commands work on a copy of the project, but nothing keeps them from the network or from writing elsewhere"
}

// Hidden lists, below a home folder, what holds keys and sessions, and the sockets by which a command could have others
// work for it. Only what exists is listed.
func Hidden(home string) []string {
	var out []string
	add := func(path string) {
		if _, err := os.Lstat(path); err == nil {
			out = append(out, path)
		}
	}
	for _, name := range strings.Fields(`.ssh .gnupg .aws .azure .kube .docker .password-store .netrc .git-credentials .npmrc .pypirc .pgpass .my.cnf
		.vault-token .config/gcloud .config/gh .config/op .config/localllm .claude .claude.json .codex .gemini .local/share/opencode .local/share/keyrings
		.mozilla .thunderbird .config/google-chrome .config/chromium Library/Keychains .bash_history .zsh_history`) {
		if home != "" {
			add(filepath.Join(home, filepath.FromSlash(name)))
		}
	}
	if runtime.GOOS == "linux" {
		for _, path := range strings.Fields("/run/user /run/docker.sock /run/podman /run/containerd /run/dbus /run/snapd.socket") {
			add(path)
		}
	}
	return out
}
