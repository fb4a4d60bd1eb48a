package capability

// Shape is all that decides how much memory a model takes. It is read from a header, or filled from the table.
type Shape struct {
	Arch    string
	Name    string
	Weights int64 // bytes of all tensors
	Layers  []Layer

	Embedding    int64
	Vocabulary   int64
	FeedForward  int64 // width of the widest dense layer
	Experts      int64
	ExpertsUsed  int64
	ExpertWidth  int64
	Heads        int64
	HeadSize     int64 // of keys; a quantized cache needs a multiple of 32
	ContextLimit int64

	Window int64    // cells of a sliding window; 0: none
	Known  bool     // the rules of this architecture are known
	Notes  []string // what was assumed, in words
}

// maxLayers bounds what a hostile header can ask for; the largest published model has 126 layers.
const maxLayers = 4096

// Layer is what one layer keeps for the tokens that it has seen.
type Layer struct {
	Key     int64 // elements of a token in the key cache
	Value   int64 // elements of a token in the value cache
	Sliding bool  // keeps only the window
	State   int64 // bytes of constant state for one sequence, instead of or beside the cache
}

// PrefixCache says how far a prefix cache of this shape can be rewound. A plain cache can be cut anywhere; a sliding
// window or a recurrent state only where the engine made a checkpoint.
func (s Shape) PrefixCache() string {
	if len(s.Layers) == 0 {
		return CacheUnknown
	}
	for _, l := range s.Layers {
		if l.State > 0 || l.Sliding {
			return CacheCheckpoints
		}
	}
	return CacheReliable
}

// How far a model's prefix cache can be trusted.
const (
	CacheReliable    = "reliable"
	CacheCheckpoints = "checkpoints"
	CacheUnknown     = "unknown"
)
