package gpu

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"localllm/capability"
)

// tree writes files under a folder that stands for /sys.
func tree(t *testing.T, files map[string]string) amd {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return amd{root: root}
}

func TestCardsUnderSys(t *testing.T) {
	const d = "class/drm/card1/device/"
	tests := []struct {
		name        string
		files       map[string]string
		kind        capability.MemoryKind
		total, free int64 // -1: unknown
		uuid        string
		display     bool
	}{
		{"a card of its own", map[string]string{
			d + "vendor": "0x1002", d + "mem_info_vram_total": "25753026560", d + "mem_info_vram_used": "1073741824",
			d + "mem_info_gtt_total": "33000000000", d + "mem_info_gtt_used": "0", d + "unique_id": "a1b2c3", d + "product_name": "Radeon RX 7900 XTX",
			"class/drm/card1/card1-DP-1/status": "connected", "class/drm/card1/card1-DP-2/status": "disconnected",
		}, capability.Dedicated, 25753026560, 24679284736, "GPU-a1b2c3", true},
		{"an integrated one borrows main memory", map[string]string{
			d + "vendor": "0x1002", d + "device": "0x15bf", d + "mem_info_vram_total": "536870912", d + "mem_info_vram_used": "100000000",
			d + "mem_info_gtt_total": "16000000000", d + "mem_info_gtt_used": "1000000000", d + "unique_id": "0",
		}, capability.Unified, 16536870912, 15436870912, "", false},
		{"a driver without figures", map[string]string{d + "vendor": "0x1002", d + "device": "0x67df"}, capability.Dedicated, -1, -1, "", false},
		{"garbage for figures", map[string]string{
			d + "vendor": "0x1002", d + "mem_info_vram_total": "lots", d + "mem_info_vram_used": "-5",
		}, capability.Dedicated, -1, -1, "", false},
		{"more used than there is", map[string]string{
			d + "vendor": "0x1002", d + "mem_info_vram_total": "8000000000", d + "mem_info_vram_used": "9000000000",
		}, capability.Dedicated, 8000000000, -1, "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := tree(t, tt.files).Probe(context.Background())
			if err != nil || len(p.GPUs) != 1 {
				t.Fatalf("%+v, %v", p, err)
			}
			g := p.GPUs[0]
			if g.MemoryKind != tt.kind || g.UUID != tt.uuid || g.Display != tt.display || g.Vendor != "amd" || g.Index != 1 || g.Name == "" {
				t.Errorf("device %+v", g)
			}
			if size(g.TotalBytes) != tt.total || size(g.FreeBytes) != tt.free {
				t.Errorf("memory %d free of %d, want %d of %d", size(g.FreeBytes), size(g.TotalBytes), tt.free, tt.total)
			}
		})
	}
}

func FuzzCard(f *testing.F) {
	f.Add("0x1002", "25753026560", "1073741824", "33000000000", "0", "a1b2c3", "Radeon RX 7900 XTX")
	f.Add("0x1002", "536870912", "100000000", "16000000000", "1000000000", "0x0", "")
	f.Add("0x1002\n\x00", "9223372036854775807", "-5", "9223372036854775807", "9223372036854775807", "\xff", "\n")
	f.Fuzz(func(t *testing.T, vendor, total, used, gtt, gttUsed, id, name string) {
		const d = "class/drm/card0/device/"
		p, err := tree(t, map[string]string{
			d + "vendor": vendor, d + "mem_info_vram_total": total, d + "mem_info_vram_used": used,
			d + "mem_info_gtt_total": gtt, d + "mem_info_gtt_used": gttUsed, d + "unique_id": id, d + "product_name": name,
		}).Probe(context.Background())
		if err != nil {
			return
		}
		g := p.GPUs[0]
		if g.Name == "" || g.TotalBytes == nil && (g.FreeBytes != nil || len(p.Notes) == 0) {
			t.Errorf("%+v, notes %q", g, p.Notes)
		}
		if g.TotalBytes != nil && *g.TotalBytes < 0 || g.FreeBytes != nil && (*g.FreeBytes < 0 || *g.FreeBytes > *g.TotalBytes) {
			t.Errorf("memory %d free of %d", size(g.FreeBytes), size(g.TotalBytes))
		}
	})
}

func size(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}

func TestOtherVendorsCardsAreNotAMDs(t *testing.T) {
	for _, files := range []map[string]string{
		{"class/drm/card0/device/vendor": "0x10de"},
		{"class/drm/card0-HDMI-A-1/device/vendor": "0x1002"}, // an output, not a card
		{"class/net/eth0": ""},
	} {
		if p, err := tree(t, files).Probe(context.Background()); !errors.Is(err, capability.ErrAbsent) {
			t.Errorf("%v gave %+v, %v", files, p, err)
		}
	}
}

func TestHowMuchMetalMayWire(t *testing.T) {
	tests := []struct{ ram, limit, want int64 }{
		{16 << 30, 0, 16 << 30 * 2 / 3},
		{64 << 30, 0, 48 << 30},
		{64 << 30, 56 << 30, 56 << 30},
		{16 << 30, 99 << 30, 16 << 30},
	}
	for _, tt := range tests {
		g := appleProbe("Apple M4", tt.ram, tt.limit).GPUs[0]
		if *g.TotalBytes != tt.want || g.FreeBytes != nil || g.MemoryKind != capability.Unified {
			t.Errorf("%d with limit %d: %+v", tt.ram, tt.limit, g)
		}
	}
}
