package lifecycle

import (
	"fmt"
	"time"
)

// FormatVersion is written into every file of the run folder. A file with a higher one is not touched.
const FormatVersion = 1

// Process names one process for good: its pid is used again some day, its start time is not.
type Process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start,omitempty"`
	Boot  string `json:"boot,omitempty"`
	Exe   string `json:"exe,omitempty"`
}

// Is reports whether p and q are the same process.
func (p Process) Is(q Process) bool {
	return p.PID > 0 && p.PID == q.PID && p.Start == q.Start && p.Boot == q.Boot
}

// LeaseKind is what keeps a lease alive.
type LeaseKind string

// The kinds of lease.
const (
	Held  LeaseKind = "held"  // its holder, an MCP server, locks the file for as long as it lives
	Bound LeaseKind = "bound" // nobody holds it: it lives as long as its client process
	Task  LeaseKind = "task"  // a background task's runner locks the file, until a deadline at the latest
)

// Lease is one session's claim on the engine.
type Lease struct {
	Version int       `json:"version"`
	ID      string    `json:"id"`
	Kind    LeaseKind `json:"kind"`
	Session string    `json:"session,omitempty"` // the client's own session id, where it has one
	Who     string    `json:"who"`               // for people: "Claude Code (pid 4711)"
	Holder  Process   `json:"holder,omitzero"`   // the process that locks the file
	Client  Process   `json:"client"`            // the process whose life counts
	Project string    `json:"project,omitempty"`
	Created time.Time `json:"created"`
	Until   time.Time `json:"until,omitzero"` // a task's deadline
}

// Observed is a lease as one look at its file and its processes found it.
type Observed struct {
	Lease
	Ended       bool // its holder wrote an orderly end
	Locked      bool
	ClientAlive bool

	// Released is when the lock was first seen free, for a held lease. Only a keeper knows it.
	Released time.Time
}

// Forgiveness is how long a held lease outlives a holder that died without a word while its client lives on:
// clients start a crashed server again at their next call.
const Forgiveness = 30 * time.Second

// Live reports whether the lease counts at now, and until when that answer holds if nothing else happens (zero:
// until an event).
func (o Observed) Live(now time.Time) (live bool, until time.Time) {
	if o.Ended || !o.Until.IsZero() && !now.Before(o.Until) {
		return false, time.Time{}
	}
	switch o.Kind {
	case Bound:
		return o.ClientAlive, o.Until
	case Task:
		return o.Locked, o.Until
	}
	if o.Locked {
		return true, o.Until
	}
	if !o.ClientAlive {
		return false, time.Time{}
	}
	if o.Released.IsZero() {
		return true, time.Time{}
	}
	end := o.Released.Add(Forgiveness)
	return now.Before(end), end
}

// Orphan reports whether the holder is gone while its client lives: the client's next server takes the lease over.
func (o Observed) Orphan() bool {
	return o.Kind == Held && !o.Ended && !o.Locked && o.ClientAlive
}

// Belongs reports whether the lease is of the session that the client process and the session id name. A background
// task belongs to nobody: replacing the model under it would break it.
func (l Lease) Belongs(client Process, session string) bool {
	if l.Kind == Task {
		return false
	}
	return l.Client.Is(client) || session != "" && l.Session == session
}

// Label is how a message names the lease.
func (l Lease) Label() string {
	who := l.Who
	if who == "" {
		who = fmt.Sprintf("process %d", l.Client.PID)
	}
	if l.Project != "" {
		who += " in " + l.Project
	}
	return who
}
