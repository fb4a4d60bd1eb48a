package capabilityview

import (
	"fmt"
	"slices"

	"localllm/capability"
)

func (p *page) engines(list []capability.EngineInfo) {
	p.heading("Engines")
	rows := [][]cell{}
	for _, e := range list {
		color := plain
		switch e.State {
		case capability.Running:
			color = green
		case capability.Unreachable:
			color = red
		case capability.Missing:
			color = faint
		}
		where := e.URL
		if e.State == capability.Installed || where == "" {
			where = e.Path
		}
		if e.State == capability.Missing {
			where = ""
		}
		version := e.Version
		if version == "" {
			version = "–"
		}
		rows = append(rows, []cell{{e.Name, plain}, {string(e.State), color}, {version, plain}, {count(e.Models, "model"), plain}, {where, faint}})
	}
	p.table(nil, rows)
	for _, e := range list {
		if e.Detail != "" {
			p.paragraph(amber, "", e.Detail)
		}
	}
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

var verdictColors = map[capability.Verdict]string{
	capability.Fits: green, capability.Tight: amber, capability.Spills: amber, capability.No: red,
}

func (p *page) models(r capability.Report) {
	p.heading("Models")
	if len(r.Models) == 0 {
		p.line(faint, "none")
		return
	}
	rows := [][]cell{}
	for _, m := range r.Models {
		need := capability.GiB(m.NeedBytes)
		if m.NeedBytes == 0 {
			need = "not known"
		}
		verdict, color := string(m.Verdict), verdictColors[m.Verdict]
		if m.Context == 0 {
			verdict, color = "–", faint
		}
		state := "installed"
		if !m.Installed {
			state = "download " + capability.GB(m.SizeBytes)
		}
		rows = append(rows, []cell{
			{m.Ref, plain}, {verdict, color}, {need, plain}, {capability.Tokens(m.Context), plain}, {m.KVType, plain},
			{m.Engine, plain}, {string(m.Source), faint}, {state, faint},
		})
	}
	p.table([]string{"model", "verdict", "need", "context", "cache", "engine", "from", ""}, rows)
}

func (p *page) recommendation(r capability.Report) {
	p.heading("Recommended")
	c := r.Recommended
	if c == nil {
		p.line(red, "nothing")
	} else {
		p.line(bold, "%s at %s with %s", c.Model, capability.Tokens(c.Context), c.Engine)
		for _, why := range c.Why {
			p.paragraph(plain, "", why)
		}
	}
	class := r.Class.Name
	if r.Class.DocumentedModel != "" {
		class += "; documented pick " + r.Class.DocumentedModel
	}
	p.line(faint, "memory class %s", class)
	switch {
	case r.CanEnable && c != nil && c.Installed:
		command := "localllm enable"
		if len(r.Models) == 1 { // it may have been asked for
			command += " --model " + c.Model
		}
		p.paragraph(green, "→ ", command)
	case r.CanEnable:
		p.next(green, r.Hints)
	default:
		for _, why := range r.Reasons {
			if c == nil || !slices.Contains(c.Why, why) {
				p.paragraph(plain, "· ", why)
			}
		}
		p.next(amber, r.Hints)
	}
}

func (p *page) next(color string, hints []string) {
	for _, h := range hints {
		p.paragraph(color, "→ ", h)
	}
}

func (p *page) agents(list []capability.Agent) {
	if len(list) == 0 {
		return
	}
	p.heading("Agents")
	rows := [][]cell{}
	for _, a := range list {
		rows = append(rows, []cell{{a.Name, plain}, {a.Source, faint}, {a.Description, plain}})
	}
	p.table(nil, rows)
}

func (p *page) footer(r capability.Report) {
	if len(r.Notes) > 0 {
		p.heading("Not found out")
		for _, n := range r.Notes {
			p.paragraph(plain, "· ", n)
		}
	}
	p.text.WriteByte('\n')
	p.line(faint, "found out in %.0f ms, of which the driver took %.0f", r.ProbeMS.Total, r.ProbeMS.Driver)
}
