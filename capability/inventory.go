package capability

// The engines' names.
const (
	Ollama      = "ollama"
	LlamaServer = "llama-server"
)

// EngineState says how an engine was found.
type EngineState string

// The states of an engine.
const (
	Running     EngineState = "running"
	Installed   EngineState = "installed"
	Unreachable EngineState = "unreachable" // something is configured, and it does not answer
	Missing     EngineState = "missing"
)

// EngineInfo is one engine as it was found.
type EngineInfo struct {
	Name    string      `json:"name"`
	State   EngineState `json:"state"`
	Version string      `json:"version"`
	Path    string      `json:"path"`
	URL     string      `json:"url"`
	Models  int         `json:"models"` // how many it can run without a download
	Detail  string      `json:"detail,omitempty"`
}

// Usable reports whether the engine can serve a model now or after a start.
func (e EngineInfo) Usable() bool { return e.State == Running || e.State == Installed }

// Model is one model that could be run: found on this machine, or known from the table.
type Model struct {
	Ref       string // as the user says it: an Ollama tag, a path, hf:owner/repo:quant
	Installed bool
	Engines   []string // those that can run it as it lies there
	Path      string   // the GGUF file (its first shard) for llama-server; empty where there is none
	Digest    string   // identifies the weights: Ollama's digest, or path, size and time of a file
	SizeBytes int64    // on disk, or to download
	Shape     Shape
	Source    Source // where the shape comes from
	Row       *Row   // its row of the table, if it has one
	// What a running engine holds of it now, in bytes: it would not need that room again.
	LoadedGPU, LoadedHost int64

	Unfit   string // why it can't write text at all (an embedding model, a projector), else empty
	Problem string // why its header could not be read, else empty
}

// Source is where a figure comes from, in the order of trust.
type Source string

// The sources of an estimate.
const (
	Measured   Source = "measured"
	FromHeader Source = "header"
	FromTable  Source = "table"
)

// HistoryKey identifies one way of running one model. All of it changes what the model takes.
type HistoryKey struct {
	Digest  string `json:"digest"`
	Context int    `json:"context"` // of each slot
	KVType  string `json:"kv_type"`
	Slots   int    `json:"slots"`
	Engine  string `json:"engine"`  // name
	Version string `json:"version"` // the engine's
}

// History is what models really took on this machine, in bytes over all devices.
type History map[HistoryKey]int64

// Survey is everything that Pick looks at.
type Survey struct {
	Machine Machine
	Engines []EngineInfo
	Models  []Model // installed ones
	History History
}

// Engine finds an engine by name.
func (s Survey) Engine(name string) (EngineInfo, bool) {
	for _, e := range s.Engines {
		if e.Name == name {
			return e, true
		}
	}
	return EngineInfo{}, false
}
