package stats

import (
	"cmp"
	"slices"
	"strings"
)

// tally is the sums over some lines. Everything in it is a whole number, so that merging the tallies of several
// workers gives the same figures in any order.
type tally struct {
	delegations, accomplished, proven int64
	attempted, firstTry               int64
	generated, kept                   int64
	seconds                           *histogram
}

func (y *tally) add(o outcomeOf) {
	y.delegations++
	y.accomplished += o.ok
	y.proven += o.proven
	y.attempted += o.attempted
	y.firstTry += o.firstTry
	y.generated += o.generated
	y.kept += o.kept
	if o.micros > 0 && y.seconds != nil {
		y.seconds.add(o.micros)
	}
}

func (y *tally) merge(o *tally) {
	y.delegations += o.delegations
	y.accomplished += o.accomplished
	y.proven += o.proven
	y.attempted += o.attempted
	y.firstTry += o.firstTry
	y.generated += o.generated
	y.kept += o.kept
	if y.seconds != nil && o.seconds != nil {
		y.seconds.merge(o.seconds)
	}
}

// group turns the sums into the figures of a group.
func (y *tally) group(key string) Group {
	g := Group{
		Key: key, Delegations: int(y.delegations), Accomplished: int(y.accomplished), Proven: int(y.proven),
		SuccessRate: rate(y.accomplished, y.delegations), ProvenRate: rate(y.proven, y.delegations),
		FirstTryRate: rate(y.firstTry, y.attempted), TokensGenerated: int(y.generated), KeptOut: int(y.kept),
	}
	if y.seconds != nil {
		g.Seconds = Seconds{P50: y.seconds.seconds(0.5), P90: y.seconds.seconds(0.9)}
	}
	return g
}

func rate(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// outcomeOf is one delegation, worked out once for all the tallies that it goes into.
type outcomeOf struct {
	ok, proven, attempted, firstTry int64
	generated, kept, micros         int64
}

// rest is the key for what there is no room for.
const rest = "(other)"

// groups is a bounded map of tallies. Over its bound it keeps the keys that sort first (for days: last) and folds
// the others into one; which keys stay depends on the set of keys and not on their order.
type groups struct {
	limit  int
	newest bool // keep the keys that sort last
	timed  bool // with quantiles
	by     map[string]*tally
	other  *tally
}

func (g *groups) of(key []byte) *tally {
	if y := g.by[string(key)]; y != nil {
		return y
	}
	return g.make(string(key))
}

func (g *groups) make(key string) *tally {
	if len(g.by) >= g.limit {
		worst := g.worst()
		if (strings.Compare(key, worst) > 0) != g.newest {
			return g.rest()
		}
		g.rest().merge(g.by[worst])
		delete(g.by, worst)
	}
	y := g.empty()
	g.by[key] = y
	return y
}

func (g *groups) empty() *tally {
	y := &tally{}
	if g.timed {
		y.seconds = &histogram{}
	}
	return y
}

func (g *groups) rest() *tally {
	if g.other == nil {
		g.other = g.empty()
	}
	return g.other
}

func (g *groups) worst() string {
	worst, first := "", true
	for k := range g.by {
		if first || (strings.Compare(k, worst) > 0) != g.newest {
			worst, first = k, false
		}
	}
	return worst
}

func (g *groups) merge(o *groups) {
	for k, y := range o.by {
		g.of([]byte(k)).merge(y)
	}
	if o.other != nil {
		g.rest().merge(o.other)
	}
}

// list is the groups, the largest first, or in the order of their keys.
func (g *groups) list(byKey bool) []Group {
	out := make([]Group, 0, len(g.by)+1)
	for k, y := range g.by {
		out = append(out, y.group(k))
	}
	slices.SortFunc(out, func(a, b Group) int {
		if !byKey && a.Delegations != b.Delegations {
			return b.Delegations - a.Delegations
		}
		return cmp.Compare(a.Key, b.Key)
	})
	if g.other != nil {
		out = append(out, g.other.group(rest))
	}
	return out
}
