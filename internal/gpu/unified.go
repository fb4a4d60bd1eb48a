package gpu

import "localllm/capability"

// appleProbe describes an Apple GPU. Metal may wire about two thirds of a small machine's memory and three quarters
// of a large one's, unless the user set another limit. What of it is free is what main memory has available.
func appleProbe(name string, ram, wiredLimit int64) capability.Probe {
	const large = 36 << 30
	limit := ram * 2 / 3
	if ram > large {
		limit = ram * 3 / 4
	}
	if wiredLimit > 0 {
		limit = min(wiredLimit, ram)
	}
	return capability.Probe{Source: "system", GPUs: []capability.GPU{{
		Name: name, Vendor: "apple", Source: "system", MemoryKind: capability.Unified,
		TotalBytes: &limit, Processes: []capability.Process{},
	}}}
}
