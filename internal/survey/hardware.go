package survey

import (
	"context"
	"runtime"

	"github.com/shirou/gopsutil/v3/cpu"
	"github.com/shirou/gopsutil/v3/mem"

	"localllm/capability"
)

// hardware asks the system about processor and memory. What it can't say stays unknown.
func hardware(ctx context.Context) (capability.Machine, []string) {
	m := capability.Machine{OS: runtime.GOOS, Arch: runtime.GOARCH}
	var notes []string
	m.CPU.Cores = runtime.NumCPU()
	if infos, err := cpu.InfoWithContext(ctx); err == nil && len(infos) > 0 {
		m.CPU.Name = infos[0].ModelName
	} else {
		notes = append(notes, "the processor's name is not known")
	}
	memory, err := mainMemory(ctx)
	if err != nil {
		notes = append(notes, "main memory is not known: "+err.Error())
	}
	m.Memory = memory
	return m, notes
}

func mainMemory(ctx context.Context) (capability.Memory, error) {
	v, err := mem.VirtualMemoryWithContext(ctx)
	if err != nil {
		return capability.Memory{}, err
	}
	total, available := int64(v.Total), int64(v.Available)
	// A container may have less than its host shows.
	if limit, used, ok := controlGroup("/sys/fs/cgroup"); ok && limit < total {
		total, available = limit, min(available, max(0, limit-used))
	}
	return capability.Memory{TotalBytes: &total, AvailableBytes: &available}, nil
}
