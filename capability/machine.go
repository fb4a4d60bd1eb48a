// Package capability decides what this machine can run: how much memory a model needs, which one to pick, and why.
// It never reaches outside: it starts nothing, reads no file and asks no driver; internal packages bring it the facts.
package capability

import (
	"context"
	"errors"
)

// Machine is the hardware as it was found at one moment. A nil size means that nobody could say.
type Machine struct {
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	CPU    CPU    `json:"cpu"`
	Memory Memory `json:"memory"`
	GPUs   []GPU  `json:"gpus"`
}

// CPU is the processor.
type CPU struct {
	Name  string `json:"name"`
	Cores int    `json:"cores"` // logical cores
}

// Memory is the main memory.
type Memory struct {
	TotalBytes     *int64 `json:"total_bytes"`
	AvailableBytes *int64 `json:"available_bytes"`
}

// MemoryKind says whose memory a GPU uses.
type MemoryKind string

// The kinds of GPU memory.
const (
	Dedicated MemoryKind = "dedicated"
	Unified   MemoryKind = "unified" // shared with the processor: Apple, GB10, Jetson, APUs
	MIG       MemoryKind = "mig"     // one slice of a divided card, with memory and a UUID of its own
)

// GPU is one device that an engine can be put on.
type GPU struct {
	Index             int        `json:"index"`
	UUID              string     `json:"uuid"`
	Name              string     `json:"name"`
	Vendor            string     `json:"vendor"`
	Source            string     `json:"source"` // who said so: nvml, nvidia-smi, sysfs, system
	MemoryKind        MemoryKind `json:"memory_kind"`
	TotalBytes        *int64     `json:"total_bytes"`
	FreeBytes         *int64     `json:"free_bytes"`
	ComputeCapability string     `json:"compute_capability"`
	Driver            string     `json:"driver"`
	Processes         []Process  `json:"processes"`
	Display           bool       `json:"display"` // a screen hangs on it
	ParentUUID        string     `json:"parent_uuid,omitempty"`
}

// Process is somebody who holds GPU memory. In a container the PID may be another namespace's: it is shown, and
// nothing is ever signalled by it.
type Process struct {
	PID       int    `json:"pid"`
	Name      string `json:"name"`       // empty: not visible from here
	UsedBytes *int64 `json:"used_bytes"` // nil: the driver does not say
}

// ErrAbsent is what a Prober answers where its kind of hardware or driver is not there at all: no fault, ask the next.
var ErrAbsent = errors.New("not present")

// Probe is what one source found.
type Probe struct {
	Source string
	GPUs   []GPU
	Notes  []string // what the source could not say, in words
}

// A Prober asks one source about GPUs. It returns within the context's time or with its error, ErrAbsent where there
// is nothing of its kind, and it changes nothing on the device.
type Prober interface {
	Probe(ctx context.Context) (Probe, error)
}

// FreeMemory is what is free now, by device.
type FreeMemory struct {
	Devices map[string]int64 // GPU UUID → free bytes; devices that cannot say are not in it
	Host    int64            // available main memory
}

// Total is the sum over the given devices, or over all where none is named; main memory where there is no GPU.
func (f FreeMemory) Total(uuids ...string) int64 {
	if len(f.Devices) == 0 {
		return f.Host
	}
	var sum int64
	if len(uuids) == 0 {
		for _, free := range f.Devices {
			sum += free
		}
		return sum
	}
	for _, id := range uuids {
		sum += f.Devices[id]
	}
	return sum
}

// A FreeMemoryProber says what is free now; the lifecycle proves by it that memory came back.
type FreeMemoryProber interface {
	FreeMemory(ctx context.Context) (FreeMemory, error)
}

// Bytes makes a known size.
func Bytes(n int64) *int64 { return &n }
