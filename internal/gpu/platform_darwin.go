package gpu

import (
	"context"
	"runtime"

	"golang.org/x/sys/unix"

	"localllm/capability"
)

func platform() []capability.Prober { return []capability.Prober{apple{}} }

// apple is the GPU of Apple's own processors, which shares the main memory.
type apple struct{}

func (apple) Probe(context.Context) (capability.Probe, error) {
	if runtime.GOARCH != "arm64" {
		return capability.Probe{}, capability.ErrAbsent
	}
	ram, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return capability.Probe{}, capability.ErrAbsent
	}
	name, err := unix.Sysctl("machdep.cpu.brand_string")
	if err != nil {
		name = "Apple GPU"
	}
	wired, err := unix.SysctlUint32("iogpu.wired_limit_mb")
	if err != nil {
		wired = 0
	}
	return appleProbe(name, int64(ram), int64(wired)<<20), nil
}
