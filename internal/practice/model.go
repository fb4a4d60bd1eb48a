package practice

import (
	"fmt"
	"math"
	"slices"

	"localllm/internal/gguf"
)

// Options are what a model has beside its script. The zero value is a small and fast one.
type Options struct {
	// Layers beyond the three that do the work, and a Width over the least, are weights that cost time and memory and change no word.
	Layers, Width int
	// Context is the length that the model says it was trained for; 0 is 32,768.
	Context int
	// Tools gives it a chat template that lists tools and takes calls in the Hermes format.
	Tools bool
	// Think gives it a chat template with thinking, so that the engines part a <think> block from the answer.
	Think bool
}

const (
	leastLayers = 3
	leastWidth  = 384
	headWidth   = 64
	leastHidden = 64
	maxLayers   = 128
	maxWidth    = 8192
	maxContext  = 1 << 18
)

func (o Options) check() (Options, error) {
	if o.Layers == 0 {
		o.Layers = leastLayers
	}
	if o.Width == 0 {
		o.Width = leastWidth
	}
	if o.Context == 0 {
		o.Context = 32768
	}
	switch {
	case o.Layers < leastLayers || o.Layers > maxLayers:
		return o, fmt.Errorf("layers: from %d to %d, not %d", leastLayers, maxLayers, o.Layers)
	case o.Width < leastWidth || o.Width > maxWidth || o.Width%headWidth != 0:
		return o, fmt.Errorf("width: a multiple of %d from %d to %d, not %d", headWidth, leastWidth, maxWidth, o.Width)
	case o.Context < 256 || o.Context > maxContext:
		return o, fmt.Errorf("context: from 256 to %d, not %d", maxContext, o.Context)
	}
	return o, nil
}

// heads and hidden grow only with a width that was asked for: attention over long prompts is what costs.
func (o Options) heads() int {
	if o.Width == leastWidth {
		return 1
	}
	return o.Width / headWidth
}

func (o Options) hidden() int {
	if o.Width == leastWidth {
		return leastHidden
	}
	return 2 * o.Width
}

// Write writes the model of a script to path. On an error there is no file, or the one that was there before.
func Write(path string, script Script, options Options) error {
	options, err := options.check()
	if err != nil {
		return err
	}
	if err := script.Check(); err != nil {
		return err
	}
	plan, err := newPlan(script)
	if err != nil {
		return err
	}
	draft := &gguf.Draft{}
	describe(draft, plan.words, options)
	plan.weights(draft, options)
	return draft.WriteFile(path)
}

// plan is the script in tokens.
type plan struct {
	words   *vocabulary
	markers []int    // token of each marker
	answers []answer // the least specific first
	follows map[int]int
}

type answer struct {
	markers []int // indexes into plan.markers
	first   int   // its first token, or -1 where it is empty
}

func newPlan(script Script) (*plan, error) {
	p := &plan{words: newVocabulary(), follows: map[int]int{}}
	index := map[string]int{}
	for i, entry := range script {
		for _, marker := range entry.markers() {
			if _, ok := index[marker]; ok {
				continue
			}
			id, err := p.words.addMarker(marker)
			if err != nil {
				return nil, &EntryError{i + 1, err}
			}
			index[marker] = len(p.markers)
			p.markers = append(p.markers, id)
		}
	}
	first, err := p.cut(script)
	if err != nil {
		return nil, err
	}
	// Of equally specific entries the earlier one is to win, so it comes later here.
	order := make([]int, len(script))
	for i := range order {
		order[i] = len(script) - 1 - i
	}
	slices.SortStableFunc(order, func(a, b int) int { return len(script[a].markers()) - len(script[b].markers()) })
	for _, i := range order {
		a := answer{first: first[script[i].Say]}
		for _, marker := range script[i].markers() {
			a.markers = append(a.markers, index[marker])
		}
		p.answers = append(p.answers, a)
	}
	return p, nil
}

// cut makes the answers chains of tokens, and returns the first token of each text.
func (p *plan) cut(script Script) (map[string]int, error) {
	order := make([]int, len(script))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return len(script[a].Say) - len(script[b].Say) })
	first := map[string]int{"": -1}
	for _, i := range order {
		text := script[i].Say
		if _, ok := first[text]; ok {
			continue
		}
		ids, err := p.words.answer(text)
		if err != nil {
			return nil, &EntryError{i + 1, err}
		}
		first[text] = ids[0]
		for k := 1; k < len(ids); k++ {
			p.follows[ids[k-1]] = ids[k]
		}
	}
	return first, nil
}

func describe(draft *gguf.Draft, words *vocabulary, o Options) {
	draft.Set("general.architecture", "llama")
	draft.Set("general.name", "practice")
	draft.Set("general.file_type", uint32(0))
	draft.Set("llama.vocab_size", uint32(len(words.stored)))
	draft.Set("llama.context_length", uint32(o.Context))
	draft.Set("llama.embedding_length", uint32(o.Width))
	draft.Set("llama.block_count", uint32(o.Layers))
	draft.Set("llama.feed_forward_length", uint32(o.hidden()))
	draft.Set("llama.attention.head_count", uint32(o.heads()))
	draft.Set("llama.attention.head_count_kv", uint32(1))
	draft.Set("llama.attention.key_length", uint32(headWidth))
	draft.Set("llama.attention.value_length", uint32(headWidth))
	draft.Set("llama.attention.layer_norm_rms_epsilon", float32(1e-6))
	draft.Set("llama.rope.dimension_count", uint32(headWidth))
	// So large that the slowest pair does not turn over any prompt: what is attended to must not depend on where it is.
	draft.Set("llama.rope.freq_base", float32(1e12))
	draft.Set("tokenizer.ggml.model", "gpt2")
	draft.Set("tokenizer.ggml.pre", "qwen2")
	draft.Set("tokenizer.ggml.tokens", words.stored)
	draft.Set("tokenizer.ggml.token_type", words.kinds)
	draft.Set("tokenizer.ggml.merges", words.merges)
	draft.Set("tokenizer.ggml.eos_token_id", uint32(endToken))
	draft.Set("tokenizer.ggml.padding_token_id", uint32(endToken))
	draft.Set("tokenizer.ggml.add_bos_token", false)
	draft.Set("tokenizer.chat_template", jinja(o))
}

func floats(n int) []float32 { return make([]float32, n) }

func unit(v []float32) {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	scale := float32(1 / math.Sqrt(sum))
	for i := range v {
		v[i] *= scale
	}
}
