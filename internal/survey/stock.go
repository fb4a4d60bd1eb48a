package survey

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/ollama/ollama/api"

	"localllm/capability"
	"localllm/internal/gguf"
)

// stock is what there is to run models with, and which.
type stock struct {
	engines []capability.EngineInfo
	models  []capability.Model
	notes   []string
}

func (s *Surveyor) stock(ctx context.Context, o Options) stock {
	c := openCache(s.State)
	var (
		ollama ollamaFound
		server capability.EngineInfo
		local  []installed
		files  []string
		group  sync.WaitGroup
	)
	group.Go(func() { ollama, server = s.engines(ctx, c) })
	group.Go(func() {
		for _, store := range s.stores() {
			local = append(local, manifests(store)...)
		}
		seen := map[string]bool{}
		for _, m := range local {
			if real, err := filepath.EvalSymlinks(m.blob); err == nil {
				seen[real] = true
			}
		}
		files = ggufFiles(s.modelDirs(o.ExtraDirs), seen)
		if path := namedFile(o.Model); path != "" && !contains(files, seen, path) {
			files = append(files, path)
		}
	})
	group.Wait()

	var out stock
	models := s.ollamaModels(ctx, c, ollama, local)
	ollama.info.Models = len(models)
	found := readAll(c, files)
	for i, path := range files {
		models = append(models, fileModel(path, found[i]))
		server.Models++
	}
	for _, m := range models[:ollama.info.Models] {
		if m.Path != "" {
			server.Models++
		}
	}
	out.models = unique(models)
	out.engines = []capability.EngineInfo{ollama.info, server}
	if !ollama.local && ollama.info.State == capability.Running {
		out.notes = append(out.notes, fmt.Sprintf("Ollama at %s is another machine: its memory is not known here", ollama.info.URL))
	}
	if err := c.save(); err != nil {
		out.notes = append(out.notes, "what was read of the models could not be kept: "+err.Error())
	}
	return out
}

