//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"localllm/test/shapes"
)

// firstAnswer is the start of the server as a client sees it, and its memory then.
func firstAnswer(ctx context.Context, b *box) ([]row, error) {
	home, env, err := b.home()
	if err != nil {
		return nil, err
	}
	var took, resident []float64
	for range 50 {
		s, d, err := b.start(exec.CommandContext(ctx, b.program, "mcp"), home, env)
		if err != nil {
			return nil, err
		}
		kib, err := status("/proc/%d/status", s.cmd.Process.Pid, "VmRSS:")
		s.close()
		if err != nil {
			return nil, err
		}
		took, resident = append(took, ms(d)), append(resident, float64(kib)/1024)
	}
	return []row{
		{Name: "MCP server, from exec to its first answer", Unit: "ms", Samples: took, Limit: 25},
		{Name: "its resident memory then", Unit: "MiB", Samples: resident, Limit: 30},
	}, nil
}

func status(pattern string, pid int, name string) (int, error) {
	path := fmt.Sprintf(pattern, pid)
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(text), "\n"+name)
	var n int
	if _, err := fmt.Sscan(after, &n); err != nil {
		return 0, fmt.Errorf("%s in %s: %w", name, path, err)
	}
	return n, nil
}

// idleCost looks at the keeper and its warden while an engine is held and nothing is asked.
func idleCost(ctx context.Context, b *box) ([]row, error) {
	home, env, err := b.home()
	if err != nil {
		return nil, err
	}
	s, err := b.client(ctx, home, env)
	if err != nil {
		return nil, err
	}
	defer s.close()
	var out struct{ Started, Stopped any }
	if _, err := s.call(map[string]any{"action": "enable", "model": b.model, "engine": "llama-server", "context": 4096}, &out); err != nil {
		return nil, err
	}
	defer func() { _, _ = s.call(map[string]any{"action": "disable"}, &out) }()
	pids := processes(home, "localllm keeper")
	if len(pids) != 2 {
		return nil, fmt.Errorf("%d processes of the keeper, not itself and its warden", len(pids))
	}
	const watch = 20 * time.Second
	select { // the first garbage collection comes within seconds of the start
	case <-time.After(8 * time.Second):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	memory, before, err := idle(pids)
	if err != nil {
		return nil, err
	}
	select {
	case <-time.After(watch):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	_, after, err := idle(pids)
	if err != nil {
		return nil, err
	}
	return []row{
		{Name: "keeper and warden, memory of their own (RssAnon)", Unit: "MiB", Samples: []float64{float64(memory) / 1024}, Limit: 20},
		{Name: "their wake-ups while nothing happens", Unit: "a second", Samples: []float64{float64(after-before) / watch.Seconds()}, Note: "over 20 s, all threads"},
	}, nil
}

func idle(pids []int) (memory, wakes int, err error) {
	for _, pid := range pids {
		kib, err := status("/proc/%d/status", pid, "RssAnon:")
		if err != nil {
			return 0, 0, err
		}
		memory += kib
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
		if err != nil {
			return 0, 0, err
		}
		for _, thread := range threads {
			if n, err := status(thread+"/status", pid, "voluntary_ctxt_switches:"); err == nil {
				wakes += n
			}
		}
	}
	return memory, wakes, nil
}

// capabilityTime is the look at the machine with all engines off: with nothing installed, and with 60 models whose
// headers were never read before.
func capabilityTime(ctx context.Context, b *box) ([]row, error) {
	models := filepath.Join(b.dir, "sixty")
	if err := os.MkdirAll(models, 0o755); err != nil {
		return nil, err
	}
	all := shapes.All()
	for i := range 60 {
		if err := all[i%len(all)].Write(filepath.Join(models, fmt.Sprintf("model-%02d-Q4_K_M.gguf", i))); err != nil {
			return nil, err
		}
	}
	defer os.RemoveAll(models)
	var none, sixty, whole []float64
	for range 15 {
		own, _, err := b.look(ctx, 0)
		if err != nil {
			return nil, err
		}
		cold, total, err := b.look(ctx, 60, "LLAMA_CACHE="+models)
		if err != nil {
			return nil, err
		}
		none, sixty, whole = append(none, own), append(sixty, cold), append(whole, total)
	}
	return []row{
		{Name: "capability, engines off, beside the driver", Unit: "ms", Samples: none, Limit: 300},
		{Name: "the same with 60 models, our header cache empty", Unit: "ms", Samples: sixty, Limit: 1000, Note: "the system's own file cache is warm"},
		{Name: "the same, the whole process from exec to exit", Unit: "ms", Samples: whole},
	}, nil
}

func (b *box) look(ctx context.Context, installed int, extra ...string) (own, whole float64, err error) {
	home, env, err := b.home(extra...)
	if err != nil {
		return 0, 0, err
	}
	cmd := exec.CommandContext(ctx, b.program, "capability", "--json")
	cmd.Dir, cmd.Env = filepath.Join(home, "project"), env
	began := time.Now()
	out, err := cmd.Output()
	if err != nil {
		return 0, 0, fmt.Errorf("capability: %w", err)
	}
	whole = ms(time.Since(began))
	var r struct {
		ProbeMS struct{ Total, Driver float64 } `json:"probe_ms"`
		Models  []struct {
			Installed bool `json:"installed"`
		} `json:"models"`
		Engines []struct {
			Name   string `json:"name"`
			Models int    `json:"models"`
		} `json:"engines"`
	}
	if err := json.Unmarshal(out, &r); err != nil {
		return 0, 0, err
	}
	seen := 0
	for _, e := range r.Engines {
		seen = max(seen, e.Models)
	}
	if seen != installed {
		return 0, 0, fmt.Errorf("capability saw %d of %d models", seen, installed)
	}
	return r.ProbeMS.Total - r.ProbeMS.Driver, whole, nil
}

// millionLines is «stats --json» over a log of 400 MB.
func millionLines(ctx context.Context, b *box) ([]row, error) {
	home, env, err := b.home()
	if err != nil {
		return nil, err
	}
	const lines = 1_000_000
	path := filepath.Join(home, "project", ".claude", "workflow", "delegation-log.jsonl")
	broken, err := bigLog(path, lines)
	if err != nil {
		return nil, err
	}
	defer os.Remove(path)
	var took, peak []float64
	for range 5 {
		cmd := exec.CommandContext(ctx, b.program, "stats", "--json")
		cmd.Dir, cmd.Env = filepath.Join(home, "project"), env
		began := time.Now()
		out, err := cmd.Output()
		d := time.Since(began)
		if err != nil {
			return nil, fmt.Errorf("stats: %w", err)
		}
		var s struct {
			Delegations  int `json:"delegations"`
			SkippedLines int `json:"skipped_lines"`
		}
		if err := json.Unmarshal(out, &s); err != nil || s.Delegations != lines-broken || s.SkippedLines != broken {
			return nil, unexpected("stats", fmt.Sprintf("%d delegations, %d skipped lines", s.Delegations, s.SkippedLines), err)
		}
		took = append(took, d.Seconds())
		peak = append(peak, float64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)/1024)
	}
	return []row{
		{Name: "stats over a million lines (400 MB, one of a hundred broken)", Unit: "s", Samples: took, Limit: 2.5},
		{Name: "its peak memory", Unit: "MiB", Samples: peak, Limit: 80},
	}, nil
}

func bigLog(path string, n int) (broken int, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return 0, err
	}
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	for i := range n {
		line := fmt.Appendf(nil, `{"timestamp":"2026-%02d-%02dT15:30:%02dZ","task":"Write handler %d","task_type":"generate","score":0.%02d,"decision":"delegate","verification_passed":true,"tokens_generated":%d,"time_seconds":%d.5,"id":"%08d","status":"proven","model":"qwen3-coder:30b","attempts":1,"tokens_prompt":%d,"tokens_cached":900,"files":["a.go"],"verify_exit":0,"version":"`,
			1+i%9, 1+i%28, i%60, i, i%100, i%2000, i%200, i, 1000+i%9000)
		line = append(line, bytes.Repeat([]byte("0"), 397-len(line))...)
		if i%100 == 7 {
			broken++
		} else {
			line = append(line, `"}`...)
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return 0, err
		}
	}
	return broken, w.Flush()
}
