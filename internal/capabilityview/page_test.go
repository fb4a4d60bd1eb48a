package capabilityview

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"localllm/capability"
)

var update = flag.Bool("update", false, "write the golden pages anew: go test ./internal/capabilityview -update")

const gib = int64(1) << 30

// workstation is a report with everything in it.
func workstation() capability.Report {
	return capability.Report{
		CanEnable: true,
		Hardware: capability.Machine{
			OS: "linux", Arch: "amd64", CPU: capability.CPU{Name: "AMD Ryzen 9 7950X", Cores: 32},
			Memory: capability.Memory{TotalBytes: capability.Bytes(64 * gib), AvailableBytes: capability.Bytes(51 * gib)},
			GPUs: []capability.GPU{
				{Index: 0, Name: "NVIDIA GeForce RTX 4090", MemoryKind: capability.Dedicated, TotalBytes: capability.Bytes(24 * gib), FreeBytes: capability.Bytes(22 * gib),
					Processes: []capability.Process{{PID: 812, Name: "Xorg", UsedBytes: capability.Bytes(gib / 2)}, {PID: 9}}},
				{Index: 1, Name: "NVIDIA A100 MIG 3g.20gb", MemoryKind: capability.MIG, TotalBytes: capability.Bytes(20 * gib), FreeBytes: capability.Bytes(gib)},
				{Index: 2, Name: "NVIDIA GB10", MemoryKind: capability.Unified},
			},
		},
		Engines: []capability.EngineInfo{
			{Name: "ollama", State: capability.Running, Version: "0.34.2", URL: "http://127.0.0.1:11434", Path: "/usr/bin/ollama", Models: 2},
			{Name: "llama-server", State: capability.Missing, Detail: "LOCALLLM_LLAMA_SERVER names /opt/x, which is no program"},
		},
		Models: []capability.ModelReport{
			{Ref: "qwen3-coder:30b", Engine: "ollama", Installed: true, SizeBytes: 18_556_000_000, NeedBytes: 20 * gib, Context: 32768, KVType: "f16", Verdict: capability.Fits, Source: capability.Measured},
			{Ref: "a-model-with-a-name-that-is-much-longer-than-any-column-could-ever-hold:70b", Engine: "ollama", Installed: true, SizeBytes: 40_000_000_000, NeedBytes: 45 * gib, Context: 16384, KVType: "q8_0", Verdict: capability.Spills, Source: capability.FromHeader},
			{Ref: "gpt-oss:20b", Engine: "ollama", SizeBytes: 12_100_000_000, NeedBytes: 13 * gib, Context: 65536, KVType: "f16", Verdict: capability.Fits, Source: capability.FromTable},
			{Ref: "mystery", Engine: "ollama", Context: 32768, KVType: "f16", Verdict: capability.Tight, Source: capability.FromTable},
		},
		Recommended: &capability.Choice{Model: "qwen3-coder:30b", Engine: "ollama", Context: 32768, Installed: true,
			Why: []string{"qwen3-coder:30b at 32k: 20.0 GiB + 1.4 GiB reserve ≤ 22.0 GiB free", "it is installed"}},
		Class:   capability.VRAMClass{Name: "24-32 GB", DocumentedModel: "deepseek-coder:33b", CurrentModel: "qwen3-coder:30b"},
		Agents:  []capability.Agent{{Name: "reviewer", Source: "project", Description: "reads what was written"}},
		Notes:   []string{"nvidia-smi does not say how much memory a MIG slice has free"},
		ProbeMS: capability.ProbeMS{Total: 84.2, Driver: 71},
	}
}

// bare is a machine where nothing can be enabled.
func bare() capability.Report {
	return capability.Report{
		Reasons:  []string{"no usable GPU was found: models run on the processor, slowly", "neither Ollama nor llama-server is installed"},
		Hints:    []string{"install one: localllm setup"},
		Hardware: capability.Machine{OS: "linux", Arch: "arm64", CPU: capability.CPU{Cores: 4}},
		Class:    capability.VRAMClass{Name: "CPU only"},
	}
}

