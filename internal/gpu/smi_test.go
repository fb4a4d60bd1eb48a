package gpu

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"localllm/capability"
	"localllm/test/harness"
)

// tool writes a program that answers as nvidia-smi did when its output was recorded.
func tool(t *testing.T, script string) *smi {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return newSMI(dir)
}

// answers is a script for the three questions.
func answers(gpus, apps, list string) string {
	return "case \"$1\" in\n--query-gpu=*) cat <<'E'\n" + gpus + "\nE\n;;\n--query-compute-apps=*) cat <<'E'\n" + apps +
		"\nE\n;;\n-L) cat <<'E'\n" + list + "\nE\n;;\nesac\n"
}

func TestToolAnswers(t *testing.T) {
	tests := []struct {
		name   string
		script string
		check  func(*testing.T, capability.Probe)
	}{
		{
			"one card with a holder",
			answers("0, GPU-aaa, NVIDIA GeForce RTX 4090, 24564, 21910, 550.54.14, Enabled, 8.9, [N/A]", "GPU-aaa, 4000001, 1024\nGPU-aaa, 4000002, [N/A]", ""),
			func(t *testing.T, p capability.Probe) {
				g := p.GPUs[0]
				if *g.TotalBytes != 24564<<20 || *g.FreeBytes != 21910<<20 || !g.Display || g.ComputeCapability != "8.9" || g.Driver != "550.54.14" {
					t.Errorf("device %+v", g)
				}
				if len(g.Processes) != 2 || *g.Processes[0].UsedBytes != 1024<<20 || g.Processes[1].UsedBytes != nil {
					t.Errorf("holders %+v", g.Processes)
				}
			},
		},
		{
			"unified memory is not supported",
			answers("0, GPU-bbb, NVIDIA GB10, [N/A], [N/A], 580.95.05, Disabled, 12.1, [N/A]", "", ""),
			func(t *testing.T, p capability.Probe) {
				if g := p.GPUs[0]; g.MemoryKind != capability.Unified || g.TotalBytes != nil || g.FreeBytes != nil {
					t.Errorf("device %+v", g)
				}
			},
		},
		{
			"a column that the device does not support",
			answers("0, GPU-ccc, Tesla K80, 11441, 11438, 470.82, [Not Supported], [Not Supported], [Not Supported]", "", ""),
			func(t *testing.T, p capability.Probe) {
				if g := p.GPUs[0]; g.ComputeCapability != "" || g.Display || *g.FreeBytes != 11438<<20 || g.MemoryKind != capability.Dedicated {
					t.Errorf("device %+v", g)
				}
			},
		},
		{
			"memory that can't be read is unknown and not unified",
			answers("0, GPU-ddd, NVIDIA A10, [Unknown Error], [Unknown Error], 535.1, Disabled, 8.6, [N/A]", "", ""),
			func(t *testing.T, p capability.Probe) {
				if g := p.GPUs[0]; g.MemoryKind != capability.Dedicated || g.FreeBytes != nil {
					t.Errorf("device %+v", g)
				}
			},
		},
		{
			"several cards",
			answers("0, GPU-1, A, 24576, 1000, 1, Disabled, 8.0, [N/A]\n1, GPU-2, \"B, with a comma\", 12288, 12000, 1, Disabled, 7.5, [N/A]", "GPU-2, 7, 5", ""),
			func(t *testing.T, p capability.Probe) {
				if len(p.GPUs) != 2 || p.GPUs[1].Name != "B, with a comma" || p.GPUs[1].Index != 1 || len(p.GPUs[0].Processes) != 0 || len(p.GPUs[1].Processes) != 1 {
					t.Errorf("devices %+v", p.GPUs)
				}
			},
		},
		{
			"a divided card",
			answers("0, GPU-eee, NVIDIA A100-SXM4-40GB, 40960, 40000, 535.1, Disabled, 8.0, Enabled\n1, GPU-fff, NVIDIA A30, 24576, 24000, 535.1, Disabled, 8.0, Disabled", "",
				"GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-eee)\n  MIG 3g.20gb     Device  0: (UUID: MIG-1)\n  MIG 2g.10gb     Device  1: (UUID: MIG-2)\nGPU 1: NVIDIA A30 (UUID: GPU-fff)"),
			func(t *testing.T, p capability.Probe) {
				if len(p.GPUs) != 3 {
					t.Fatalf("devices %+v", p.GPUs)
				}
				s := p.GPUs[1]
				if s.UUID != "MIG-2" || s.ParentUUID != "GPU-eee" || s.MemoryKind != capability.MIG || s.FreeBytes != nil || !strings.HasSuffix(s.Name, "MIG 2g.10gb") {
					t.Errorf("the card's figures are not its slices': %+v", s)
				}
			},
		},
		{
			"a tool that does not know the newer columns",
			"case \"$1\" in *compute_cap*) echo 'Field \"compute_cap\" is not a valid field to query.'; exit 2;;\n--query-gpu=*) echo '0, GPU-old, Quadro, 8192, 8000, 390.1, Enabled';; esac\n",
			func(t *testing.T, p capability.Probe) {
				if *p.GPUs[0].TotalBytes != 8192<<20 || !p.GPUs[0].Display {
					t.Errorf("device %+v", p.GPUs[0])
				}
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := tool(t, tt.script).Probe(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			tt.check(t, p)
		})
	}
}

func TestToolInTrouble(t *testing.T) {
	tests := []struct{ name, script, want string }{
		{"no driver", "echo \"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\"; exit 9", "couldn't communicate with the NVIDIA driver"},
		{"garbage", "echo '\x01\x02 what, is this'", "reading nvidia-smi's answer"},
		{"the right number of columns and no device", "echo 'a,b,c,d,e,f,g,h,i'", "is no device"},
		{"another number of columns", "echo 'Mon Jan  5 12:00:00'", "reading nvidia-smi's answer"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tool(t, tt.script).Probe(context.Background())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
	if _, err := newSMI(t.TempDir()).Probe(context.Background()); !errors.Is(err, capability.ErrAbsent) {
		t.Errorf("without the tool: %v", err)
	}
	if _, err := tool(t, "true").Probe(context.Background()); !errors.Is(err, capability.ErrAbsent) {
		t.Errorf("with no card: %v", err)
	}
}

func TestAToolThatHangsIsGivenTwoSeconds(t *testing.T) {
	begin := time.Now()
	found := Finder{Nvidia: []capability.Prober{tool(t, "exec sleep 60")}}.Find(context.Background())
	if len(found.Notes) != 1 || !strings.Contains(found.Notes[0], "did not answer within 2s") {
		t.Errorf("found %+v", found)
	}
	if took := time.Since(begin); took > 15*time.Second {
		t.Errorf("gave up after %v", took)
	}
}

func TestAToolThatCanNotBeKilledIsGivenUp(t *testing.T) {
	release := make(chan struct{})
	s := tool(t, "")
	s.run = func(context.Context, string, ...string) ([]byte, error) {
		<-release
		return nil, errors.New("released")
	}
	g := s.guarded()
	g.limit = time.Millisecond
	if _, err := g.Probe(context.Background()); !errors.Is(err, ErrHung) || !strings.Contains(err.Error(), "nvidia-smi did not answer") {
		t.Errorf("%v", err)
	}
	close(release)
	harness.Until(t, "the call's late end", 10*time.Second, func() bool { return !g.stuck.Load() })
}

func FuzzParseSMI(f *testing.F) {
	f.Add("0, GPU-aaa, NVIDIA GeForce RTX 4090, 24564, 21910, 550.54.14, Enabled, 8.9, [N/A]", "GPU 0: A (UUID: GPU-aaa)\n  MIG 3g.20gb     Device  0: (UUID: MIG-1)", "GPU-aaa, 1, 2")
	f.Add("\"", "", ",,")
	f.Fuzz(func(t *testing.T, gpus, list, apps string) {
		p, _, err := parseSMI([]byte(gpus), smiColumns)
		if err != nil {
			return
		}
		addHolders(p.GPUs, []byte(apps))
		for _, g := range replaceDivided(p.GPUs, []byte(list)) {
			if g.FreeBytes != nil && *g.FreeBytes < 0 {
				t.Errorf("negative memory in %+v", g)
			}
		}
	})
}

func TestADriverThatHangsIsNotAskedAgain(t *testing.T) {
	release := make(chan struct{})
	calls := 0
	g := &guarded{name: "the driver", limit: time.Millisecond, probe: func() (capability.Probe, error) {
		calls++
		<-release
		return capability.Probe{}, nil
	}}
	if _, err := g.Probe(context.Background()); !errors.Is(err, ErrHung) {
		t.Fatalf("first: %v", err)
	}
	if _, err := g.Probe(context.Background()); !errors.Is(err, ErrHung) || !strings.Contains(err.Error(), "earlier call") {
		t.Fatalf("second: %v", err)
	}
	close(release)
	harness.Until(t, "the driver's late answer", 10*time.Second, func() bool { return !g.stuck.Load() })
	if calls != 1 {
		t.Errorf("the driver was called %d times", calls)
	}
}

func TestACancelledProbeReturnsAtOnce(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	g := &guarded{name: "the driver", limit: time.Hour, probe: func() (capability.Probe, error) {
		<-release
		return capability.Probe{}, nil
	}}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := g.Probe(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
