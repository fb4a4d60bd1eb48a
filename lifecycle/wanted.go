package lifecycle

import (
	"errors"
	"time"
)

// Wanted is what the clients ask of the keeper. The one who writes it holds the run folder's lock.
type Wanted struct {
	Version    int           `json:"version"`
	Boot       string        `json:"boot"`
	Generation int           `json:"generation"` // grows with every change that the keeper must act on
	Choices    []Spec        `json:"choices"`    // in the order of stepping down
	Env        []string      `json:"env,omitempty"`
	Force      bool          `json:"force,omitempty"` // may push out somebody's model on an adopted server
	Persist    bool          `json:"persist,omitempty"`
	PersistBy  Process       `json:"persist_by,omitzero"`  // the client whose session asked for it
	IdleLimit  time.Duration `json:"idle_limit,omitempty"` // of a persisted engine; 0: none
	Stop       bool          `json:"stop,omitempty"`       // stop whatever the leases say
	By         Process       `json:"by"`                   // who wrote it
	At         time.Time     `json:"at"`
}

// State is where the engine stands.
type State string

// The states of the contract.
const (
	Off      State = "off"
	Starting State = "starting"
	Loading  State = "loading"
	Ready    State = "ready"
	Busy     State = "busy"
	Stopping State = "stopping"
	Failed   State = "failed"
)

// Active reports whether an engine is there or coming.
func (s State) Active() bool { return s == Starting || s == Loading || s == Ready || s == Busy }

// Status is what the keeper observes. Only the keeper writes it, and whoever repairs after a killed one.
type Status struct {
	Version    int       `json:"version"`
	Boot       string    `json:"boot"`
	Generation int       `json:"generation"` // of the wanted that this answers
	State      State     `json:"state"`
	Progress   Progress  `json:"progress,omitzero"`
	Spec       *Spec     `json:"spec,omitempty"`
	Endpoint   *Endpoint `json:"endpoint,omitempty"`
	Persist    bool      `json:"persist,omitempty"`
	Since      time.Time `json:"since"` // of the state
	LoadMS     int64     `json:"load_ms,omitempty"`
	Restarts   int       `json:"restarts,omitempty"`
	LastError  string    `json:"last_error,omitempty"`
	Cause      Cause     `json:"cause,omitempty"`
	Hints      []string  `json:"hints,omitempty"`
	Warnings   []string  `json:"warnings,omitempty"` // steps down and the like
	Memory     Measured  `json:"memory,omitzero"`
	Release    *Release  `json:"release,omitempty"` // of the last stop
	Keeper     Process   `json:"keeper,omitzero"`
	KeeperAt   time.Time `json:"keeper_at,omitzero"` // when the keeper began
	Warden     Process   `json:"warden,omitzero"`
	Server     Process   `json:"server,omitzero"` // the engine's process, where it is ours
}

// Measured is what a load took.
type Measured struct {
	EstimatedBytes uint64 `json:"estimated_bytes,omitempty"`
	MeasuredBytes  uint64 `json:"measured_bytes,omitempty"` // by the probe, over all devices; 0: no probe here
	EngineBytes    uint64 `json:"engine_bytes,omitempty"`   // by the engine's own account
	GPUBytes       uint64 `json:"gpu_bytes,omitempty"`      // of EngineBytes
	EngineVersion  string `json:"engine_version,omitempty"`
}

// GPUFraction is the share on GPUs by the engine's account, 0 where it gives none.
func (m Measured) GPUFraction() float64 {
	if m.EngineBytes == 0 {
		return 0
	}
	return float64(m.GPUBytes) / float64(m.EngineBytes)
}

// Release is what a stop brought back.
type Release struct {
	Generation int      `json:"generation"`
	Process    bool     `json:"process"` // a server of ours ended
	Model      bool     `json:"model"`   // our model was unloaded
	Bytes      uint64   `json:"bytes"`
	MS         int64    `json:"ms"`
	Back       bool     `json:"back"`              // the probe saw the memory back, or there is no probe
	HeldBy     []string `json:"held_by,omitempty"` // who holds it where it did not come back
}

// Measured memory by device is compared with this much tolerance: drivers round and other programs breathe.
const memoryTolerance = 64 << 20

// MemoryBack reports whether what a load took from each device has come back: before is free memory before the
// load, loaded with the model, now after the stop.
func MemoryBack(before, loaded, now map[string]uint64) bool {
	for device, free := range before {
		full, ok := loaded[device]
		if !ok || full >= free {
			continue
		}
		taken := free - full
		need := full + taken - min(taken, taken/10+memoryTolerance)
		if now[device] < need {
			return false
		}
	}
	return true
}

// Taken is how much less is free in after than in before, over all devices.
func Taken(before, after map[string]uint64) uint64 {
	var sum uint64
	for device, free := range before {
		if left, ok := after[device]; ok && left < free {
			sum += free - left
		}
	}
	return sum
}

// ErrNotEnabled means that no engine is enabled.
var ErrNotEnabled = errors.New("no engine is enabled")

// BusyError means that another session holds the engine with another model.
type BusyError struct {
	Model   string // the running one
	Holders []Lease
}

// Hints lists what the user can do.
func (e *BusyError) Hints() []string {
	return []string{"leave model out to share the one that runs", "or wait until that session ends; localllm status shows who holds it"}
}

func (e *BusyError) Error() string {
	return "the engine is busy with " + e.Model + ", held by " + Labels(e.Holders)
}

// Labels names leases in one line.
func Labels(leases []Lease) string {
	text := ""
	for i, l := range leases {
		if i > 0 {
			text += ", "
		}
		text += l.Label()
	}
	return text
}

// Failure is the recorded failure as the error that it was.
func (s Status) Failure() error {
	reason := s.LastError
	if reason == "" {
		reason = "the engine did not start"
	}
	return &StartError{Cause: s.Cause, Reason: reason, Hints: s.Hints}
}
