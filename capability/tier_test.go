package capability

import (
	"fmt"
	"strings"
	"testing"
)

func card(totalGiB float64) GPU {
	total := int64(totalGiB * float64(gib))
	return GPU{
		UUID: fmt.Sprintf("GPU-%v", totalGiB), Name: "Card", Vendor: "nvidia", MemoryKind: Dedicated,
		TotalBytes: &total, FreeBytes: Bytes(total - 300<<20),
	}
}

func machine(ramGiB int64, gpus ...GPU) Machine {
	return Machine{
		OS: "linux", Arch: "amd64", GPUs: gpus,
		Memory: Memory{TotalBytes: Bytes(ramGiB * gib), AvailableBytes: Bytes(ramGiB*gib - 2*gib)},
	}
}

var bothEngines = []EngineInfo{{Name: Ollama, State: Installed, Version: "0.34.2"}, {Name: LlamaServer, State: Installed, Version: "b11669"}}

func TestTheTiers(t *testing.T) {
	const q5, q8 = "hf:unsloth/Qwen3.8-27B-GGUF:Q5_K_M", "hf:unsloth/Qwen3.8-27B-GGUF:Q8_0"
	unified := GPU{Name: "GB10", Vendor: "nvidia", MemoryKind: Unified}
	tests := []struct {
		name       string
		machine    Machine
		class      string
		model      string
		context    int
		kv         string
		documented string // what is picked where the documented picks are wanted
	}{
		{"7.9 GB is sold as 8", machine(64, card(7.9)), "8-12 GB", "qwen2.5-coder:7b", 32768, "q8_0", "deepseek-coder:6.7b"},
		{"8 GB", machine(64, card(8)), "8-12 GB", "qwen2.5-coder:7b", 32768, "q8_0", "deepseek-coder:6.7b"},
		{"11.9 GB is sold as 12", machine(64, card(11.9)), "12-16 GB", "qwen3.5:9b", 65536, "f16", "deepseek-coder:6.7b"},
		{"12 GB", machine(64, card(12)), "12-16 GB", "qwen3.5:9b", 65536, "f16", "deepseek-coder:6.7b"},
		{"14 GB, a gap in the documented table", machine(64, card(14)), "12-16 GB", "qwen3.5:9b", 65536, "f16", "deepseek-coder:6.7b"},
		{"16 GB", machine(64, card(16)), "16-24 GB", "gpt-oss:20b", 65536, "q8_0", "deepseek-coder-v2:16b"},
		{"23.9 GB is sold as 24", machine(64, card(23.9)), "24-32 GB", "qwen3-coder:30b", 65536, "q8_0", "deepseek-coder:33b"},
		{"24 GB", machine(64, card(24)), "24-32 GB", "qwen3-coder:30b", 65536, "q8_0", "deepseek-coder:33b"},
		{"32 GB", machine(64, card(32)), "32-48 GB", q5, 65536, "f16", "deepseek-r1:32b"},
		{"48 GB", machine(64, card(48)), "48-64 GB", q8, 65536, "f16", "deepseek-r1:32b"},
		{"80 GB", machine(128, card(80)), "80-96 GB", "qwen3-coder-next", 65536, "f16", "deepseek-r1:32b"},
		{"141 GB", machine(256, card(141)), "96+ GB", "qwen3.5:122b-a10b", 65536, "f16", "deepseek-r1:32b"},
		{"two cards count together", machine(64, card(24), card(24.5)), "48-64 GB", q8, 65536, "f16", "deepseek-r1:32b"},
		{"two unequal cards", machine(64, card(24), card(12)), "32-48 GB", q5, 65536, "f16", "deepseek-r1:32b"},
		{"unified memory keeps a quarter back", machine(128, unified), "96+ GB", "qwen3.5:122b-a10b", 65536, "f16", "deepseek-r1:32b"},
		{"no GPU and 16 GB of RAM", machine(16), "CPU only", "qwen3.5:4b", 65536, "f16", "qwen3.5:4b"},
		{"no GPU and 64 GB of RAM", machine(64), "CPU only", "qwen3-coder:30b", 65536, "f16", "qwen3-coder:30b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := Pick(Survey{Machine: tt.machine, Engines: bothEngines}, DefaultCatalog(), Request{})
			if d.Class.Name != tt.class {
				t.Errorf("class %s, want %s", d.Class.Name, tt.class)
			}
			c := d.Choice
			if c == nil || c.Model != tt.model || c.Context != tt.context || c.KVType != tt.kv || c.Verdict != Fits {
				t.Fatalf("picked %+v, want %s at %d with %s", c, tt.model, tt.context, tt.kv)
			}
			if c.NeedBytes+c.ReserveBytes > c.FreeBytes {
				t.Errorf("said to fit: %s + %s in %s", GiB(c.NeedBytes), GiB(c.ReserveBytes), GiB(c.FreeBytes))
			}
			if !d.CanEnable || len(d.Reasons) == 0 || len(c.Why) == 0 {
				t.Errorf("can enable %v, reasons %q, why %q", d.CanEnable, d.Reasons, c.Why)
			}
			documented := Pick(Survey{Machine: tt.machine, Engines: bothEngines}, DefaultCatalog(), Request{Models: ModelsDocumented})
			if documented.Choice == nil || documented.Choice.Model != tt.documented {
				t.Errorf("the documented pick is %+v, want %s", documented.Choice, tt.documented)
			}
		})
	}
}

