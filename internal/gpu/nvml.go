//go:build linux && cgo

package gpu

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"localllm/capability"
)

// newNVML asks NVIDIA's management library, opened at run time: no driver, no library, no error.
func newNVML(library string) capability.Prober {
	var opts []nvml.LibraryOption
	if library != "" {
		opts = append(opts, nvml.WithLibraryPath(library))
	}
	q := &nvmlQuery{lib: nvml.New(opts...), named: library != ""}
	return &guarded{name: "the NVIDIA driver (NVML)", limit: HangLimit, probe: q.probe}
}

type nvmlQuery struct {
	lib   nvml.Interface
	named bool // the library was named by the user: that it is missing is worth a word
}

func (q *nvmlQuery) probe() (capability.Probe, error) {
	switch ret := q.lib.Init(); ret {
	case nvml.SUCCESS:
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		if q.named {
			return capability.Probe{}, fmt.Errorf("LOCALLLM_NVML: the library could not be loaded")
		}
		return capability.Probe{}, capability.ErrAbsent
	case nvml.ERROR_DRIVER_NOT_LOADED, nvml.ERROR_NO_PERMISSION:
		return capability.Probe{}, fmt.Errorf("NVML is installed and the NVIDIA driver does not answer: %s", q.text(ret))
	default:
		return capability.Probe{}, fmt.Errorf("starting NVML: %s", q.text(ret))
	}
	defer q.lib.Shutdown()
	count, ret := q.lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return capability.Probe{}, fmt.Errorf("counting NVIDIA devices: %s", q.text(ret))
	}
	if count == 0 {
		return capability.Probe{}, capability.ErrAbsent
	}
	driver := ""
	if q.has("nvmlSystemGetDriverVersion") {
		driver, _ = q.lib.SystemGetDriverVersion()
	}
	p := capability.Probe{Source: "nvml"}
	for i := range count {
		device, ret := q.lib.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			p.Notes = append(p.Notes, fmt.Sprintf("NVIDIA device %d: %s", i, q.text(ret)))
			continue
		}
		q.device(&p, i, device, driver)
	}
	return p, nil
}

// text is NVML's own wording, where the library has one.
func (q *nvmlQuery) text(ret nvml.Return) string {
	if !q.has("nvmlErrorString") {
		return fmt.Sprintf("error %d", ret)
	}
	return nvml.ErrorString(ret)
}

// has reports whether the library exports a function. Calling one that it lacks would end the process: symbols are
// bound at the first call.
func (q *nvmlQuery) has(symbol string) bool {
	return q.lib.Extensions().LookupSymbol(symbol) == nil
}

func (q *nvmlQuery) device(p *capability.Probe, index int, d nvml.Device, driver string) {
	g := capability.GPU{
		Index: index, Vendor: "nvidia", Source: "nvml", MemoryKind: capability.Dedicated, Driver: driver,
		Processes: []capability.Process{},
	}
	g.UUID, _ = d.GetUUID()
	g.Name, _ = d.GetName()
	if q.has("nvmlDeviceGetCudaComputeCapability") {
		if major, minor, ret := d.GetCudaComputeCapability(); ret == nvml.SUCCESS {
			g.ComputeCapability = fmt.Sprintf("%d.%d", major, minor)
		}
	}
	if q.has("nvmlDeviceGetDisplayActive") {
		active, ret := d.GetDisplayActive()
		g.Display = ret == nvml.SUCCESS && active == nvml.FEATURE_ENABLED
	}
	if slices, on := q.slices(g, d); on {
		if len(slices) == 0 {
			p.Notes = append(p.Notes, fmt.Sprintf("%s is in MIG mode without any slice: nothing can run on it", g.Name))
		}
		p.GPUs = append(p.GPUs, slices...)
		return
	}
	q.memory(p, &g, d)
	g.Processes = q.processes(d)
	p.GPUs = append(p.GPUs, g)
}

// memory fills in what the driver says. Where it says NOT_SUPPORTED the memory is the machine's own (GB10, Jetson).
func (q *nvmlQuery) memory(p *capability.Probe, g *capability.GPU, d nvml.Device) {
	var total, free uint64
	ret := nvml.ERROR_FUNCTION_NOT_FOUND
	if q.has("nvmlDeviceGetMemoryInfo_v2") {
		var m nvml.Memory_v2
		m, ret = d.GetMemoryInfo_v2()
		total, free = m.Total, m.Free
	}
	// Older drivers have only the first version, and some answer the second with an error.
	if ret != nvml.SUCCESS && q.has("nvmlDeviceGetMemoryInfo") {
		var m nvml.Memory
		m, ret = d.GetMemoryInfo()
		total, free = m.Total, m.Free
	}
	switch ret {
	case nvml.SUCCESS:
		g.TotalBytes, g.FreeBytes = capability.Bytes(int64(total)), capability.Bytes(int64(free))
	case nvml.ERROR_NOT_SUPPORTED:
		if g.MemoryKind != capability.MIG {
			g.MemoryKind = capability.Unified
		}
	default:
		p.Notes = append(p.Notes, fmt.Sprintf("memory of %s: %s", g.Name, q.text(ret)))
	}
}

// slices lists the MIG devices of a card, if it is divided: then the card's own figures mean nothing.
func (q *nvmlQuery) slices(card capability.GPU, d nvml.Device) (found []capability.GPU, on bool) {
	for _, symbol := range []string{"nvmlDeviceGetMigMode", "nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex"} {
		if !q.has(symbol) {
			return nil, false
		}
	}
	mode, _, ret := d.GetMigMode()
	if ret != nvml.SUCCESS || mode != nvml.DEVICE_MIG_ENABLE {
		return nil, false
	}
	count, ret := d.GetMaxMigDeviceCount()
	if ret != nvml.SUCCESS {
		return nil, true
	}
	for i := range count {
		slice, ret := d.GetMigDeviceHandleByIndex(i)
		if ret != nvml.SUCCESS {
			continue // the numbers have gaps
		}
		g := card
		g.MemoryKind, g.ParentUUID, g.Display = capability.MIG, card.UUID, false
		g.UUID, _ = slice.GetUUID()
		if name, ret := slice.GetName(); ret == nvml.SUCCESS && name != "" {
			g.Name = name
		}
		var notes capability.Probe
		q.memory(&notes, &g, slice)
		g.Processes = q.processes(slice)
		found = append(found, g)
	}
	return found, true
}

// processes lists who holds memory, each once.
func (q *nvmlQuery) processes(d nvml.Device) []capability.Process {
	list := []capability.Process{}
	seen := map[uint32]bool{}
	add := func(infos []nvml.ProcessInfo, ret nvml.Return) {
		if ret != nvml.SUCCESS {
			return
		}
		for _, info := range infos {
			if seen[info.Pid] {
				continue
			}
			seen[info.Pid] = true
			list = append(list, process(int(info.Pid), info.UsedGpuMemory))
		}
	}
	if q.hasAny("nvmlDeviceGetComputeRunningProcesses") {
		add(d.GetComputeRunningProcesses())
	}
	if q.hasAny("nvmlDeviceGetGraphicsRunningProcesses") {
		add(d.GetGraphicsRunningProcesses())
	}
	return list
}

func (q *nvmlQuery) hasAny(symbol string) bool {
	return q.has(symbol) || q.has(symbol+"_v2") || q.has(symbol+"_v3")
}