// namedFile is the file that a reference names, if it names one that is there.
func namedFile(model string) string {
	ref, err := capability.ParseRef(model)
	if err != nil || ref.Kind != capability.FileRef {
		return ""
	}
	path, err := filepath.Abs(ref.Path)
	if err != nil {
		return ""
	}
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

func contains(files []string, seen map[string]bool, path string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil || !seen[real] {
		return false
	}
	return slices.Contains(files, path)
}

// unique gives every model a name of its own: of two files with one reference the second goes by its path.
func unique(models []capability.Model) []capability.Model {
	names := map[string]bool{}
	for i, m := range models {
		if names[m.Ref] && m.Path != "" {
			models[i].Ref = m.Path
		}
		names[models[i].Ref] = true
	}
	return models
}

// ollamaModels joins what the server lists with what its store says. A store belongs to this machine's Ollama only.
func (s *Surveyor) ollamaModels(ctx context.Context, c *cache, f ollamaFound, local []installed) []capability.Model {
	byName := map[string]installed{}
	for _, m := range local {
		if _, ok := byName[m.name]; !ok {
			byName[m.name] = m
		}
	}
	if f.listed == nil {
		if f.info.State == capability.Running || !f.local {
			return nil
		}
		var models []capability.Model
		facts := readAll(c, blobs(local))
		for i, m := range local {
			models = append(models, m.model(facts[i]))
		}
		return unique(models)
	}
	models := make([]capability.Model, len(f.listed))
	var ask []string
	known := make([]installed, len(f.listed))
	for i, listed := range f.listed {
		if f.local {
			known[i] = byName[listed.Name]
		}
	}
	facts := readAll(c, blobs(known))
	for i, listed := range f.listed {
		if models[i] = known[i].model(facts[i]); known[i].blob == "" || models[i].Problem != "" {
			models[i] = listedModel(listed)
			if models[i].Unfit == "" {
				ask = append(ask, listed.Name)
			}
		}
	}
	shapes := f.shapes(ctx, ask)
	for i, m := range models {
		if shape, ok := shapes[m.Ref]; ok && m.Shape.Arch == "" {
			shape.Weights = m.SizeBytes
			models[i].Shape, models[i].Source = shape, capability.FromHeader
		}
		if f.local {
			models[i].LoadedGPU, models[i].LoadedHost = f.loaded[m.Ref].gpu, f.loaded[m.Ref].host
		}
	}
	return models
}

func blobs(list []installed) []string {
	paths := make([]string, len(list))
	for i, m := range list {
		paths[i] = m.blob
	}
	return paths
}

// model is a model of Ollama's store; llama-server can run its blob in place.
func (m installed) model(h headerFacts) capability.Model {
	out := capability.Model{
		Ref: m.name, Installed: true, Engines: []string{capability.Ollama}, Digest: m.digest, SizeBytes: m.size,
		Shape: h.Shape, Source: capability.FromHeader, Unfit: h.Unfit, Problem: h.Problem,
	}
	out.Shape.Weights += m.projector + m.adapters
	switch {
	case m.blob == "":
		out.Unfit = "it does not run on this machine: its store holds no weights"
	case h.Problem == "" && h.Unfit == "":
		out.Path = m.blob
		out.Engines = append(out.Engines, capability.LlamaServer)
	}
	return out
}

// listedModel is a model that the server lists and whose file can't be read from here.
func listedModel(l api.ListModelResponse) capability.Model {
	m := capability.Model{
		Ref: l.Name, Installed: true, Engines: []string{capability.Ollama}, Digest: l.Digest, SizeBytes: l.Size,
		Source: capability.FromTable, Shape: capability.Shape{
			Name: l.Name, Weights: l.Size, Notes: []string{"its header could not be read: counted without its cache"},
		},
	}
	if l.RemoteHost != "" {
		m.Unfit = "it runs at " + l.RemoteHost + ", not on this machine"
	}
	for _, c := range l.Capabilities {
		if c == "embedding" {
			m.Unfit = "an embedding model: it writes no text"
		}
	}
	return m
}

func fileModel(path string, h headerFacts) capability.Model {
	m := capability.Model{
		Ref: fileRef(path), Installed: true, Engines: []string{capability.LlamaServer}, Path: path, SizeBytes: h.Bytes,
		Shape: h.Shape, Source: capability.FromHeader, Unfit: h.Unfit, Problem: h.Problem,
	}
	if info, err := os.Stat(path); err == nil {
		s := stampOf(info)
		m.Digest = fmt.Sprintf("file:%s:%d:%d", path, s.Size, s.Modified)
	}
	return m
}

// readAll reads headers, several at once: most of the time goes to waiting for the disk.
func readAll(c *cache, files []string) []headerFacts {
	out := make([]headerFacts, len(files))
	var group sync.WaitGroup
	turn := make(chan struct{}, max(4, runtime.NumCPU()))
	for i, path := range files {
		if path == "" {
			continue
		}
		group.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			out[i] = readHeader(c, path)
		})
	}
	group.Wait()
	return out
}

func readHeader(c *cache, path string) headerFacts {
	info, err := os.Stat(path)
	if err != nil {
		return headerFacts{Problem: "it can't be read: " + err.Error()}
	}
	if facts, ok := c.header(path, info); ok && present(facts.Files) {
		return facts
	}
	facts := factsOf(path)
	c.setHeader(path, info, facts)
	return facts
}

// present reports whether the other shards are still there.
func present(files []string) bool {
	for _, f := range files {
		if _, err := os.Stat(f); err != nil {
			return false
		}
	}
	return true
}

func factsOf(path string) headerFacts {
	h, err := gguf.ReadFile(path)
	if err != nil {
		return headerFacts{Problem: strings.TrimPrefix(err.Error(), "reading ")}
	}
	facts := headerFacts{Bytes: h.FileBytes, Unfit: capability.UnfitFor(h)}
	if len(h.Shards) > 1 {
		facts.Files = h.Shards
	}
	if facts.Unfit != "" {
		return facts
	}
	if facts.Shape, err = Shape(h); err != nil {
		facts.Problem = err.Error()
		return facts
	}
	if h.Missing > 0 {
		facts.Problem = fmt.Sprintf("the file is cut off: %s of %s are missing", capability.GB(h.Missing), capability.GB(h.FileBytes+h.Missing))
	}
	return facts
}
