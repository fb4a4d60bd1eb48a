package gpu

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"localllm/capability"
	"localllm/internal/proc"
)

// smi asks nvidia-smi, where NVML can't be had.
type smi struct {
	path string // search path
	run  func(ctx context.Context, tool string, args ...string) ([]byte, error)
}

func newSMI(path string) *smi { return &smi{path: path, run: runTool} }

// guarded gives up on a tool that can't be killed, because its driver holds it in the kernel. One that can is ended
// before that.
func (s *smi) guarded() *guarded {
	return &guarded{name: "nvidia-smi", limit: 2 * HangLimit, probe: func() (capability.Probe, error) { return s.Probe(context.Background()) }}
}

// Columns to ask for; the second list is for tools that don't know all of the first.
var (
	smiColumns    = []string{"index", "uuid", "name", "memory.total", "memory.free", "driver_version", "display_active", "compute_cap", "mig.mode.current"}
	smiOldColumns = smiColumns[:7]
)

func (s *smi) Probe(ctx context.Context) (capability.Probe, error) {
	tool := s.find()
	if tool == "" {
		return capability.Probe{}, capability.ErrAbsent
	}
	ctx, cancel := context.WithTimeout(ctx, HangLimit)
	defer cancel()
	columns := smiColumns
	out, err := s.run(ctx, tool, "--query-gpu="+strings.Join(columns, ","), "--format=csv,noheader,nounits")
	if err != nil && ctx.Err() == nil {
		columns = smiOldColumns
		out, err = s.run(ctx, tool, "--query-gpu="+strings.Join(columns, ","), "--format=csv,noheader,nounits")
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return capability.Probe{}, fmt.Errorf("nvidia-smi %w within %v", ErrHung, HangLimit)
	}
	if err != nil {
		return capability.Probe{}, fmt.Errorf("nvidia-smi: %w", err)
	}
	p, divided, err := parseSMI(out, columns)
	if err != nil {
		return capability.Probe{}, err
	}
	if divided {
		list, err := s.run(ctx, tool, "-L")
		if err != nil {
			p.Notes = append(p.Notes, "nvidia-smi does not list the slices of a card in MIG mode")
		}
		p.GPUs = replaceDivided(p.GPUs, list)
		p.Notes = append(p.Notes, "nvidia-smi does not say how much memory a MIG slice has free")
	}
	if apps, err := s.run(ctx, tool, "--query-compute-apps=gpu_uuid,pid,used_memory", "--format=csv,noheader,nounits"); err == nil {
		addHolders(p.GPUs, apps)
	}
	return p, nil
}

// find looks for the tool on the path, and where Windows and WSL keep it.
func (s *smi) find() string {
	name := "nvidia-smi"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	for _, dir := range append(filepath.SplitList(s.path), "/usr/lib/wsl/lib", `C:\Windows\System32`) {
		if dir == "" {
			continue
		}
		if full := filepath.Join(dir, name); isProgram(full) {
			return full
		}
	}
	return ""
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode()&0o111 != 0)
}

// outputLimit is far more than any machine's list of GPUs.
const outputLimit = 1 << 20

func runTool(ctx context.Context, tool string, args ...string) ([]byte, error) {
	var out, errs bytes.Buffer
	exit, err := proc.Run(ctx, proc.Command{
		Path: tool, Args: args, Grace: HangLimit / 10,
		Stdout: &limited{&out, outputLimit}, Stderr: &limited{&errs, outputLimit},
	})
	if err != nil {
		return nil, err
	}
	if exit != 0 {
		// The tool writes its complaints to stdout.
		return nil, fmt.Errorf("%s (exit %d)", firstLine(out.String()+errs.String()), exit)
	}
	return out.Bytes(), nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(line)
}

