package capability

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"

	"github.com/BurntSushi/toml"
)

//go:embed catalog.toml
var catalogText string

// Catalog is the table of models and of the tiers that they are picked for.
type Catalog struct {
	Models  []Row   `toml:"model"`
	Classes []Class `toml:"class"` // by rising memory
}

// Row is one model of the table: dated data with its source.
type Row struct {
	Ref       string `toml:"ref"`       // Ollama tag, or a Hugging Face reference where Ollama has none
	GGUF      string `toml:"gguf"`      // hf:owner/repo:quant
	Bytes     int64  `toml:"bytes"`     // to download, and of the weights
	Confirmed bool   `toml:"confirmed"` // false: the figures were not checked against the file itself
	Arch      string `toml:"arch"`

	Layers        int64 `toml:"layers"`         // those that keep the whole context
	SlidingLayers int64 `toml:"sliding_layers"` // those that keep a window
	Window        int64 `toml:"window"`
	KVHeads       int64 `toml:"kv_heads"`
	KeyLength     int64 `toml:"key_length"`   // of a head
	ValueLength   int64 `toml:"value_length"` // of a head; 0 under MLA, which keeps one latent vector
	StateBytes    int64 `toml:"state_bytes"`  // recurrent state of one sequence
	Embedding     int64 `toml:"embedding"`
	Vocabulary    int64 `toml:"vocabulary"`
	FeedForward   int64 `toml:"feed_forward"`

	ContextLimit int    `toml:"context_limit"`
	Thinking     bool   `toml:"thinking"`     // thinks unless it is told not to
	PrefixCache  string `toml:"prefix_cache"` // reliable, checkpoints or unknown
	License      string `toml:"license"`
	Date         string `toml:"date"` // when the row was last looked at
	Source       string `toml:"source"`
	Note         string `toml:"note"`
}

// Class is one tier of memory.
type Class struct {
	Name       string   `toml:"name"`
	FromGB     float64  `toml:"from_gb"` // nominal; a driver reports up to 3 % less
	Documented string   `toml:"documented"`
	Current    []string `toml:"current"` // the pick, then the alternatives
}

// DefaultCatalog is the table that comes with the program.
func DefaultCatalog() Catalog {
	c, err := ParseCatalog(catalogText)
	if err != nil {
		panic(err) // the embedded text is checked by a test
	}
	return c
}

// ParseCatalog reads a table and checks it.
func ParseCatalog(text string) (Catalog, error) {
	var c Catalog
	meta, err := toml.Decode(text, &c)
	if err != nil {
		return Catalog{}, fmt.Errorf("reading the model table: %w", err)
	}
	if extra := meta.Undecoded(); len(extra) > 0 {
		return Catalog{}, fmt.Errorf("reading the model table: unknown field %s", extra[0])
	}
	for _, row := range c.Models {
		if err := row.check(); err != nil {
			return Catalog{}, err
		}
	}
	return c, nil
}

func (r Row) check() error {
	if _, err := ParseRef(r.Ref); err != nil {
		return fmt.Errorf("model table: %w", err)
	}
	switch {
	case r.Date == "" || r.Source == "":
		return fmt.Errorf("model table: %s has no date or no source", r.Ref)
	case r.Bytes < 0 || r.Layers < 0 || r.SlidingLayers < 0 || r.KVHeads < 0 || r.KeyLength < 0 || r.ValueLength < 0:
		return fmt.Errorf("model table: %s has a negative figure", r.Ref)
	case r.Layers+r.SlidingLayers > maxLayers:
		return fmt.Errorf("model table: %s has more than %d layers", r.Ref, maxLayers)
	}
	return nil
}

// Override returns the table with the user's rows put over it: a row or a class of the same name is replaced, others
// are added.
func (c Catalog) Override(own Catalog) Catalog {
	out := Catalog{Models: slices.Clone(c.Models), Classes: slices.Clone(c.Classes)}
	for _, row := range own.Models {
		if i := slices.IndexFunc(out.Models, func(r Row) bool { return Same(r.Ref, row.Ref) }); i >= 0 {
			out.Models[i] = row
			continue
		}
		out.Models = append(out.Models, row)
	}
	for _, class := range own.Classes {
		if i := slices.IndexFunc(out.Classes, func(k Class) bool { return k.Name == class.Name }); i >= 0 {
			out.Classes[i] = class
			continue
		}
		out.Classes = append(out.Classes, class)
	}
	slices.SortStableFunc(out.Classes, func(a, b Class) int { return cmp.Compare(a.FromGB, b.FromGB) })
	return out
}

// Find looks a row up by its tag or by its GGUF reference.
func (c Catalog) Find(ref string) (*Row, bool) {
	for i, row := range c.Models {
		if Same(row.Ref, ref) || row.GGUF != "" && Same(row.GGUF, ref) {
			return &c.Models[i], true
		}
	}
	return nil, false
}

// Shape is what the row says about the model's memory.
func (r Row) Shape() Shape {
	s := Shape{
		Arch: r.Arch, Name: r.Ref, Weights: r.Bytes, Window: r.Window, Known: true,
		Embedding: r.Embedding, Vocabulary: r.Vocabulary, FeedForward: r.FeedForward, ContextLimit: int64(r.ContextLimit),
		HeadSize: r.KeyLength,
	}
	layer := Layer{Key: r.KVHeads * r.KeyLength, Value: r.KVHeads * r.ValueLength}
	for range r.Layers {
		s.Layers = append(s.Layers, layer)
	}
	layer.Sliding = true
	for range r.SlidingLayers {
		s.Layers = append(s.Layers, layer)
	}
	if r.StateBytes > 0 {
		s.Layers = append(s.Layers, Layer{State: r.StateBytes})
	}
	return s
}
