package capability

import (
	"fmt"
	"slices"
)

// Request is what the user asked for; a zero field leaves it to Pick.
type Request struct {
	Model   string
	Engine  string
	Context int
	KVType  string
	Slots   int
	Models  string // ModelsCurrent or ModelsDocumented: whose picks come first
}

// Which picks of the table come first.
const (
	ModelsCurrent    = "current"
	ModelsDocumented = "documented"
)

// Decision is what Pick made of a survey, with its reasons.
type Decision struct {
	CanEnable bool
	Choice    *Choice  // nil where nothing can be proposed at all
	Fallbacks []Choice // to step down to when the choice does not load for memory, in order
	Models    []ModelReport
	Rejected  []Rejection
	Class     VRAMClass
	Reasons   []string
	Hints     []string
}

// Contexts that are tried where none is asked for: the largest that is useful for delegated work, down to the
// smallest that coding can do with.
var usefulContexts = []int{65536, 32768, 16384}

const (
	smallestUseful = 16384
	smallestAtAll  = 4096 // tried where the user wants just this model

	// limitUnknown is taken as the context limit of a model that states none.
	limitUnknown = 32768
)

// Pick chooses a model for this machine: installed before not installed, fitting before tight, then the table's
// order, then the largest useful context, then a q8_0 cache before a smaller model. It refuses nothing.
func Pick(s Survey, c Catalog, r Request) Decision {
	d := Decision{}
	class := classify(s.Machine, c)
	d.Class = class.report(c)
	p := picker{survey: s, request: r, places: places(s.Machine)}
	candidates := p.candidates(c, class)
	for i := range candidates {
		p.settle(&candidates[i])
	}
	slices.SortStableFunc(candidates, compare)
	candidates = shorten(candidates)
	for _, k := range candidates {
		d.Models = append(d.Models, k.report())
	}
	d.Reasons = append(d.Reasons, p.machineReasons()...)
	p.decide(&d, candidates)
	return d
}

// mostProposed is how many models that are not installed are worth naming.
const mostProposed = 5

// shorten keeps all that is installed and the best of what could be.
func shorten(list []candidate) []candidate {
	proposed := 0
	return slices.DeleteFunc(list, func(k candidate) bool {
		if k.model.Installed {
			return false
		}
		proposed++
		return proposed > mostProposed
	})
}

func (p picker) decide(d *Decision, candidates []candidate) {
	engine, engineReason, engineHints := p.anyEngine()
	var chosen *candidate
	for i := range candidates {
		k := &candidates[i]
		if why := k.unusable(p.request); why != "" {
			d.Rejected = append(d.Rejected, Rejection{Model: k.model.Ref, Reason: why})
			continue
		}
		if chosen == nil {
			chosen = k
			continue
		}
		d.Rejected = append(d.Rejected, Rejection{Model: k.model.Ref, Reason: k.behind(*chosen)})
	}
	if !engine {
		d.Reasons = append(d.Reasons, engineReason)
		d.Hints = append(d.Hints, engineHints...)
	}
	if chosen == nil {
		why := "no model can be proposed for this machine"
		if p.request.Model != "" && len(d.Rejected) > 0 {
			why = d.Rejected[0].String()
		}
		d.Reasons = append(d.Reasons, why)
		d.Hints = append(d.Hints, p.nothingHints()...)
		return
	}
	choice := p.choice(*chosen)
	d.Choice = &choice
	d.CanEnable = engine && choice.Verdict != No && p.engineUsable(choice.Engine)
	d.Reasons = append(d.Reasons, choice.Why...)
	d.Hints = append(d.Hints, choice.hints()...)
	if choice.Verdict == No {
		d.Hints = append(d.Hints, "free memory, ask for a smaller --context, or try it anyway with force")
	}
	d.Fallbacks = p.stepDown(*chosen, candidates)
}

