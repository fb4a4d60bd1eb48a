//go:build linux

package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"localllm/internal/filelock"
	"localllm/internal/practice"
	"localllm/lifecycle"
	"localllm/test/chaos/lab"
	"localllm/test/harness"
)

// actor is one of the sessions of a chaos run, with at most one order under way.
type actor struct {
	s       *lab.Session
	waiting string // what was ordered
	dead    bool   // its server was killed
}

// chaos is one run.
type chaos struct {
	t      *testing.T
	l      *lab.Lab
	rnd    *rand.Rand
	theirs *harness.Server
	actors []*actor
	orders []lab.Order
	told   map[string]int // outcomes, for the log
}

// TestChaos does at random what four sessions and an angry system can do. Its seed is in the log; LOCALLLM_CHAOS_SEED
// repeats a run's choices, though not its timing.
func TestChaos(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("LOCALLLM_CHAOS_SEED"); text != "" {
		if _, err := fmt.Sscan(text, &seed); err != nil {
			t.Fatal(err)
		}
	}
	theirs, l := found(t)
	c := &chaos{t: t, l: l, rnd: rand.New(rand.NewPCG(seed, 0)), theirs: theirs, told: map[string]int{}}
	second := filepath.Join(t.TempDir(), "second.gguf")
	if err := practice.Write(second, practice.Script{{Say: "second"}}, practice.Options{}); err != nil {
		t.Fatal(err)
	}
	first := lab.Spec(gguf(t))
	c.orders = []lab.Order{
		{Do: "enable", Spec: first}, {Do: "enable", Spec: first}, {Do: "enable", Spec: first, Persist: true},
		{Do: "enable", Spec: lab.Spec(second)}, {Do: "enable", Spec: ollamaSpec("practice"), Force: true},
		{Do: "enable", Spec: first, Hurry: 40}, {Do: "join"}, {Do: "ask"}, {Do: "ask"}, {Do: "ask"}, {Do: "status"},
		{Do: "disable"}, {Do: "disable"}, {Do: "disable", Keep: true},
	}
	t.Logf("seed %d", seed)
	for range 4 {
		c.actors = append(c.actors, &actor{s: l.Session()})
	}
	rounds := lab.Rounds(40, 1)
	for round := range rounds {
		c.step(c.actors[c.rnd.IntN(len(c.actors))])
		if t.Failed() {
			t.Fatalf("in round %d of %d, seed %d", round, rounds, seed)
		}
	}
	t.Logf("%d rounds: %v", rounds, c.told)
	c.end()
}

// step orders something, or kills something.
func (c *chaos) step(a *actor) {
	c.collect()
	switch n := c.rnd.IntN(100); {
	case n < 70:
		c.order(a)
	case n < 78:
		c.tell("server killed")
		a.s.Signal(syscall.SIGKILL)
		a.dead = true
	case n < 83:
		c.tell("session killed")
		a.s.KillAll()
		c.renew(a)
	case n < 87:
		c.tell("input closed")
		if a.dead { // nobody reads it any more, and a client that lives on keeps its lease
			a.s.KillAll()
		} else {
			a.s.CloseInput()
		}
		c.renew(a)
	case n < 90:
		c.hit("keeper", syscall.SIGKILL)
	case n < 92:
		c.hit("warden", syscall.SIGKILL)
	case n < 94:
		c.hit("keeper", syscall.SIGTERM)
	case n < 98:
		c.hit("engine", syscall.SIGKILL)
	default:
		c.hit("engine", syscall.SIGSTOP)
	}
	<-time.After(time.Duration(c.rnd.IntN(150)) * time.Millisecond)
	if engines := c.l.Processes("keeper"); len(engines) > 2 {
		c.t.Errorf("%d keepers: %v", len(engines), engines) // two for a moment: the one that loses goes
	}
}

func (c *chaos) tell(what string) {
	c.told[what]++
	c.t.Logf("%s %s", time.Now().UTC().Format(time.RFC3339Nano), what)
}

func (c *chaos) hit(role string, sig syscall.Signal) {
	for _, p := range c.l.Processes(role) {
		c.tell(role + " " + sig.String())
		c.t.Logf("  process %d", p.PID)
		_ = syscall.Kill(p.PID, sig)
	}
}

func (c *chaos) order(a *actor) {
	if a.waiting != "" {
		c.answer(a, a.s.Answer())
	}
	if a.dead {
		a.s.Restart()
		a.dead = false
	}
	o := c.orders[c.rnd.IntN(len(c.orders))]
	a.waiting = o.Do
	c.t.Logf("%s %s ordered of %d", time.Now().UTC().Format(time.RFC3339Nano), o.Do, a.s.Server)
	a.s.Send(o)
}

// renew gives the actor another client. What the old one still had to say is lost, as it would be.
func (c *chaos) renew(a *actor) {
	a.s, a.waiting, a.dead = c.l.Session(), "", false
}

func (c *chaos) collect() {
	for _, a := range c.actors {
		if a.waiting == "" {
			continue
		}
		if a.dead {
			a.waiting = "" // it will not answer any more; what it said before comes with the next
			continue
		}
		if got, ok := a.s.Poll(); ok {
			c.answer(a, got)
		}
	}
}

// What may go wrong with an order in the middle of all this. Anything else is a fault.
var expected = []string{
	"busy with", "stopped meanwhile", "replaced by", "deadline exceeded", "ended again and again", "no engine is enabled", "the session is gone",
	"asking", "ended by itself", "died", "exit status", "killed", "told to end", "no other program answers", "reach", "EOF", "connection", "did not come up", "was suspended",
}

func (c *chaos) answer(a *actor, got lab.Answer) {
	what := a.waiting
	a.waiting = ""
	if got.OK {
		c.tell(what + " ok")
		return
	}
	if !slices.ContainsFunc(expected, func(part string) bool { return strings.Contains(got.Error, part) }) {
		c.t.Errorf("%s: unexpected: %s (%s %s)", what, got.Error, got.Kind, got.Cause)
	}
	c.tell(what + " " + got.Kind)
}

// end lets go of everything and looks what is left.
func (c *chaos) end() {
	for _, a := range c.actors {
		a.s.KillAll()
	}
	// What was persisted is left to be let go of by hand.
	s := c.l.Session()
	s.Must(lab.Order{Do: "disable"})
	s.KillAll()
	c.l.NothingLeft(2 * soon)
	leases, err := filepath.Glob(filepath.Join(c.l.Layout.Run, "leases", "*"))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, path := range leases {
		if held, err := filelock.Held(path); held || err != nil {
			c.t.Errorf("the lease %s is still held: %v", path, err)
		}
	}
	if st := c.l.Status(); st.State != lifecycle.Off {
		c.t.Errorf("the status: %+v", st)
	}
	// A model of ours on the found server goes with its keep-alive, where all that was ours was killed.
	lab.Eventually(c.t, 3*time.Minute, "the found Ollama has the models that it had", func() (bool, any) {
		<-time.After(50 * time.Millisecond)
		names := loaded(c.t, c.theirs.URL)
		return slices.Equal(names, []string{"somebodys"}), names
	})
}
