// Package survey finds out what this machine has: hardware, engines, models and what they took before. It starts no
// engine, loads nothing and decides nothing: package capability does.
package survey

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"localllm/capability"
	"localllm/internal/gpu"
	"localllm/internal/hint"
	"localllm/internal/paths"
)

// Options is what the user asked for. A zero field leaves it open.
type Options struct {
	Model   string
	Engine  string
	Context int    // tokens of each slot
	KVType  string // f16, q8_0, …
	Slots   int
	Models  string // capability.ModelsCurrent or capability.ModelsDocumented

	ExtraDirs []string           // more folders with GGUF files, from the configuration
	Catalog   capability.Catalog // the user's rows, put over the table
}

// Surveyor finds things out. The zero fields of one made by New are this process's own surroundings.
type Surveyor struct {
	Env    func(string) string
	Home   string // the user's
	State  string // folder of caches and of the history
	Finder GPUFinder
}

// GPUFinder asks all sources about GPUs.
type GPUFinder interface {
	Find(ctx context.Context) gpu.Found
}

// New is a surveyor of this machine, for this user.
func New() (*Surveyor, error) {
	layout, err := paths.Find()
	if err != nil {
		return nil, err
	}
	// Other programs keep their models under $HOME, wherever that is; our own state does not follow it.
	home, err := os.UserHomeDir()
	if err != nil {
		if home, err = paths.UserHome(); err != nil {
			return nil, err
		}
	}
	return &Surveyor{Env: os.Getenv, Home: home, State: layout.State, Finder: gpu.Default(os.Getenv("LOCALLLM_NVML"))}, nil
}

// Run surveys this machine and picks a model for it.
func Run(ctx context.Context, o Options) (capability.Report, error) {
	s, err := New()
	if err != nil {
		return capability.Report{}, err
	}
	return s.Run(ctx, o)
}

// FreeMemory says what is free on this machine now.
func FreeMemory(ctx context.Context) (capability.FreeMemory, error) {
	s, err := New()
	if err != nil {
		return capability.FreeMemory{}, err
	}
	return s.FreeMemory(ctx)
}

// Run surveys and picks. Everything is asked at the same time: the answer takes as long as the slowest source.
func (s *Surveyor) Run(ctx context.Context, o Options) (capability.Report, error) {
	begin := time.Now()
	request, err := o.request()
	if err != nil {
		return capability.Report{}, err
	}
	var (
		found   gpu.Found
		machine capability.Machine
		stock   stock
		notes   []string
		group   sync.WaitGroup
	)
	group.Go(func() { found = s.Finder.Find(ctx) })
	group.Go(func() { machine, notes = hardware(ctx) })
	group.Go(func() { stock = s.stock(ctx, o) })
	group.Wait()
	if err := ctx.Err(); err != nil {
		return capability.Report{}, fmt.Errorf("surveying the machine: %w", err)
	}
	machine.GPUs = found.GPUs
	if machine.GPUs == nil {
		machine.GPUs = []capability.GPU{}
	}
	view := capability.Survey{Machine: machine, Engines: stock.engines, Models: stock.models, History: s.history()}
	decision := capability.Pick(view, capability.DefaultCatalog().Override(o.Catalog), request)
	report := reportOf(view, decision)
	report.Notes = append(append(append(report.Notes, notes...), found.Notes...), stock.notes...)
	report.ProbeMS = capability.ProbeMS{Total: milliseconds(time.Since(begin)), Driver: milliseconds(found.Elapsed)}
	return report, nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// request checks what was asked for.
func (o Options) request() (capability.Request, error) {
	fail := func(err error) (capability.Request, error) { return capability.Request{}, err }
	if o.Model != "" {
		if _, err := capability.ParseRef(o.Model); err != nil {
			return fail(hint.Add(err, "localllm capability lists what is installed"))
		}
	}
	kv := o.KVType
	if kv != "" {
		var err error
		if kv, err = capability.ParseKVType(kv); err != nil {
			return fail(err)
		}
	}
	switch o.Engine {
	case "", capability.Ollama, capability.LlamaServer:
	default:
		return fail(fmt.Errorf("engine %q: want %s or %s", o.Engine, capability.Ollama, capability.LlamaServer))
	}
	switch o.Models {
	case "", capability.ModelsCurrent, capability.ModelsDocumented:
	default:
		return fail(fmt.Errorf("models %q: want %s or %s", o.Models, capability.ModelsCurrent, capability.ModelsDocumented))
	}
	model := o.Model
	if path := namedFile(model); path != "" {
		model = path // what is found is called by its whole path
	}
	const mostTokens, mostSlots = 1 << 24, 256
	if o.Context < 0 || o.Context > mostTokens {
		return fail(fmt.Errorf("context %d: want at most %d tokens", o.Context, mostTokens))
	}
	if o.Slots < 0 || o.Slots > mostSlots {
		return fail(fmt.Errorf("slots %d: want 1 to %d", o.Slots, mostSlots))
	}
	return capability.Request{
		Model: model, Engine: o.Engine, Context: o.Context, KVType: kv, Slots: o.Slots, Models: o.Models,
	}, nil
}

func reportOf(view capability.Survey, d capability.Decision) capability.Report {
	return capability.Report{
		CanEnable: d.CanEnable, Reasons: orEmpty(d.Reasons), Hints: orEmpty(d.Hints), Hardware: view.Machine,
		Engines: orEmpty(view.Engines), Models: orEmpty(d.Models), Recommended: d.Choice, Class: d.Class,
		Agents: []capability.Agent{}, Rejected: orEmpty(d.Rejected), Notes: []string{}, Fallbacks: d.Fallbacks,
	}
}

// orEmpty makes an empty list of none, for JSON.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// FreeMemory asks the drivers and the system.
func (s *Surveyor) FreeMemory(ctx context.Context) (capability.FreeMemory, error) {
	var (
		found   gpu.Found
		machine capability.Machine
		group   sync.WaitGroup
	)
	group.Go(func() { found = s.Finder.Find(ctx) })
	group.Go(func() { machine.Memory, _ = mainMemory(ctx) })
	group.Wait()
	if err := ctx.Err(); err != nil {
		return capability.FreeMemory{}, fmt.Errorf("asking for free memory: %w", err)
	}
	out := capability.FreeMemory{Devices: map[string]int64{}}
	if machine.Memory.AvailableBytes != nil {
		out.Host = *machine.Memory.AvailableBytes
	}
	for _, g := range found.GPUs {
		switch {
		case g.FreeBytes != nil:
			out.Devices[deviceKey(g)] = *g.FreeBytes
		case g.MemoryKind == capability.Unified:
			out.Devices[deviceKey(g)] = out.Host // its memory is the machine's
		}
	}
	if len(found.GPUs) == 0 && len(found.Notes) > 0 {
		return out, fmt.Errorf("asking for free memory: %s", found.Notes[0])
	}
	return out, nil
}

// deviceKey names a device; some have no UUID.
func deviceKey(g capability.GPU) string {
	if g.UUID != "" {
		return g.UUID
	}
	return fmt.Sprintf("%s-%d", g.Vendor, g.Index)
}

// windows is whether this is Windows, where programs carry an ending.
const windows = runtime.GOOS == "windows"
