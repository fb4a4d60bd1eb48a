package app

import (
	"context"
	"fmt"
	"os"
	"time"

	"localllm/capability"
	"localllm/internal/engine/llamaserver"
	"localllm/internal/engine/ollama"
	"localllm/internal/gguf"
	"localllm/internal/gpu"
	"localllm/internal/keeper"
	"localllm/internal/paths"
	"localllm/internal/session"
	"localllm/internal/survey"
	"localllm/lifecycle"
)

// KeeperOptions wire the keeper process: the engines, the memory probe, and where measured memory goes.
func KeeperOptions() (keeper.Options, error) {
	layout, err := paths.Find()
	if err != nil {
		return keeper.Options{}, err
	}
	return keeper.Options{
		Layout: layout,
		Engines: map[string]lifecycle.Engine{
			lifecycle.LlamaServer: llamaserver.New(llamaserver.Options{Header: header}),
			lifecycle.Ollama:      ollama.New(ollama.Options{Free: freeFor}),
		},
		FreeMemory: freeByDevice,
		Holders:    holders,
		OnLoaded:   func(s lifecycle.Spec, m lifecycle.Measured) { remember(layout, s, m) },
	}, nil
}

func header(path string) (llamaserver.Header, error) {
	h, err := gguf.ReadFile(path)
	if err != nil {
		return llamaserver.Header{}, err
	}
	shape, err := survey.Shape(h)
	if err != nil {
		return llamaserver.Header{}, err
	}
	return llamaserver.Header{Architecture: shape.Arch, Context: int(shape.ContextLimit), Rewinds: shape.PrefixCache() == capability.CacheReliable}, nil
}

func freeByDevice(ctx context.Context) (map[string]uint64, error) {
	free, err := survey.FreeMemory(ctx)
	if err != nil {
		return nil, err
	}
	m := make(map[string]uint64, len(free.Devices))
	for uuid, n := range free.Devices {
		m[uuid] = uint64(max(n, 0))
	}
	return m, nil
}

// holders names who holds GPU memory now, as far as the driver lets us see.
func holders(ctx context.Context) []string {
	var names []string
	for _, g := range gpu.Default(os.Getenv("LOCALLLM_NVML")).Find(ctx).GPUs {
		for _, p := range g.Processes {
			name := p.Name
			if name == "" {
				name = "not visible"
			}
			size := "size not known"
			if p.UsedBytes != nil {
				size = capability.GiB(*p.UsedBytes)
			}
			names = append(names, fmt.Sprintf("%s (pid %d, %s on %s)", name, p.PID, size, g.Name))
		}
	}
	return names
}

func freeFor(ctx context.Context, spec lifecycle.Spec) uint64 {
	free, err := survey.FreeMemory(ctx)
	if err != nil {
		return 0
	}
	return uint64(max(free.Total(spec.Devices...), 0))
}

// remember keeps what a load really took: the next estimate for the same is that.
func remember(layout paths.Layout, s lifecycle.Spec, m lifecycle.Measured) {
	took := m.MeasuredBytes
	if took == 0 {
		took = m.EngineBytes
	}
	if took == 0 || s.Digest == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = survey.Remember(ctx, layout.State, capability.HistoryKey{
		Digest: s.Digest, Context: s.Context, KVType: s.KVType, Slots: s.Slots, Engine: s.Engine, Version: m.EngineVersion,
	}, int64(took)) // a cache: the estimate does without
}

// TakeOver gives a server that its client has started again the lease that the dead one left.
func (a *App) TakeOver(ctx context.Context, b session.Binding) {
	if _, err := a.client.TakeOver(ctx, b); err != nil {
		a.warn(err.Error())
	}
}

// SessionEnded lets go of what a client's session left, for the client's own hook.
func (a *App) SessionEnded(ctx context.Context, b session.Binding) (int, error) {
	return a.client.SessionEnded(ctx, b)
}

// Repair puts right what a crash left: the engine's processes, and files of a delegation in the middle.
func (a *App) Repair(project string) error {
	if err := keeper.Repair(a.layout); err != nil {
		return err
	}
	if _, err := a.repairTree(project); err != nil {
		return fmt.Errorf("repairing %s: %w", project, err)
	}
	return nil
}