func draw(t *testing.T, r capability.Report, style Style) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, r, style); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPages(t *testing.T) {
	for name, page := range map[string]string{
		"workstation": draw(t, workstation(), Style{Width: 120}),
		"narrow":      draw(t, workstation(), Style{Width: 60}),
		"bare":        draw(t, bare(), Style{}),
	} {
		golden := filepath.Join("testdata", name+".txt")
		if *update {
			if err := os.WriteFile(golden, []byte(page), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if page != string(want) {
			t.Errorf("%s differs from %s; to accept it: go test ./internal/capabilityview -update\n%s", name, golden, page)
		}
	}
}

func TestNoLineIsWiderThanThePage(t *testing.T) {
	for _, width := range []int{40, 60, 80, 200} {
		for _, line := range strings.Split(draw(t, workstation(), Style{Width: width}), "\n") {
			if n := utf8.RuneCountInString(line); n > width {
				t.Errorf("%d columns on a page of %d: %q", n, width, line)
			}
		}
	}
}

var escape = regexp.MustCompile("\x1b\\[[0-9]*m")

func TestColoursChangeNothingButTheColours(t *testing.T) {
	colored, plain := draw(t, workstation(), Style{Width: 100, Color: true}), draw(t, workstation(), Style{Width: 100})
	if strings.Contains(plain, "\x1b") {
		t.Error("colours without being asked for")
	}
	if !strings.Contains(colored, "\x1b[32m") {
		t.Error("no colours")
	}
	if escape.ReplaceAllString(colored, "") != plain {
		t.Error("the text differs")
	}
}

func TestColoursOnlyOnATerminal(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if style := StyleFor(f); style.Color {
		t.Error("a file is no terminal")
	}
}

// A model's name comes from a foreign file.
func TestNamesCantMoveTheCursor(t *testing.T) {
	r := workstation()
	r.Models[0].Ref = "evil\x1b[2J\u202e\nname"
	r.Hardware.GPUs[0].Name = "\x1b]0;title\x07"
	r.Hints = []string{"\x1b[31mred"}
	if page := draw(t, r, Style{Width: 100}); strings.ContainsAny(page, "\x1b\x07\u202e") {
		t.Errorf("control characters in %q", page)
	}
}

func TestBars(t *testing.T) {
	for _, tt := range []struct {
		used, total int64
		want        string
	}{
		{0, 10, "░░░░░░░░░░"}, {1, 1000, "█░░░░░░░░░"}, {5, 10, "█████░░░░░"}, {999, 1000, "█████████░"}, {10, 10, "██████████"},
		{0, 0, "░░░░░░░░░░"}, {20, 10, "██████████"},
	} {
		if got := Bar(tt.used, tt.total, 10); got != tt.want {
			t.Errorf("%d of %d: %s, want %s", tt.used, tt.total, got, tt.want)
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("closed") }

func TestAClosedOutputIsAnError(t *testing.T) {
	if err := Write(broken{}, bare(), Style{}); err == nil {
		t.Error("no error")
	}
}

// With one model asked for, the next step is to enable that one.
func TestTheNextStepNamesTheModelAskedFor(t *testing.T) {
	one := []capability.ModelReport{{Ref: "a:1b", Installed: true}}
	for want, models := range map[string][]capability.ModelReport{"→ localllm enable --model a:1b\n": one, "→ localllm enable\n": append(one, capability.ModelReport{Ref: "b:1b"})} {
		var b strings.Builder
		r := capability.Report{CanEnable: true, Models: models, Recommended: &capability.Choice{Model: "a:1b", Installed: true}}
		if err := Write(&b, r, Style{}); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("%v, want %q in\n%s", err, want, b.String())
		}
	}
}
