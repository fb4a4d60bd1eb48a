package capability

// Need is an estimate of the memory that one way of running a model takes, in bytes over all devices.
type Need struct {
	WeightsBytes int64 `json:"weights_bytes"`
	KVBytes      int64 `json:"kv_bytes"`
	StateBytes   int64 `json:"state_bytes"`   // recurrent state
	ComputeBytes int64 `json:"compute_bytes"` // scratch space for one batch
	RuntimeBytes int64 `json:"runtime_bytes"` // the driver's own context on each device
}

// Total is the sum of all parts.
func (n Need) Total() int64 {
	return n.WeightsBytes + n.KVBytes + n.StateBytes + n.ComputeBytes + n.RuntimeBytes
}

// Setting is how a model is to be run.
type Setting struct {
	Context int    // of each slot
	KVType  string // of keys and of values
	Slots   int    // 0 counts as 1
	UBatch  int    // tokens computed at once; 0: the engines' default
	Devices int    // GPUs that it is split over; 0: the processor alone
}

const (
	defaultUBatch = 512
	contextStep   = 256 // engines round the context up to this
	// runtimeBytes is what a CUDA or ROCm context takes on a device before any tensor: 250 to 500 MiB were seen.
	runtimeBytes = 400 << 20
)

// Estimate is the memory that a model of this shape takes when run like this.
func (s Shape) Estimate(set Setting) Need {
	slots := int64(max(set.Slots, 1))
	ubatch := int64(set.UBatch)
	if ubatch <= 0 {
		ubatch = defaultUBatch
	}
	kind, ok := kvTypes[set.KVType]
	if !ok {
		kind = kvTypes[DefaultKVType]
	}
	cells := roundUp(int64(set.Context), contextStep)
	window := min(cells, roundUp(s.Window+ubatch, contextStep))

	need := Need{WeightsBytes: s.Weights}
	for _, layer := range s.Layers {
		n := cells
		if layer.Sliding && s.Window > 0 {
			n = window
		}
		need.KVBytes = sum(need.KVBytes, times(slots*n, kind.bytes(layer.Key)+kind.bytes(layer.Value)))
		need.StateBytes = sum(need.StateBytes, times(slots, layer.State))
	}
	devices := int64(max(set.Devices, 1))
	need.ComputeBytes = times(devices, s.compute(cells, ubatch))
	if set.Devices > 0 {
		need.RuntimeBytes = devices * runtimeBytes
	}
	return need
}

// compute is the scratch space of one batch, as llama.cpp lays it out with flash attention: five copies of the layers'
// input and output, the attention mask in half precision, and the larger of the logits and the widest feed-forward
// step, which are never needed at the same time. Slots share it: each has a cache of its own. It was measured on the
// processor's back end; a GPU's differs a little.
func (s Shape) compute(cells, ubatch int64) int64 {
	const single, half = 4, 2 // bytes of a float
	wide := max(s.Vocabulary, 3*s.FeedForward, 3*s.ExpertsUsed*s.expertWidth())
	return ubatch * (single*(wide+5*s.Embedding) + half*cells)
}

// expertWidth is the width of one expert; older files give it as that of a dense layer.
func (s Shape) expertWidth() int64 {
	if s.ExpertWidth > 0 {
		return s.ExpertWidth
	}
	return s.FeedForward
}

// largestLayer is the most that one layer takes; a split over devices can waste up to that much on each.
func (n Need) largestLayer(s Shape) int64 {
	if len(s.Layers) == 0 {
		return 0
	}
	return (n.WeightsBytes + n.KVBytes) / int64(len(s.Layers))
}

// mostBytes is beyond any machine: figures of a hostile header stop there, so that nothing overflows.
const mostBytes = int64(1) << 56

func sum(a, b int64) int64 { return min(mostBytes, a+b) }

// times multiplies two figures that are not negative.
func times(a, b int64) int64 {
	if b > 0 && a > mostBytes/b {
		return mostBytes
	}
	return a * b
}
