package capability

import (
	"fmt"
	"slices"
)

// candidates lists what could be run: what is installed, then what the table knows.
func (p picker) candidates(c Catalog, class Class) []candidate {
	order := tableOrder(c, class, p.request.Models)
	wished := p.wished(c, class)
	var list []candidate
	for _, m := range p.survey.Models {
		if row, ok := c.Find(m.Ref); ok && m.Row == nil {
			m.Row = row
		}
		if p.request.Model != "" && !p.wanted(m) {
			continue
		}
		list = append(list, candidate{model: m, order: rankOf(order, m), wished: m.Row != nil && m.Row.Ref == wished})
	}
	if p.request.Model != "" {
		if len(list) == 0 {
			list = append(list, candidate{model: absent(p.request.Model, c)})
		}
		return list
	}
	for _, ref := range order {
		row, ok := c.Find(ref)
		if !ok || slices.ContainsFunc(list, func(k candidate) bool { return k.model.Row == row }) {
			continue
		}
		list = append(list, candidate{model: row.model(), order: slices.Index(order, ref), wished: ref == wished})
	}
	return list
}

// wished is the documented pick for this class, or for the next smaller one that has any, if the user wants those.
func (p picker) wished(c Catalog, class Class) string {
	if p.request.Models != ModelsDocumented {
		return ""
	}
	at := slices.IndexFunc(c.Classes, func(k Class) bool { return k.Name == class.Name })
	for i := at; i >= 0; i-- {
		if ref := c.Classes[i].Documented; ref != "" {
			return ref
		}
	}
	return ""
}

func (p picker) wanted(m Model) bool {
	want := p.request.Model
	return Same(m.Ref, want) || m.Path != "" && Same(m.Path, want) || m.Row != nil && m.Row.GGUF != "" && Same(m.Row.GGUF, want)
}

func rankOf(order []string, m Model) int {
	if m.Row != nil {
		if i := slices.Index(order, m.Row.Ref); i >= 0 {
			return i
		}
	}
	return len(order)
}

// tableOrder lists the table's models as this class prefers them: its own, then those of smaller classes, from the
// next one down, then those of larger ones.
func tableOrder(c Catalog, class Class, picks string) []string {
	var order []string
	add := func(refs ...string) {
		for _, ref := range refs {
			if ref != "" && !slices.Contains(order, ref) {
				order = append(order, ref)
			}
		}
	}
	at := slices.IndexFunc(c.Classes, func(k Class) bool { return k.Name == class.Name })
	if at < 0 {
		return nil
	}
	if picks == ModelsDocumented {
		for i := at; i >= 0; i-- {
			add(c.Classes[i].Documented)
		}
	}
	for i := at; i >= 0; i-- {
		add(c.Classes[i].Current...)
	}
	for i := at + 1; i < len(c.Classes); i++ {
		add(c.Classes[i].Current...)
	}
	return order
}

// model is a row as something that could be downloaded.
func (r *Row) model() Model {
	m := Model{Ref: r.Ref, SizeBytes: r.Bytes, Shape: r.Shape(), Source: FromTable, Row: r}
	if ref, err := ParseRef(r.Ref); err == nil && ref.Kind == TagRef {
		m.Engines = append(m.Engines, Ollama)
	}
	if r.GGUF != "" || len(m.Engines) == 0 {
		m.Engines = append(m.Engines, LlamaServer)
	}
	return m
}

// absent is a model that was asked for by name and is not installed.
func absent(name string, c Catalog) Model {
	if row, ok := c.Find(name); ok {
		m := row.model()
		m.Ref = name
		return m
	}
	m := Model{Ref: name, Source: FromTable}
	ref, err := ParseRef(name)
	if err != nil {
		m.Problem = err.Error()
		return m
	}
	switch ref.Kind {
	case FileRef:
		m.Engines = []string{LlamaServer}
		m.Problem = fmt.Sprintf("%s was not found", ref.Path)
	case HuggingFaceRef:
		m.Engines = []string{LlamaServer, Ollama}
		m.Shape = guess(ref.Repo + ":" + ref.Quant)
	default:
		m.Engines = []string{Ollama}
		m.Shape = guess(ref.Tag)
	}
	m.SizeBytes = m.Shape.Weights
	return m
}

// classify finds the tier that the machine's memory falls into. Several cards count together; of unified memory the
// share that models may have; without a GPU it is the tier for processors.
func classify(m Machine, c Catalog) Class {
	var total int64
	for _, p := range places(m) {
		var sum int64
		for _, g := range p.devices {
			size := g.TotalBytes
			if size == nil {
				size = m.Memory.TotalBytes
			}
			if size == nil {
				continue
			}
			if g.MemoryKind == Unified {
				sum += *size - reserve(g, m, *size)
				continue
			}
			sum += *size
		}
		total = max(total, sum)
	}
	found := Class{Name: "unknown"}
	if len(c.Classes) > 0 {
		found = c.Classes[0]
	}
	const nominal = 0.97 // a driver reports up to 3 % less than the box says
	for _, k := range c.Classes {
		if total > 0 && float64(total) >= k.FromGB*nominal*float64(gib) {
			found = k
		}
	}
	return found
}

func (k Class) report(c Catalog) VRAMClass {
	out := VRAMClass{Name: k.Name, DocumentedModel: k.Documented}
	if len(k.Current) > 0 {
		out.CurrentModel = k.Current[0]
	}
	return out
}