// limited passes on the first bytes and swallows the rest.
type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	if _, err := l.w.Write(p[:n]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// parseSMI reads the table. divided says that a card is in MIG mode.
func parseSMI(out []byte, columns []string) (p capability.Probe, divided bool, err error) {
	r := csv.NewReader(bytes.NewReader(out))
	r.TrimLeadingSpace = true
	r.FieldsPerRecord = len(columns)
	r.LazyQuotes = true
	records, err := r.ReadAll()
	if err != nil {
		return capability.Probe{}, false, fmt.Errorf("reading nvidia-smi's answer %q: %w", firstLine(string(out)), err)
	}
	p.Source = "nvidia-smi"
	for _, record := range records {
		cell := map[string]string{}
		for i, name := range columns {
			cell[name] = known(record[i])
		}
		if !strings.HasPrefix(cell["uuid"], "GPU-") {
			return capability.Probe{}, false, fmt.Errorf("reading nvidia-smi's answer: %q is no device", firstLine(strings.Join(record, ", ")))
		}
		g := capability.GPU{
			UUID: cell["uuid"], Name: cell["name"], Vendor: "nvidia", Source: "nvidia-smi",
			MemoryKind: capability.Dedicated, ComputeCapability: cell["compute_cap"], Driver: cell["driver_version"],
			Display: cell["display_active"] == "Enabled", Processes: []capability.Process{},
		}
		g.Index, _ = strconv.Atoi(cell["index"])
		g.TotalBytes, g.FreeBytes = mebibytes(cell["memory.total"]), mebibytes(cell["memory.free"])
		if g.TotalBytes == nil && g.FreeBytes == nil && unsupported(record) {
			g.MemoryKind = capability.Unified
		}
		if cell["mig.mode.current"] == "Enabled" {
			g.MemoryKind = capability.MIG
			divided = true
		}
		p.GPUs = append(p.GPUs, g)
	}
	if len(p.GPUs) == 0 {
		return capability.Probe{}, false, capability.ErrAbsent
	}
	return p, divided, nil
}

// known empties what the tool does not know: [N/A], [Not Supported], [Unknown Error], N/A.
func known(s string) string {
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, "[") || s == "N/A" {
		return ""
	}
	return s
}

// unsupported reports whether the memory columns say that the device has no memory of its own.
func unsupported(record []string) bool {
	for _, s := range record[3:5] {
		s = strings.TrimSpace(s)
		if s != "[N/A]" && s != "[Not Supported]" && s != "N/A" {
			return false
		}
	}
	return true
}

func mebibytes(s string) *int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > 1<<32 {
		return nil
	}
	return capability.Bytes(n << 20)
}

var (
	listedCard  = regexp.MustCompile(`^GPU \d+: .*\(UUID: (GPU-[^)]+)\)`)
	listedSlice = regexp.MustCompile(`^\s+MIG (\S+)\s+Device\s+\d+: \(UUID: (MIG-[^)]+)\)`)
)

// replaceDivided puts the slices that `nvidia-smi -L` lists in place of the cards in MIG mode.
func replaceDivided(cards []capability.GPU, list []byte) []capability.GPU {
	slices := map[string][]capability.GPU{}
	card := ""
	for _, line := range strings.Split(string(list), "\n") {
		if m := listedCard.FindStringSubmatch(line); m != nil {
			card = m[1]
		}
		if m := listedSlice.FindStringSubmatch(line); m != nil {
			slices[card] = append(slices[card], capability.GPU{Name: m[1], UUID: m[2]})
		}
	}
	var out []capability.GPU
	for _, g := range cards {
		if g.MemoryKind != capability.MIG {
			out = append(out, g)
			continue
		}
		for _, s := range slices[g.UUID] {
			one := g
			one.UUID, one.ParentUUID, one.Name = s.UUID, g.UUID, g.Name+" MIG "+s.Name
			one.TotalBytes, one.FreeBytes, one.Display = nil, nil, false
			out = append(out, one)
		}
	}
	return out
}

func addHolders(gpus []capability.GPU, apps []byte) {
	for _, line := range strings.Split(string(apps), "\n") {
		cells := strings.Split(line, ",")
		if len(cells) != 3 {
			continue
		}
		pid, err := strconv.Atoi(strings.TrimSpace(cells[1]))
		if err != nil {
			continue
		}
		for i := range gpus {
			if gpus[i].UUID == strings.TrimSpace(cells[0]) {
				p := process(pid, ^uint64(0))
				p.UsedBytes = mebibytes(strings.TrimSpace(cells[2]))
				gpus[i].Processes = append(gpus[i].Processes, p)
			}
		}
	}
}
