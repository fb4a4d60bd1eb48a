package lifecycle

import (
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestLeaseLives(t *testing.T) {
	for _, c := range []struct {
		name  string
		o     Observed
		live  bool
		until time.Duration // after noon; 0: none
	}{
		{"held", Observed{Lease: Lease{Kind: Held}, Locked: true}, true, 0},
		{"held, its client gone, the holder still there", Observed{Lease: Lease{Kind: Held}, Locked: true, ClientAlive: false}, true, 0},
		{"ended in an orderly way", Observed{Lease: Lease{Kind: Held}, Ended: true, ClientAlive: true}, false, 0},
		{"ended, the lock not let go of yet", Observed{Lease: Lease{Kind: Held}, Ended: true, Locked: true}, false, 0},
		{"holder dead, client lives, nobody knows since when", Observed{Lease: Lease{Kind: Held}, ClientAlive: true}, true, 0},
		{"holder just died, client lives", Observed{Lease: Lease{Kind: Held}, ClientAlive: true, Released: noon}, true, Forgiveness},
		{"forgiven for long enough", Observed{Lease: Lease{Kind: Held}, ClientAlive: true, Released: noon.Add(-Forgiveness)}, false, 0},
		{"holder and client dead", Observed{Lease: Lease{Kind: Held}, Released: noon}, false, 0},
		{"bound", Observed{Lease: Lease{Kind: Bound}, ClientAlive: true}, true, 0},
		{"bound, client dead", Observed{Lease: Lease{Kind: Bound}}, false, 0},
		{"task", Observed{Lease: Lease{Kind: Task, Until: noon.Add(time.Minute)}, Locked: true}, true, time.Minute},
		{"task over its time", Observed{Lease: Lease{Kind: Task, Until: noon}, Locked: true}, false, 0},
		{"task whose runner died: nobody starts it again", Observed{Lease: Lease{Kind: Task}, ClientAlive: true}, false, 0},
	} {
		live, until := c.o.Live(noon)
		want := time.Time{}
		if c.until > 0 {
			want = noon.Add(c.until)
		}
		if live != c.live || c.live && !until.Equal(want) {
			t.Errorf("%s: %v until %v, want %v until %v", c.name, live, until, c.live, want)
		}
		if c.o.Released.IsZero() && c.o.Until.IsZero() && c.o.Counts() != c.live {
			t.Errorf("%s: Counts is %v", c.name, c.o.Counts())
		}
	}
}

func TestLeaseBelongs(t *testing.T) {
	client := Process{PID: 7, Start: 100, Boot: "b"}
	l := Lease{Kind: Held, Client: client, Session: "s1"}
	for _, c := range []struct {
		name    string
		l       Lease
		client  Process
		session string
		want    bool
	}{
		{"same client, new session id after /clear", l, client, "s2", true},
		{"same session id, other process", l, Process{PID: 8, Start: 1, Boot: "b"}, "s1", true},
		{"the pid used again", l, Process{PID: 7, Start: 101, Boot: "b"}, "", false},
		{"another boot", l, Process{PID: 7, Start: 100, Boot: "c"}, "", false},
		{"no session id on both sides", Lease{Kind: Held}, Process{PID: 8}, "", false},
		{"a background task of the same client", Lease{Kind: Task, Client: client, Session: "s1"}, client, "s1", false},
	} {
		if got := c.l.Belongs(c.client, c.session); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestBusyNamesItsHolders(t *testing.T) {
	err := &BusyError{Model: "m", Holders: []Lease{{Who: "Codex (pid 7)", Project: "/p"}, {Client: Process{PID: 9}}}}
	for _, want := range []string{"busy with m", "Codex (pid 7) in /p", "process 9"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
}
