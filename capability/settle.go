package capability

import "slices"

// picker holds what stays the same while candidates are weighed.
type picker struct {
	survey  Survey
	request Request
	places  []place
}

// settle finds the best way to run a candidate: the largest useful context that fits, f16 before q8_0 at the same
// context, one device before several.
func (p picker) settle(k *candidate) {
	k.engine = p.engineFor(k.model)
	available, _, _ := p.anyEngine()
	k.idle = available && k.engine != "" && !p.engineUsable(k.engine)
	contexts := p.contexts(k.model.Shape)
	if p.request.Context == 0 && (k.wished || p.request.Model != "") {
		for n := contexts[len(contexts)-1] / 2; n >= smallestAtAll; n /= 2 {
			contexts = append(contexts, n)
		}
	}
	best := candidate{}
	found := false
	for _, context := range contexts {
		for _, kv := range p.kvTypes(k.engine, k.model.Shape) {
			try := p.weigh(*k, context, kv)
			if !found || try.verdict.rank() < best.verdict.rank() {
				best, found = try, true
			}
			if best.verdict == Fits {
				*k = best
				return
			}
		}
	}
	*k = best
}

// weigh works out one way to run a candidate on the place where it does best.
func (p picker) weigh(k candidate, context int, kv string) candidate {
	k.context, k.kvType = context, kv
	for i, where := range p.places {
		if i == len(p.places)-1 {
			// Of several devices nobody says which one holds it; all together do.
			where = where.with(k.model)
		}
		need := k.model.Shape.Estimate(p.setting(context, kv, len(where.devices)))
		total, source := need.Total(), k.model.Source
		if measured, ok := p.survey.History[p.key(k, context, kv)]; ok && measured > 0 {
			total, source = measured, Measured
		}
		verdict := where.judge(total, need.largestLayer(k.model.Shape))
		if i == 0 || verdict.rank() < k.verdict.rank() {
			k.place, k.need, k.total, k.source, k.verdict = where, need, total, source, verdict
		}
	}
	if k.model.Shape.Weights == 0 && k.verdict == Fits {
		k.verdict = Tight // of an unknown size nothing better can be said, and nothing is refused
	}
	return k
}

func (p picker) setting(context int, kv string, devices int) Setting {
	return Setting{Context: context, KVType: kv, Slots: p.slots(), Devices: devices}
}

func (p picker) slots() int { return max(p.request.Slots, 1) }

func (p picker) key(k candidate, context int, kv string) HistoryKey {
	info, _ := p.survey.Engine(k.engine)
	return HistoryKey{Digest: k.model.Digest, Context: context, KVType: kv, Slots: p.slots(), Engine: k.engine, Version: info.Version}
}

// contexts lists what to try, the largest first.
func (p picker) contexts(s Shape) []int {
	limit := int(s.ContextLimit)
	if p.request.Context > 0 {
		if limit > 0 {
			return []int{min(p.request.Context, limit)}
		}
		return []int{p.request.Context}
	}
	if limit <= 0 {
		limit = limitUnknown
	}
	var list []int
	for _, c := range usefulContexts {
		if c <= limit {
			list = append(list, c)
		}
	}
	if len(list) == 0 || limit < usefulContexts[0] && limit > list[0] {
		list = slices.Insert(list, 0, limit)
	}
	return list
}

// kvTypes lists the cache types to try. The type is a setting of Ollama's whole server: it can't be chosen on one
// that runs already.
func (p picker) kvTypes(engine string, s Shape) []string {
	if p.request.KVType != "" {
		return []string{p.request.KVType}
	}
	info, _ := p.survey.Engine(engine)
	if engine == Ollama && info.State == Running || s.HeadSize%32 != 0 {
		return []string{DefaultKVType}
	}
	return []string{DefaultKVType, "q8_0"}
}

// engineFor picks who runs a model: the engine asked for, else the first usable one that can, else (for a model that
// could be downloaded) whoever could once installed.
func (p picker) engineFor(m Model) string {
	if p.request.Engine != "" {
		if slices.Contains(m.Engines, p.request.Engine) {
			return p.request.Engine
		}
		return ""
	}
	for _, name := range m.Engines {
		if p.engineUsable(name) {
			return name
		}
	}
	if len(m.Engines) > 0 {
		return m.Engines[0]
	}
	return ""
}

func (p picker) engineUsable(name string) bool {
	info, ok := p.survey.Engine(name)
	return ok && info.Usable()
}

// stepDown lists what to try when the choice does not load for memory: smaller contexts, then a q8_0 cache, then the
// next models in order. What is not installed is no way out: it would have to be downloaded first.
func (p picker) stepDown(chosen candidate, all []candidate) []Choice {
	var list []Choice
	add := func(k candidate) { list = append(list, p.choice(k)) }
	kvs := []string{chosen.kvType}
	if p.request.KVType == "" && chosen.kvType == DefaultKVType && slices.Contains(p.kvTypes(chosen.engine, chosen.model.Shape), "q8_0") {
		kvs = append(kvs, "q8_0")
	}
	for i, kv := range kvs {
		context := chosen.context
		if i == 0 {
			context /= 2
		}
		for ; context >= smallestAtAll; context /= 2 {
			add(p.weigh(chosen, context, kv))
		}
	}
	for _, k := range all {
		if k.model.Ref == chosen.model.Ref && k.model.Path == chosen.model.Path || !k.model.Installed || k.unusable(Request{}) != "" {
			continue
		}
		if k.total < chosen.total {
			add(k)
		}
	}
	return list
}
