package capability

import "strings"

// Report is the answer of the capability action.
type Report struct {
	CanEnable   bool          `json:"can_enable"`
	Reasons     []string      `json:"reasons"`
	Hints       []string      `json:"hints"`
	Hardware    Machine       `json:"hardware"`
	Engines     []EngineInfo  `json:"engines"`
	Models      []ModelReport `json:"models"`
	Recommended *Choice       `json:"recommended"`
	Class       VRAMClass     `json:"vram_class"`
	Agents      []Agent       `json:"agents"`
	ProbeMS     ProbeMS       `json:"probe_ms"`
	Rejected    []Rejection   `json:"rejected"`
	Notes       []string      `json:"notes"` // what could not be found out
	Fallbacks   []Choice      `json:"-"`     // what to step down to when the recommendation does not load, in order
}

// ModelReport is one model with what it needs here.
type ModelReport struct {
	Ref          string   `json:"ref"`
	Engine       string   `json:"engine"`
	Installed    bool     `json:"installed"`
	SizeBytes    int64    `json:"size_bytes"`
	NeedBytes    int64    `json:"need_bytes"`
	Need         Need     `json:"need"`
	Context      int      `json:"context"`
	KVType       string   `json:"kv_type"`
	Verdict      Verdict  `json:"verdict"`
	Source       Source   `json:"source"`
	Path         string   `json:"path,omitempty"`
	ContextLimit int      `json:"context_limit,omitempty"`
	Notes        []string `json:"notes,omitempty"`
}

// Choice is one way to run one model: what enable starts.
type Choice struct {
	Model        string   `json:"model"`
	Engine       string   `json:"engine"`
	Context      int      `json:"context"` // of each slot
	KVType       string   `json:"kv_type"`
	NeedBytes    int64    `json:"need_bytes"`
	FreeBytes    int64    `json:"free_bytes"` // on the chosen devices, before the reserve is taken off
	ReserveBytes int64    `json:"reserve_bytes"`
	Verdict      Verdict  `json:"verdict"`
	Installed    bool     `json:"installed"`
	Why          []string `json:"why"`

	Need         Need     `json:"need"`
	Source       Source   `json:"source"`
	Slots        int      `json:"slots"`
	Devices      []string `json:"devices"`        // GPU UUIDs for CUDA_VISIBLE_DEVICES; empty: the processor
	Path         string   `json:"path,omitempty"` // the GGUF file for llama-server
	SizeBytes    int64    `json:"size_bytes"`     // on disk, or to download
	Digest       string   `json:"digest,omitempty"`
	ContextLimit int      `json:"context_limit,omitempty"`
	Thinking     bool     `json:"thinking"`
	PrefixCache  string   `json:"prefix_cache"` // reliable, checkpoints or unknown
	Arch         string   `json:"arch,omitempty"`
}

// Key is where the measured memory of this choice is kept; version is the engine's.
func (c Choice) Key(version string) HistoryKey {
	return HistoryKey{Digest: c.Digest, Context: c.Context, KVType: c.KVType, Slots: c.Slots, Engine: c.Engine, Version: version}
}

// Rejection says why a model was not picked.
type Rejection struct {
	Model  string `json:"model"`
	Reason string `json:"reason"`
}

// String names the model once: some reasons begin with it.
func (r Rejection) String() string {
	if strings.HasPrefix(r.Reason, r.Model) {
		return r.Reason
	}
	return r.Model + ": " + r.Reason
}

// VRAMClass is the row of the tier table that this machine falls into.
type VRAMClass struct {
	Name            string `json:"name"`
	DocumentedModel string `json:"documented_model"`
	CurrentModel    string `json:"current_model"`
}

// Agent is one agent definition that delegations can name. Others fill these in.
type Agent struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Model       string `json:"model"`
	Source      string `json:"source"`
}

// ProbeMS is what the survey took, in milliseconds.
type ProbeMS struct {
	Total  float64 `json:"total"`
	Driver float64 `json:"driver"` // the part that the GPU driver or its tool took
}
