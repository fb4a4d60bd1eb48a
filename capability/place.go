package capability

import (
	"cmp"
	"slices"
)

// Verdict says how a need compares with the memory that is free.
type Verdict string

// The verdicts. None of them refuses anything: an estimate can be wrong.
const (
	Fits   Verdict = "fits"   // with the reserve to spare
	Tight  Verdict = "tight"  // only by using the reserve
	Spills Verdict = "spills" // a part has to live in main memory: slow
	No     Verdict = "no"     // more than the GPUs and the main memory together
)

func (v Verdict) rank() int {
	return slices.Index([]Verdict{Fits, Tight, Spills, No}, v)
}

// Usable reports whether the model would run at full speed.
func (v Verdict) Usable() bool { return v == Fits || v == Tight }

// place is a set of devices that a model can be put on.
type place struct {
	devices []GPU // empty: the processor
	free    int64
	reserve int64
	spill   int64 // main memory that could take what does not fit
}

const (
	gib = int64(1) << 30
	// Reserves by what else wants the memory.
	headlessReserve = gib
	displayReserve  = gib * 3 / 2
)

// reserve is what is left alone on a device: other programs' next allocation, and the estimate's own error.
func reserve(g GPU, m Machine, total int64) int64 {
	os := m.OS
	switch {
	case g.MemoryKind == Unified:
		// A quarter of the machine's memory; what the GPU may not have anyway counts as a part of that.
		ram := total
		if m.Memory.TotalBytes != nil {
			ram = max(ram, *m.Memory.TotalBytes)
		}
		return max(gib, ram/4-(ram-total))
	case g.Display || os == "windows":
		return max(displayReserve, total/10)
	}
	return max(headlessReserve, total*6/100)
}

// hostReserve is the share of main memory that is left to everything else on the machine.
func hostReserve(m Memory) int64 {
	if m.TotalBytes == nil {
		return 2 * gib
	}
	return *m.TotalBytes / 4
}

// places lists where a model could go, the best first: each device alone, the most free one first, then several
// together, then the processor where there is no GPU at all.
func places(m Machine) []place {
	host := int64(0)
	if m.Memory.AvailableBytes != nil {
		host = *m.Memory.AvailableBytes
	}
	spill := max(0, host-hostReserve(m.Memory))
	var singles []place
	for _, g := range m.GPUs {
		if p, ok := single(g, m, host, spill); ok {
			singles = append(singles, p)
		}
	}
	if len(singles) == 0 {
		return []place{{free: host, reserve: hostReserve(m.Memory)}}
	}
	slices.SortStableFunc(singles, func(a, b place) int { return cmp.Compare(b.free-b.reserve, a.free-a.reserve) })
	return append(singles, together(singles)...)
}

func single(g GPU, m Machine, host, spill int64) (place, bool) {
	total := int64(0)
	if g.TotalBytes != nil {
		total = *g.TotalBytes
	}
	free := g.FreeBytes
	if g.MemoryKind == Unified {
		// The driver may not know, or may count what the system needs itself: never more than is available.
		if total == 0 && m.Memory.TotalBytes != nil {
			total = *m.Memory.TotalBytes
		}
		if free == nil || host > 0 && *free > host {
			free = Bytes(min(host, total))
		}
		spill = 0
	}
	if free == nil || total == 0 {
		return place{}, false
	}
	return place{devices: []GPU{g}, free: *free, reserve: reserve(g, m, total), spill: spill}, true
}

// together combines the devices of one vendor, two and more. A MIG slice is never combined: a CUDA process sees one.
func together(singles []place) []place {
	var found []place
	byVendor := map[string]place{}
	for _, s := range singles {
		g := s.devices[0]
		if g.MemoryKind != Dedicated {
			continue
		}
		p := byVendor[g.Vendor]
		p.devices = append(slices.Clone(p.devices), g)
		p.free += s.free
		p.reserve += s.reserve
		p.spill = s.spill
		byVendor[g.Vendor] = p
		if len(p.devices) > 1 {
			found = append(found, p)
		}
	}
	return found
}

// judge compares a need with a place. waste is what a split over several devices can't use.
func (p place) judge(need, waste int64) Verdict {
	if n := int64(len(p.devices)); n > 1 {
		need += (n - 1) * waste
	}
	switch {
	case need+p.reserve <= p.free:
		return Fits
	case need <= p.free:
		return Tight
	case p.spill > 0 && need <= p.free+p.spill:
		return Spills
	}
	return No
}

// with is the place once the model's own memory is counted as free: what is loaded already needs no room of its own.
func (p place) with(m Model) place {
	if len(p.devices) > 0 {
		p.free += m.LoadedGPU
	} else {
		p.free += m.LoadedGPU + m.LoadedHost
	}
	return p
}

// uuids are for CUDA_VISIBLE_DEVICES. ROCm reads that variable too and hides every device whose name it does not
// know there, so only NVIDIA's are named.
func (p place) uuids() []string {
	ids := make([]string, 0, len(p.devices))
	for _, d := range p.devices {
		if d.UUID != "" && d.Vendor == "nvidia" {
			ids = append(ids, d.UUID)
		}
	}
	return ids
}
