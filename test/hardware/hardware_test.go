//go:build linux && cgo

// Package hardware tests what the whole program says about machines that are not at hand. It needs no GPU: a library
// compiled here stands for the driver's.
package hardware

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"localllm/capability"
	"localllm/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }

// driver compiles a stand-in for libnvidia-ml.so.1.
func driver(t *testing.T, defines ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	args := append([]string{"-shared", "-fPIC", "-O1", "-o", out, "../../internal/gpu/testdata/nvml/stub.c"}, defines...)
	if text, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, text)
	}
	return out
}

// ask runs `localllm capability --json` with the library.
func ask(t *testing.T, library string, args ...string) capability.Report {
	t.Helper()
	var env []string
	if library != "" {
		env = append(env, "LOCALLLM_NVML="+library)
	}
	cmd := exec.Command(harness.Binary(t), append([]string{"capability", "--json"}, args...)...)
	cmd.Dir = t.TempDir()
	cmd.Env = harness.Env(t, harness.Home(t), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), errs.String())
	}
	var r capability.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v in %s", err, out.String())
	}
	return r
}

const gib = int64(1) << 30

func TestTheProgramAndTheDriver(t *testing.T) {
	tests := []struct {
		name    string
		defines []string
		gpus    int
		class   string
		devices int // of the recommendation; 0: the processor
		note    string
	}{
		{"one card of 24 GB with 22 free", nil, 1, "24-32 GB", 1, ""},
		{"two unequal cards", []string{"-DCOUNT=2", "-DTOTAL(i)=((i?12:24)*GIB)", "-DFREE(i)=((i?11:3)*GIB)"}, 2, "32-48 GB", 1, ""},
		{"slices of a card", []string{"-DMIG", "-DSLICES=2"}, 2, "16-24 GB", 1, ""},
		{"unified memory", []string{"-DUNIFIED"}, 1, "", 1, ""},
		{"an old library", []string{"-DOLD"}, 1, "24-32 GB", 1, ""},
		{"a driver that is not loaded", []string{"-DFAIL"}, 0, "CPU only", 0, "Driver Not Loaded"},
		{"a driver that hangs", []string{"-DHANG"}, 0, "CPU only", 0, "did not answer within 2s"},
		{"eight cards", []string{"-DCOUNT=8", "-DTOTAL(i)=(80*GIB)", "-DFREE(i)=((70+i)*GIB)"}, 8, "96+ GB", 2, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := ask(t, driver(t, tt.defines...))
			if len(r.Hardware.GPUs) != tt.gpus || tt.class != "" && r.Class.Name != tt.class {
				t.Errorf("%d GPUs, class %s", len(r.Hardware.GPUs), r.Class.Name)
			}
			if r.Recommended == nil {
				t.Fatalf("nothing is recommended: %q", r.Reasons)
			}
			if len(r.Recommended.Devices) != tt.devices {
				t.Errorf("%s on %v", r.Recommended.Model, r.Recommended.Devices)
			}
			if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, tt.note) || tt.note == "" && notes != "" {
				t.Errorf("notes %q, want %q", notes, tt.note)
			}
			if own := r.ProbeMS.Total - r.ProbeMS.Driver; own > 10_000 { // 300 are meant, on a machine that does nothing else
				t.Errorf("%.0f ms beside the driver's %.0f", own, r.ProbeMS.Driver)
			}
		})
	}
}

func TestTheFreerCardIsTaken(t *testing.T) {
	r := ask(t, driver(t, "-DCOUNT=2", "-DTOTAL(i)=((i?12:24)*GIB)", "-DFREE(i)=((i?11:3)*GIB)"), "--model", "qwen2.5-coder:7b")
	if c := r.Recommended; len(r.Models) != 1 || c.Devices[0] != "GPU-00000001" || c.FreeBytes != 11*gib || c.Verdict != capability.Fits {
		t.Errorf("choice %+v", c)
	}
}

func TestWithoutAnyDriver(t *testing.T) {
	r := ask(t, "")
	if len(r.Hardware.GPUs) == 0 && (r.Class.Name != "CPU only" || len(r.Notes) != 0 || r.Recommended == nil) {
		t.Errorf("no driver is no error: class %s, notes %q", r.Class.Name, r.Notes)
	}
}