// candidate is a model with the best way found to run it.
type candidate struct {
	model   Model
	order   int  // in the table, the lower the better
	wished  bool // the documented pick, where the user wants those
	engine  string
	idle    bool // its engine is not installed, and another one is
	context int
	kvType  string
	place   place
	need    Need
	total   int64
	source  Source
	verdict Verdict
}

// compare puts the better candidate first. What runs at full speed comes before what spills, whatever is installed.
func compare(a, b candidate) int {
	for _, d := range []int{
		boolRank(b.canWrite()) - boolRank(a.canWrite()),
		boolRank(b.verdict.Usable()) - boolRank(a.verdict.Usable()),
		boolRank(b.model.Installed) - boolRank(a.model.Installed),
		boolRank(b.wished) - boolRank(a.wished),
		boolRank(b.context >= smallestUseful) - boolRank(a.context >= smallestUseful),
		a.verdict.rank() - b.verdict.rank(),
		a.order - b.order,
	} {
		if d != 0 {
			return d
		}
	}
	// Beyond the table, a bigger model that fits is the better guess.
	switch {
	case a.model.Shape.Weights > b.model.Shape.Weights:
		return -1
	case a.model.Shape.Weights < b.model.Shape.Weights:
		return 1
	}
	return 0
}

func boolRank(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (k candidate) canWrite() bool {
	return k.model.Unfit == "" && k.model.Problem == "" && k.engine != ""
}

// unusable says why the candidate can't be proposed; an explicit wish is never refused for its size.
func (k candidate) unusable(r Request) string {
	switch {
	case k.model.Unfit != "":
		return k.model.Unfit
	case k.model.Problem != "":
		return k.model.Problem
	case k.engine == "":
		return "the engine asked for does not run it"
	case k.idle:
		return k.engine + ", which would run it, is not installed"
	case k.verdict == No && r.Model == "":
		return fmt.Sprintf("needs %s at %s, more than there is: %s free", GiB(k.total), Tokens(k.context), GiB(k.place.free))
	}
	return ""
}

// behind says why the candidate comes after the chosen one.
func (k candidate) behind(chosen candidate) string {
	switch {
	case !k.verdict.Usable() && chosen.verdict.Usable():
		return fmt.Sprintf("needs %s at %s and %s is free: part of it would run from main memory, slowly",
			GiB(k.total), Tokens(k.context), GiB(k.place.free))
	case !k.model.Installed && chosen.model.Installed:
		return fmt.Sprintf("not installed (%s to download)", GB(k.model.SizeBytes))
	case chosen.wished && !k.wished:
		return "not the documented pick"
	case k.context < smallestUseful && chosen.context >= smallestUseful:
		return fmt.Sprintf("its window of %s is small for coding", Tokens(k.context))
	case k.verdict != chosen.verdict:
		return fmt.Sprintf("tight: %s of %s free, with %s meant to stay in reserve", GiB(k.total), GiB(k.place.free), GiB(k.place.reserve))
	case k.order > chosen.order:
		return "after it in the table"
	}
	return "smaller"
}

func (k candidate) report() ModelReport {
	verdict := k.verdict
	if k.model.Problem != "" {
		verdict = No // of a file that can't be read nothing is known that could fit
	}
	return ModelReport{
		Ref: k.model.Ref, Engine: k.engine, Installed: k.model.Installed, SizeBytes: k.model.SizeBytes,
		NeedBytes: k.total, Need: k.need, Context: k.context, KVType: k.kvType, Verdict: verdict, Source: k.source,
		Path: k.model.Path, ContextLimit: int(k.model.Shape.ContextLimit), Notes: k.reportNotes(),
	}
}

func (k candidate) reportNotes() []string {
	notes := slices.Clone(k.model.Shape.Notes)
	for _, s := range []string{k.model.Unfit, k.model.Problem} {
		if s != "" {
			notes = append(notes, s)
		}
	}
	if k.model.Row != nil && !k.model.Row.Confirmed && k.source == FromTable {
		notes = append(notes, "the table's figures for it are not confirmed")
	}
	return notes
}
