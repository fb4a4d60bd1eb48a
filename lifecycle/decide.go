package lifecycle

import (
	"fmt"
	"slices"
	"strings"
)

// Match says which running engine would do. Zero fields match anything.
type Match struct {
	Engine  string
	Models  []string // the names that the wanted model goes by
	Context int      // at least
	KVType  string
	Slots   int // at least
}

// Accepts reports whether a running spec would do.
func (m Match) Accepts(s Spec) bool {
	return (m.Engine == "" || m.Engine == s.Engine) &&
		(len(m.Models) == 0 || slices.Contains(m.Models, s.Model) || s.Path != "" && slices.Contains(m.Models, s.Path)) &&
		s.Context >= m.Context && s.Slots >= m.Slots && (m.KVType == "" || m.KVType == s.KVType)
}

// Serves reports whether what is loaded as s can do all that asked wants.
func (s Spec) Serves(asked Spec) bool {
	return s.SameModel(asked) && s.Context >= asked.Context && s.Slots >= asked.Slots &&
		(asked.KVType == "" || asked.KVType == s.KVType)
}

// SameModel reports whether both name the same model on the same engine.
func (s Spec) SameModel(t Spec) bool {
	if s.Engine != t.Engine {
		return false
	}
	if s.Digest != "" && t.Digest != "" {
		return s.Digest == t.Digest
	}
	return s.Model == t.Model && s.Path == t.Path
}

// Situation is what a client finds under the run folder's lock.
type Situation struct {
	Keeper bool // a keeper holds its lock
	Wanted Wanted
	Status Status
	Leases []Observed
}

// Running is what is loaded or on its way, nil where nothing is.
func (s Situation) Running() *Spec {
	if !s.Keeper {
		return nil
	}
	if s.Wanted.Generation > s.Status.Generation && !s.Wanted.Stop && len(s.Wanted.Choices) > 0 {
		return &s.Wanted.Choices[0]
	}
	if s.Wanted.Stop || !s.Status.State.Active() {
		return nil
	}
	if s.Status.Spec != nil {
		return s.Status.Spec
	}
	if len(s.Wanted.Choices) > 0 {
		return &s.Wanted.Choices[0]
	}
	return nil
}

// Others are the live leases of other sessions.
func (s Situation) Others(client Process, session string) []Lease {
	var others []Lease
	for _, o := range s.Leases {
		if o.Counts() && !o.Belongs(client, session) {
			others = append(others, o.Lease)
		}
	}
	return others
}

// Counts is Live for those who don't keep time: an orphan counts until the keeper removes it.
func (o Observed) Counts() bool {
	if o.Ended {
		return false
	}
	if o.Kind == Bound {
		return o.ClientAlive
	}
	return o.Locked || o.Orphan()
}

// Ask is what a client wants. Choices is empty where it only wants to join.
type Ask struct {
	Choices []Spec
	Match   *Match // what else it would join
	Client  Process
	Session string
	Broken  bool // the running engine was found not to answer
}

// Move is what a client does next.
type Move string

// The moves.
const (
	Join    Move = "join"    // take a lease, nothing else
	Start   Move = "start"   // nothing runs: write what is wanted
	Replace Move = "replace" // another model runs, and nobody else minds
	Refuse  Move = "busy"    // another session holds another model
	Nothing Move = "nothing" // only joining was asked, and nothing that would do runs
)

// Verdict is a move with its reasons.
type Verdict struct {
	Move    Move
	Running *Spec
	Holders []Lease // of other sessions
	Why     []string
}

// Decide is the client's side of sharing.
func Decide(s Situation, ask Ask) Verdict {
	v := Verdict{Running: s.Running(), Holders: s.Others(ask.Client, ask.Session)}
	if v.Running == nil {
		v.Move = Start
		v.Why = append(v.Why, "no engine is running")
		if len(ask.Choices) == 0 {
			v.Move = Nothing
		}
		return v
	}
	suits := ask.suits(*v.Running, s.Wanted, len(v.Holders) > 0)
	switch {
	case suits && ask.Broken && len(ask.Choices) > 0:
		v.Move = Replace
		v.Why = append(v.Why, fmt.Sprintf("%s runs and does not answer: it is started again", v.Running.Model))
	case suits && !ask.Broken:
		v.Move = Join
		v.Why = append(v.Why, fmt.Sprintf("%s runs already with a context of %d", v.Running.Model, v.Running.Context))
	case len(ask.Choices) == 0:
		v.Move = Nothing
		v.Why = append(v.Why, fmt.Sprintf("%s runs and is not what is wanted", v.Running.Model))
	case len(v.Holders) > 0:
		v.Move = Refuse
		v.Why = append(v.Why, fmt.Sprintf("%s is held by %s", v.Running.describe(), Labels(v.Holders)))
	default:
		v.Move = Replace
		v.Why = append(v.Why, fmt.Sprintf("%s is held by no other session", v.Running.describe()))
	}
	return v
}

// suits reports whether what runs does. What is only a step down from the first choice does where somebody else holds
// it, and where that first choice was tried already: else a wish for a larger context would never be granted.
func (a Ask) suits(running Spec, wanted Wanted, others bool) bool {
	if a.Match != nil && a.Match.Accepts(running) {
		return true
	}
	which := slices.IndexFunc(a.Choices, running.Serves)
	tried := which > 0 && len(wanted.Choices) > 0 && wanted.Choices[0].Serves(a.Choices[0])
	return which == 0 || which > 0 && (others || tried)
}

func (s Spec) describe() string {
	parts := []string{s.Model}
	if s.Context > 0 {
		parts = append(parts, fmt.Sprintf("context %d", s.Context))
	}
	if s.Slots > 1 {
		parts = append(parts, fmt.Sprintf("%d slots", s.Slots))
	}
	return strings.Join(parts, ", ")
}

// StepDown says which choice comes after one that did not fit, and how that is told. It passes over choices that
// need no less than the one that failed.
func StepDown(choices []Spec, failed int, cause Cause) (next int, warning string, ok bool) {
	if cause != OutOfMemory || failed < 0 || failed >= len(choices) {
		return 0, "", false
	}
	was := choices[failed]
	for i := failed + 1; i < len(choices); i++ {
		c := choices[i]
		if c.SameModel(was) && c.Context >= was.Context && c.Slots >= was.Slots && c.KVType == was.KVType && c.Need >= was.Need {
			continue
		}
		return i, fmt.Sprintf("%s did not fit into memory: stepped down to %s", was.full(), c.full()), true
	}
	return 0, "", false
}

func (s Spec) full() string {
	text := s.describe()
	if s.KVType != "" {
		text += ", KV " + s.KVType
	}
	return text
}
