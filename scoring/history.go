package scoring

// How many outcomes weigh as much as what was believed before them, at each of the two steps. Similar ones alone
// can turn the advice within 30 outcomes; both together never move a score by 0.06 for one: (36/31 + 1)/37 = 0.058.
const (
	similarStrength = 30
	alikeStrength   = 36
)

// Tally counts outcomes: how many had a verdict, and how many of those were proven.
type Tally struct {
	Tried     int
	Succeeded int
}

// Add counts one outcome.
func (y *Tally) Add(succeeded bool) {
	y.Tried++
	if succeeded {
		y.Succeeded++
	}
}

// Plus is the sum of two tallies.
func (y Tally) Plus(z Tally) Tally {
	return Tally{y.Tried + z.Tried, y.Succeeded + z.Succeeded}
}

// History is the outcomes of similar tasks. Alike is part of Similar.
type History struct {
	Similar Tally // same type and model
	Alike   Tally // and same class of outputs, of size, and of verify
}

// Correct moves a prior by the evidence, in two steps of the same shrinkage:
//
//	p = (30·prior + proven similar) / (30 + similar)
//	score = (36·p + proven alike) / (36 + alike)
//
// It counts, so the order of outcomes is nothing to it; a success never lowers it and a failure never raises it.
func (h History) Correct(prior float64) float64 {
	return round(h.Alike.shrink(alikeStrength, h.Similar.shrink(similarStrength, prior)))
}

func (y Tally) shrink(strength, belief float64) float64 {
	return (strength*belief + float64(y.Succeeded)) / (strength + float64(y.Tried))
}

func (h History) evidence() Evidence {
	belief := similarStrength / float64(similarStrength+h.Similar.Tried) * alikeStrength / float64(alikeStrength+h.Alike.Tried)
	return Evidence{
		Similar: h.Similar.Tried, Successes: h.Similar.Succeeded,
		Alike: h.Alike.Tried, AlikeSuccesses: h.Alike.Succeeded,
		Weight: round(1 - belief),
	}
}

// Kind is what makes tasks similar. An empty string or a zero means that a line of the log did not say.
type Kind struct {
	Type    string `json:"type"`
	Model   string `json:"model,omitempty"`
	Outputs int    `json:"outputs,omitempty"` // 1, 2, or 3 for more; 4 is a text answer without any
	Size    int    `json:"size,omitempty"`    // 1 under 1,000 prompt tokens, 2 under 4,000, 3 under 16,000, 4 above
	Verify  int    `json:"verify,omitempty"`  // 1 verified, 2 not
}

// NoOutputs is the class of outputs of a task that answers in text.
const NoOutputs = 4

// KindOf classes a task that is about to be tried.
func KindOf(t Task) Kind {
	k := Kind{Type: t.Type, Model: t.Model, Size: SizeClass(t.Prompt), Verify: 2}
	if t.Verify {
		k.Verify = 1
	}
	switch t.Type {
	case "ask", "summarize", "review":
		k.Outputs = OutputClass(t.Outputs)
	default: // none named yet is not «none»
		if t.Outputs > 0 {
			k.Outputs = OutputClass(t.Outputs)
		}
	}
	return k
}

// OutputClass classes a number of output files.
func OutputClass(n int) int {
	if n <= 0 {
		return NoOutputs
	}
	return min(n, 3)
}

// SizeClass classes a prompt by its tokens; 0 tokens is «not known».
func SizeClass(tokens int) int {
	switch {
	case tokens <= 0:
		return 0
	case tokens < 1000:
		return 1
	case tokens < 4000:
		return 2
	case tokens < 16000:
		return 3
	}
	return 4
}

// Similar says whether an outcome of kind o speaks for tasks of kind k. A line that names no model speaks for any.
func (k Kind) Similar(o Kind) bool {
	return k.Type == o.Type && k.Type != "" && agree(k.Model, o.Model)
}

// Alike says whether they also agree in outputs, size and verify, as far as both are known.
func (k Kind) Alike(o Kind) bool {
	return k.Similar(o) && agree(k.Outputs, o.Outputs) && agree(k.Size, o.Size) && agree(k.Verify, o.Verify)
}

func agree[T comparable](a, b T) bool {
	var unknown T
	return a == b || a == unknown || b == unknown
}

// Collect sums what the counted kinds say about tasks of kind k.
func Collect(k Kind, counted map[Kind]Tally) History {
	var h History
	for o, y := range counted {
		if k.Similar(o) {
			h.Similar = h.Similar.Plus(y)
		}
		if k.Alike(o) {
			h.Alike = h.Alike.Plus(y)
		}
	}
	return h
}
