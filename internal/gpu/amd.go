package gpu

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"localllm/capability"
)

// amd reads what the amdgpu driver says under /sys.
type amd struct {
	root string // /sys, or a copy of it
}

var cardName = regexp.MustCompile(`^card(\d+)$`)

// carveOut is the largest part of main memory that firmware commonly sets aside for an integrated GPU.
const carveOut = 4 << 30

func (a amd) Probe(context.Context) (capability.Probe, error) {
	drm := filepath.Join(a.root, "class", "drm")
	entries, err := os.ReadDir(drm)
	if err != nil {
		return capability.Probe{}, capability.ErrAbsent
	}
	p := capability.Probe{Source: "sysfs"}
	for _, e := range entries {
		m := cardName.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		device := filepath.Join(drm, e.Name(), "device")
		if text := line(device, "vendor"); text != "0x1002" {
			continue
		}
		index, _ := strconv.Atoi(m[1])
		g := a.card(index, device)
		g.Display = connected(filepath.Join(drm, e.Name()), e.Name())
		if g.TotalBytes == nil {
			p.Notes = append(p.Notes, fmt.Sprintf("%s (%s) does not say how much memory it has", g.Name, e.Name()))
		}
		p.GPUs = append(p.GPUs, g)
	}
	if len(p.GPUs) == 0 {
		return capability.Probe{}, capability.ErrAbsent
	}
	return p, nil
}

func (a amd) card(index int, device string) capability.GPU {
	g := capability.GPU{
		Index: index, Name: line(device, "product_name"), Vendor: "amd", Source: "sysfs", MemoryKind: capability.Dedicated,
		Driver: line(filepath.Join(a.root, "module", "amdgpu"), "version"), Processes: []capability.Process{},
	}
	if g.Name == "" {
		g.Name = "AMD GPU " + line(device, "device")
	}
	// ROCm selects devices by this name; a card without a serial number has only its index.
	if id := strings.TrimPrefix(line(device, "unique_id"), "0x"); id != "" && strings.Trim(id, "0") != "" {
		g.UUID = "GPU-" + id
	}
	vram, used := number(device, "mem_info_vram_total"), number(device, "mem_info_vram_used")
	gtt, gttUsed := number(device, "mem_info_gtt_total"), number(device, "mem_info_gtt_used")
	if vram != nil && *vram <= carveOut && gtt != nil && gttUsed != nil && used != nil && *gtt > *vram {
		// An integrated GPU: a small carve-out, and the rest borrowed from main memory.
		g.MemoryKind = capability.Unified
		vram, used = capability.Bytes(*vram+*gtt), capability.Bytes(*used+*gttUsed)
	}
	g.TotalBytes = vram
	if vram != nil && used != nil && *used <= *vram {
		g.FreeBytes = capability.Bytes(*vram - *used)
	}
	return g
}

func line(dir, name string) string {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return firstLine(string(data))
}

func number(dir, name string) *int64 {
	n, err := strconv.ParseInt(line(dir, name), 10, 64)
	if err != nil || n < 0 {
		return nil
	}
	return &n
}

// connected reports whether a screen hangs on the card.
func connected(dir, card string) bool {
	outputs, err := filepath.Glob(filepath.Join(dir, card+"-*", "status"))
	if err != nil {
		return false
	}
	for _, status := range outputs {
		if data, err := os.ReadFile(status); err == nil && strings.TrimSpace(string(data)) == "connected" {
			return true
		}
	}
	return false
}
