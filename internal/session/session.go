// Package session finds out on whose behalf localllm was called: which client process, and which of its sessions. It
// only looks at processes and the environment, and never signals or writes anything.
package session

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"localllm/internal/proc"
)

// Binding says whose life a lease follows.
type Binding struct {
	Session string        // the client's own session id, where it has one
	Who     string        // for people: "Claude Code (pid 4711)"
	Client  proc.Identity // the process whose life counts
	Known   bool          // Client is a known coding client, and not a shell or whatever stood above us
	Held    bool          // the caller is a server of the client: it locks the lease for as long as it lives
	Project string
}

// SessionVariables name the session ids that clients pass to what they start.
var sessionVariables = []string{"CLAUDE_CODE_SESSION_ID", "CODEX_SESSION_ID", "OPENCODE_SESSION_ID"}

// process is what the walk needs to know about one process.
type process struct {
	identity proc.Identity
	name     string   // as the kernel has it: 15 bytes on Linux
	args     []string // may be empty
	parent   int
	leader   bool // of its session
}

// table is where processes are looked up; tests have their own.
type table func(pid int) (process, error)

// ForServer is the binding of an MCP server: its client is the nearest known client above it, or else its parent.
func ForServer(getenv func(string) string) (Binding, error) {
	b, err := find(look, os.Getpid(), getenv, true)
	b.Held = true
	return b, err
}

// ForCommand is the binding of a command line: the nearest known client above it, or else the login shell. An agent's
// own shell dies with each command, so a shell below a known client is never the one.
func ForCommand(getenv func(string) string) (Binding, error) {
	return find(look, os.Getpid(), getenv, false)
}

// WhilePID binds to one process that the user names.
func WhilePID(pid int) (Binding, error) {
	p, err := look(pid)
	if err != nil {
		return Binding{}, fmt.Errorf("binding to process %d: %w", pid, err)
	}
	return Binding{Who: label(p), Client: p.identity, Known: clientName(p) != ""}, nil
}

const deepest = 64 // no real tree is deeper; a table that changes while we walk might look like a ring

func find(at table, self int, getenv func(string) string, server bool) (Binding, error) {
	b := Binding{Project: getenv("CLAUDE_PROJECT_DIR")}
	for _, name := range sessionVariables {
		if id := getenv(name); id != "" {
			b.Session = id
			break
		}
	}
	above := ancestors(at, self)
	if len(above) == 0 {
		return b, fmt.Errorf("finding the calling client: process %d has no parent that can be seen", self)
	}
	chosen, known := choose(above, named(above, getenv("CLAUDE_PID")), server)
	b.Client, b.Who, b.Known = chosen.identity, label(chosen), known
	return b, nil
}

// named is the ancestor that CLAUDE_PID names. A pid that is no ancestor proves nothing: it may be inherited from a
// client long gone, and used again.
func named(above []process, pid string) *process {
	n, err := strconv.Atoi(pid)
	if err != nil {
		return nil
	}
	for i := range above {
		if above[i].identity.PID == n {
			return &above[i]
		}
	}
	return nil
}

func choose(above []process, told *process, server bool) (p process, known bool) {
	if told != nil {
		return *told, true
	}
	for _, p := range above {
		if clientName(p) != "" {
			return p, true
		}
		// A server belongs to whoever started it, or to a known client behind a shell or an interpreter. An unknown
		// client that runs in the terminal of a known one is still a client of its own.
		if server && !isShell(p) && !slices.Contains(wrappers, p.name) {
			break
		}
	}
	if server {
		return above[0], false
	}
	// The outermost shell that leads its session is the terminal's own; scripts and subshells below it come and go.
	for _, p := range above {
		if isShell(p) && (p.leader || strings.HasPrefix(first(p.args), "-")) {
			return p, false
		}
	}
	for _, p := range above {
		if isShell(p) {
			return p, false
		}
	}
	return above[0], false
}

func ancestors(at table, self int) []process {
	var above []process
	p, err := at(self)
	for range deepest {
		if err != nil || p.parent <= 0 {
			break
		}
		if p, err = at(p.parent); err == nil {
			above = append(above, p)
		}
	}
	return above
}

// Inside reports whether pid is a descendant of any of the processes given.
func Inside(pid int, of ...proc.Identity) bool {
	for _, p := range ancestors(look, pid) {
		for _, id := range of {
			if id.PID > 0 && p.identity.PID == id.PID {
				return true
			}
		}
	}
	return false
}

func first(s []string) string {
	if len(s) == 0 {
		return ""
	}
	return s[0]
}

func look(pid int) (process, error) {
	id, err := proc.Identify(pid)
	if err != nil {
		return process{}, err
	}
	name, err := proc.Name(pid)
	if err != nil {
		return process{}, err
	}
	parent, err := proc.Parent(pid)
	if err != nil {
		return process{}, err
	}
	return process{identity: id, name: name, parent: parent, args: arguments(pid), leader: leadsSession(pid)}, nil
}
