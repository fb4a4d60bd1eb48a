package capability

import (
	"fmt"
	"strconv"
	"strings"
)

// GiB writes a size the way memory is spoken of.
func GiB(n int64) string { return fmt.Sprintf("%.1f GiB", float64(n)/float64(gib)) }

// GB writes a size the way downloads are spoken of.
func GB(n int64) string {
	if n <= 0 {
		return "size unknown"
	}
	if n < 1e9 {
		return fmt.Sprintf("%.0f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// Tokens writes a context length: 32k, or in full where it is no round number.
func Tokens(n int) string {
	if n >= 1024 && n%1024 == 0 {
		return strconv.Itoa(n/1024) + "k"
	}
	return strconv.Itoa(n)
}

// choice turns a candidate into what enable starts, with its reasons.
func (p picker) choice(k candidate) Choice {
	c := Choice{
		Model: k.model.Ref, Engine: k.engine, Context: k.context, KVType: k.kvType,
		NeedBytes: k.total, FreeBytes: k.place.free, ReserveBytes: k.place.reserve, Verdict: k.verdict,
		Installed: k.model.Installed, Need: k.need, Source: k.source, Slots: p.slots(), Devices: k.place.uuids(),
		Path: k.model.Path, SizeBytes: k.model.SizeBytes, Digest: k.model.Digest,
		ContextLimit: int(k.model.Shape.ContextLimit), PrefixCache: k.model.Shape.PrefixCache(), Arch: k.model.Shape.Arch,
	}
	if row := k.model.Row; row != nil {
		if c.Engine == LlamaServer && !c.Installed && row.GGUF != "" {
			c.Model = row.GGUF // what llama-server can download
		}
		c.Thinking = row.Thinking
		if row.PrefixCache != "" {
			c.PrefixCache = row.PrefixCache
		}
	}
	c.Why = p.why(k)
	return c
}

func (p picker) why(k candidate) []string {
	why := []string{k.arithmetic()}
	if k.model.Row != nil {
		why = append(why, placeInTable(k))
	}
	if k.wished {
		why = append(why, "the documented pick, as the configuration asks")
	}
	switch {
	case k.model.Installed && k.source == Measured:
		why = append(why, "it is installed, and this is what it took the last time on this machine")
	case k.model.LoadedGPU+k.model.LoadedHost > 0:
		why = append(why, fmt.Sprintf("it is loaded already: the %s that it holds count as free for it", GiB(k.model.LoadedGPU+k.model.LoadedHost)))
	case k.model.Installed:
		why = append(why, "it is installed")
	default:
		why = append(why, fmt.Sprintf("it is not installed: %s to download", GB(k.model.SizeBytes)))
	}
	if k.kvType != DefaultKVType && p.request.KVType == "" {
		why = append(why, fmt.Sprintf("a %s cache leaves room for %s", k.kvType, Tokens(k.context)))
	}
	if limit := int(k.model.Shape.ContextLimit); limit > 0 && p.request.Context > limit {
		why = append(why, fmt.Sprintf("%s was asked for, and its limit is %s", Tokens(p.request.Context), Tokens(limit)))
	}
	if k.context < smallestUseful {
		why = append(why, fmt.Sprintf("a window of %s is small for coding", Tokens(k.context)))
	}
	if n := len(k.place.devices); n > 1 {
		why = append(why, fmt.Sprintf("split over %d devices", n))
	}
	return append(why, k.model.Shape.Notes...)
}

// arithmetic is the one line that says it all: need against what is free.
func (k candidate) arithmetic() string {
	head := fmt.Sprintf("%s at %s", k.model.Ref, Tokens(k.context))
	if k.kvType != DefaultKVType {
		head += " with a " + k.kvType + " cache"
	}
	if k.model.Shape.Weights == 0 && k.source != Measured {
		return head + ": its size is not known before it is downloaded"
	}
	where := "free"
	if len(k.place.devices) == 0 {
		where = "of main memory available"
	}
	sum := fmt.Sprintf("%s + %s reserve", GiB(k.total), GiB(k.place.reserve))
	switch k.verdict {
	case Fits:
		return fmt.Sprintf("%s: %s ≤ %s %s", head, sum, GiB(k.place.free), where)
	case Tight:
		return fmt.Sprintf("%s: %s ≤ %s %s, and eats into the reserve of %s", head, GiB(k.total), GiB(k.place.free), where, GiB(k.place.reserve))
	case Spills:
		return fmt.Sprintf("%s: %s > %s %s, so part of it would run from main memory", head, GiB(k.total), GiB(k.place.free), where)
	}
	return fmt.Sprintf("%s: %s > %s %s", head, GiB(k.total), GiB(k.place.free), where)
}

func placeInTable(k candidate) string {
	s := "in the model table"
	if k.model.Row.Date != "" {
		s += " of " + k.model.Row.Date
	}
	if k.model.Row.Note != "" {
		s += ": " + k.model.Row.Note
	}
	return s
}

func (c Choice) hints() []string {
	if !c.Installed && c.Engine != "" && c.Verdict != No {
		return []string{fmt.Sprintf("download and start it: localllm enable --model %s --pull", c.Model)}
	}
	return nil
}

// machineReasons says what stands out about the machine.
func (p picker) machineReasons() []string {
	var out []string
	for _, g := range p.survey.Machine.GPUs {
		if g.FreeBytes == nil && g.MemoryKind != Unified {
			out = append(out, fmt.Sprintf("%s does not say how much memory is free, so it is left out", g.Name))
		}
	}
	if len(p.places) > 0 && len(p.places[0].devices) == 0 {
		out = append(out, "no usable GPU was found: models run on the processor, slowly")
	}
	for _, m := range p.survey.Machine.GPUs {
		if busy := holders(m); busy != "" {
			out = append(out, busy)
		}
	}
	return out
}

// holders names who holds a large part of a GPU now.
func holders(g GPU) string {
	if g.TotalBytes == nil || g.FreeBytes == nil || *g.TotalBytes-*g.FreeBytes < *g.TotalBytes/4 {
		return ""
	}
	var names []string
	for _, p := range g.Processes {
		name := p.Name
		if name == "" {
			name = "not visible"
		}
		names = append(names, fmt.Sprintf("%s (pid %d)", name, p.PID))
	}
	who := "who holds it is not visible"
	if len(names) > 0 {
		who = "held by " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s of %s on %s are in use: %s", GiB(*g.TotalBytes-*g.FreeBytes), GiB(*g.TotalBytes), g.Name, who)
}

// anyEngine reports whether an engine is there at all, else why not and what to do.
func (p picker) anyEngine() (ok bool, reason string, hints []string) {
	for _, e := range p.survey.Engines {
		if e.Usable() && (p.request.Engine == "" || p.request.Engine == e.Name) {
			return true, "", nil
		}
	}
	for _, e := range p.survey.Engines {
		if e.State == Unreachable && (p.request.Engine == "" || p.request.Engine == e.Name) {
			return false, fmt.Sprintf("%s at %s does not answer", e.Name, e.URL), []string{"start it, or unset OLLAMA_HOST"}
		}
	}
	if p.request.Engine != "" {
		return false, p.request.Engine + " is not installed", []string{"install " + p.request.Engine + ", or leave the engine open"}
	}
	return false, "neither Ollama nor llama-server is installed",
		[]string{"install one: localllm setup"}
}

func (p picker) nothingHints() []string {
	if p.request.Model != "" {
		return []string{"check the name with localllm capability, or give the path of a .gguf file"}
	}
	return []string{"free memory by closing what holds it, or point a profile at another machine's endpoint"}
}