func TestFreeMemoryDecidesAndNotTheTotal(t *testing.T) {
	busy := card(24)
	busy.FreeBytes = Bytes(9 * gib)
	busy.Processes = []Process{{PID: 7, Name: "game"}, {PID: 8}}
	d := Pick(Survey{Machine: machine(64, busy), Engines: bothEngines}, DefaultCatalog(), Request{})
	if d.Class.Name != "24-32 GB" {
		t.Errorf("class %s", d.Class.Name)
	}
	if d.Choice.NeedBytes > 9*gib || d.Choice.Verdict != Fits {
		t.Errorf("picked %s for %s of 9 GiB free", d.Choice.Model, GiB(d.Choice.NeedBytes))
	}
	if !strings.Contains(strings.Join(d.Reasons, "\n"), "held by game (pid 7), not visible (pid 8)") {
		t.Errorf("who holds the rest is not said: %q", d.Reasons)
	}
	// The freer of two cards is taken, whatever its size.
	d = Pick(Survey{Machine: machine(64, busy, card(12)), Engines: bothEngines}, DefaultCatalog(), Request{Model: "qwen2.5-coder:7b"})
	if len(d.Choice.Devices) != 1 || d.Choice.Devices[0] != "GPU-12" {
		t.Errorf("put on %v", d.Choice.Devices)
	}
}

func TestReserves(t *testing.T) {
	screen := card(24)
	screen.Display = true
	for _, tt := range []struct {
		name string
		gpu  GPU
		m    Machine
		want int64
	}{
		{"headless", card(12), machine(64), gib},
		{"headless and large", card(80), machine(64), 80 * gib * 6 / 100},
		{"with a screen", screen, machine(64), 24 * gib / 10},
		{"windows", card(8), Machine{OS: "windows"}, gib * 3 / 2},
		{"unified", GPU{MemoryKind: Unified}, machine(64), 16 * gib},
		{"unified with a limit on the GPU's share", GPU{MemoryKind: Unified, TotalBytes: Bytes(48 * gib)}, machine(64), gib},
	} {
		total := int64(64) * gib
		if tt.gpu.TotalBytes != nil {
			total = *tt.gpu.TotalBytes
		}
		if got := reserve(tt.gpu, tt.m, total); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, GiB(got), GiB(tt.want))
		}
	}
}

func TestAMigSliceIsNeverCombined(t *testing.T) {
	slice := func(id string) GPU {
		return GPU{UUID: id, Name: "slice", Vendor: "nvidia", MemoryKind: MIG, TotalBytes: Bytes(20 * gib), FreeBytes: Bytes(19 * gib)}
	}
	d := Pick(Survey{Machine: machine(64, slice("MIG-1"), slice("MIG-2")), Engines: bothEngines}, DefaultCatalog(), Request{})
	if len(d.Choice.Devices) != 1 || d.Class.Name != "16-24 GB" {
		t.Errorf("class %s, devices %v", d.Class.Name, d.Choice.Devices)
	}
}

func TestEightCardsTakeNoMoreThanIsNeeded(t *testing.T) {
	var cards []GPU
	for i := range 8 {
		g := card(24)
		g.UUID = fmt.Sprintf("GPU-%d", i)
		cards = append(cards, g)
	}
	d := Pick(Survey{Machine: machine(256, cards...), Engines: bothEngines}, DefaultCatalog(), Request{Model: "gpt-oss:120b"})
	if n := len(d.Choice.Devices); n < 3 || n > 4 || d.Choice.Verdict != Fits {
		t.Errorf("64 GB on %d cards of 24 GB: %s", n, d.Choice.Verdict)
	}
	if d.Class.Name != "96+ GB" {
		t.Errorf("class %s", d.Class.Name)
	}
}
