package capability

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Metadata is what a model says about itself: a GGUF header, or an engine's answer.
type Metadata interface {
	Number(key string) (int64, bool)
	Numbers(key string) ([]int64, bool)
	Text(key string) (string, bool)
	Count(key string) (int64, bool) // length of an array
}

// Tensor is one tensor of a model's file.
type Tensor struct {
	Name  string
	Bytes int64
}

// window says which layers of an architecture keep only a sliding window.
type window struct {
	period     int64 // every period-th layer keeps everything; 0: as the file says, or all slide
	fullFirst  bool  // it is the first of each group, not the last
	size       int64 // where the file does not say
	ignored    bool  // the engine keeps everything in spite of the file
	onlyLayers int64 // the rule is for models of this many layers only
}

// windows by architecture, as llama.cpp lays out its cache.
var windows = map[string]window{
	"gemma2":       {period: 2, size: 4096},
	"gemma3":       {period: 6},
	"gemma3n":      {period: 5},
	"gemma4":       {},
	"gpt-oss":      {period: 2},
	"cohere2":      {period: 4},
	"cohere2moe":   {period: 4, fullFirst: true},
	"exaone4":      {period: 4, size: 4096, onlyLayers: 64},
	"exaone-moe":   {period: 4},
	"olmo2":        {period: 4},
	"smallthinker": {period: 4, fullFirst: true},
	"llama4":       {period: 4, size: 8192},
	"afmoe":        {period: 4},
	"mimo2":        {},
	"step35":       {},
	"laguna":       {period: 4, fullFirst: true},
	"phi3":         {ignored: true},
	"phimoe":       {ignored: true},
	"qwen2":        {ignored: true},
	"qwen2moe":     {ignored: true},
	"qwen3":        {ignored: true},
	"qwen3moe":     {ignored: true},
	"llama":        {ignored: true},
	"mistral3":     {ignored: true},
}

// plain are the architectures with nothing but attention in every layer, as their head counts say.
var plain = []string{
	"llama", "mistral3", "mistral4", "qwen2", "qwen2moe", "qwen3", "qwen3moe", "qwen2vl", "qwen3vl", "qwen3vlmoe", "phi2", "phi3",
	"phimoe", "gemma", "gemma2", "gemma3", "gemma3n", "gemma4", "gpt-oss", "deepseek", "deepseek2", "glm4", "glm4moe",
	"chatglm", "granite", "granitemoe", "starcoder", "starcoder2", "command-r", "cohere2", "cohere2moe", "olmo", "olmo2",
	"olmoe", "internlm2", "minicpm", "minicpm3", "stablelm", "falcon", "exaone", "exaone4", "exaone-moe", "ernie4_5",
	"ernie4_5-moe", "hunyuan-moe", "hunyuan-dense", "smollm3", "seed_oss", "dots1", "bailingmoe", "bailingmoe2", "llama4", "arcee",
	"nemotron", "deci", "codeshell", "orion", "xverse", "baichuan", "mpt", "gpt2", "gptneox", "bloom", "refact",
	"dbrx", "grok", "arctic", "apertus", "grovemoe", "smallthinker", "afmoe", "mimo2", "minimax-m2", "step35", "laguna",
	"glm-dsa", "deepseek32",
}

// recurrent are the architectures some or all of whose layers keep a constant state.
var recurrent = []string{
	"qwen3next", "qwen35", "qwen35moe", "granitehybrid", "nemotron_h", "nemotron_h_moe", "falcon-h1", "jamba", "lfm2", "lfm2moe",
	"mamba", "mamba2", "plamo2", "kimi-linear",
}

// embedders are the architectures that turn text into vectors and write none.
var embedders = []string{
	"bert", "nomic-bert", "nomic-bert-moe", "jina-bert-v2", "jina-bert-v3", "modern-bert", "neo-bert", "eurobert",
	"gemma-embedding", "t5encoder",
}

// UnfitFor says why a file of this kind can't write text, or nothing.
func UnfitFor(meta Metadata) string {
	arch, _ := meta.Text("general.architecture")
	kind, _ := meta.Text("general.type")
	pooling, pooled := meta.Number(arch + ".pooling_type")
	switch {
	case slices.Contains(embedders, arch) || pooled && pooling > 0:
		return "an embedding model: it writes no text"
	case arch == "clip" || kind == "mmproj":
		return "a projector for images or sound: it is loaded beside a model"
	case kind == "adapter" || kind == "imatrix" || kind == "vocab":
		return "no model but a " + kind + " file"
	case strings.HasPrefix(arch, "wavtokenizer") || arch == "whisper":
		return "a model for sound: it writes no text"
	}
	return ""
}

// figures reads one architecture's keys.
type figures struct {
	Metadata
	arch string
}

func (f figures) get(key string, other int64) int64 {
	if n, ok := f.Number(f.arch + "." + key); ok {
		return n
	}
	return other
}

// mostSmall bounds figures that are multiplied with each other; real ones stay below 100,000.
const mostSmall = 1 << 19

// small reads a figure that is multiplied with others of its kind.
func (f figures) small(key string) int64 { return min(mostSmall, max(0, f.get(key, 0))) }

// each reads a figure that is one number for all layers or a list with one for each.
func (f figures) each(key string, layers int, other int64) []int64 {
	out := make([]int64, layers)
	list, isList := f.Numbers(f.arch + "." + key)
	one := f.get(key, other)
	for i := range out {
		switch {
		case isList && i < len(list):
			out[i] = list[i]
		case isList && len(list) > 0:
			out[i] = list[len(list)-1]
		default:
			out[i] = one
		}
	}
	return out
}

// ShapeOf works out a model's shape from what its header says.
func ShapeOf(meta Metadata, tensors []Tensor) (Shape, error) {
	arch, ok := meta.Text("general.architecture")
	if !ok || arch == "" {
		return Shape{}, fmt.Errorf("the header names no architecture")
	}
	f := figures{meta, arch}
	count := f.get("block_count", 0)
	if count < 0 || count > maxLayers {
		return Shape{}, fmt.Errorf("the header claims %d layers", count)
	}
	s := Shape{Arch: arch, Embedding: f.get("embedding_length", 0), ContextLimit: f.get("context_length", 0)}
	s.Name, _ = meta.Text("general.name")
	s.Vocabulary = f.get("vocab_size", 0)
	if n, ok := meta.Count("tokenizer.ggml.tokens"); ok && n > 0 {
		s.Vocabulary = n
	}
	heads := f.each("attention.head_count", int(count), 0)
	for _, n := range heads {
		s.Heads = max(s.Heads, n)
	}
	f.feedForward(&s, int(count))
	// Layers that predict further tokens are loaded, and the main pass keeps no cache for them.
	layers := int(max(0, count-max(0, f.get("nextn_predict_layers", 0))))
	f.layers(&s, layers, heads)
	s.Weights = f.weights(tensors, layers)
	if !plausible(s) {
		return Shape{}, fmt.Errorf("the header's figures are impossible")
	}
	return s, nil
}

// weights is what the engine loads of the tensors.
func (f figures) weights(tensors []Tensor, layers int) int64 {
	var all, embedding int64
	output := false
	for _, t := range tensors {
		bytes := min(mostBytes, max(0, t.Bytes))
		switch t.Name {
		case "token_embd.weight":
			embedding = bytes
		case "output.weight":
			output = true
		}
		if !f.leftOut(t.Name, layers) {
			all = sum(all, bytes)
		}
	}
	if f.arch == "gemma4" && !output {
		all = sum(all, embedding) // the one matrix is loaded for the input and once more for the output
	}
	return all
}

// unpredicting are the architectures whose predicting layers the engine does not load unless it is told to use them.
var unpredicting = []string{"glm4moe", "qwen35", "qwen35moe"}

// leftOut says whether the engine passes over a tensor.
func (f figures) leftOut(name string, layers int) bool {
	rest, ok := strings.CutPrefix(name, "blk.")
	if !ok || !slices.Contains(unpredicting, f.arch) {
		return false
	}
	number, _, _ := strings.Cut(rest, ".")
	n, err := strconv.Atoi(number)
	return err == nil && n >= layers
}

// plausible holds every figure to a size with which sums and products stay far from overflowing.
func plausible(s Shape) bool {
	const limit = 1 << 24
	for _, n := range []int64{s.Embedding, s.Vocabulary, s.FeedForward, s.Heads, s.Window, s.Experts, s.ExpertsUsed, s.ExpertWidth} {
		if n < 0 || n > limit {
			return false
		}
	}
	for _, l := range s.Layers {
		if l.Key < 0 || l.Value < 0 || l.State < 0 || l.Key > limit || l.Value > limit || l.State > 1<<36 {
			return false
		}
	}
	return s.Weights >= 0 && s.ContextLimit >= 0
}

func (f figures) feedForward(s *Shape, layers int) {
	for _, n := range f.each("feed_forward_length", layers, 0) {
		s.FeedForward = max(s.FeedForward, n)
	}
	s.Experts = f.get("expert_count", 0)
	s.ExpertsUsed = f.get("expert_used_count", 0)
	s.ExpertWidth = f.get("expert_feed_forward_length", 0)
}

// layers fills what each layer keeps.
func (f figures) layers(s *Shape, count int, heads []int64) {
	s.Known = slices.Contains(plain, f.arch) || slices.Contains(recurrent, f.arch)
	if !s.Known {
		s.Notes = append(s.Notes, fmt.Sprintf("the architecture %q is not known: every layer is taken to keep the whole context", f.arch))
	}
	headSize := int64(0)
	if s.Heads > 0 {
		headSize = s.Embedding / s.Heads
	}
	kvHeads := f.each("attention.head_count_kv", count, -1)
	keySize := f.get("attention.key_length", headSize)
	valueSize := f.get("attention.value_length", headSize)
	s.HeadSize = keySize
	mla := f.get("attention.key_length_mla", 0) > 0
	sliding := f.sliding(s, count)
	states := f.states(s, count, kvHeads)
	kept := count - int(f.get("attention.shared_kv_layers", 0))
	if f.arch == "gemma3n" {
		kept = min(kept, 20) // the later layers read the caches of earlier ones
	}
	for i := range count {
		n := kvHeads[i]
		if n < 0 && i < len(heads) {
			n = heads[i]
		}
		layer := Layer{Sliding: sliding[i], State: states[i].bytes}
		key, value := keySize, valueSize
		if layer.Sliding {
			key, value = f.get("attention.key_length_swa", key), f.get("attention.value_length_swa", value)
		}
		switch {
		case states[i].instead || i >= kept:
		case mla:
			// One latent vector for all heads; the values are a part of it.
			layer.Key = keySize
		default:
			layer.Key, layer.Value = width(n, key), width(n, value)
		}
		s.Layers = append(s.Layers, layer)
	}
}

// width is what all heads take together; -1 where it can't be.
func width(heads, size int64) int64 {
	if heads < 0 || size < 0 || heads > mostSmall || size > mostSmall {
		return -1
	}
	return heads * size
}

// sliding says which layers keep only a window.
func (f figures) sliding(s *Shape, count int) []bool {
	out := make([]bool, count)
	rule, ok := windows[f.arch]
	size := f.get("attention.sliding_window", rule.size)
	list, isList := f.Numbers(f.arch + ".attention.sliding_window_pattern")
	if !ok && size > 0 && size < s.ContextLimit && !slices.Contains(plain, f.arch) {
		s.Notes = append(s.Notes, "it names a sliding window, and how its layers use it is not known: taken as none")
	}
	if !ok || rule.ignored || size <= 0 || rule.onlyLayers > 0 && rule.onlyLayers != int64(count) {
		return out
	}
	s.Window = size
	period := f.get("attention.sliding_window_pattern", rule.period)
	for i := range out {
		switch {
		case isList && i < len(list):
			out[i] = list[i] != 0
		case period <= 0:
			out[i] = true
		case rule.fullFirst:
			out[i] = int64(i)%period != 0
		default:
			out[i] = int64(i)%period < period-1
		}
	}
	return out
}

// state is what a recurrent layer keeps.
type state struct {
	bytes   int64
	instead bool // of a cache, not beside it
}

// states works out the constant state of recurrent layers.
func (f figures) states(s *Shape, count int, kvHeads []int64) []state {
	out := make([]state, count)
	if !slices.Contains(recurrent, f.arch) {
		return out
	}
	const single = 4 // bytes of a float: the state is never quantized
	conv := f.small("ssm.conv_kernel") - 1
	inner, size, groups := f.small("ssm.inner_size"), f.small("ssm.state_size"), f.small("ssm.group_count")
	bytes := single * (max(0, conv)*(inner+2*groups*size) + size*inner)
	if short := f.small("shortconv.l_cache"); short > 1 {
		bytes = single * min(s.Embedding, mostSmall) * (short - 1)
	}
	interval := f.get("full_attention_interval", 4)
	wide := f.each("feed_forward_length", count, 0)
	for i := range out {
		switch f.arch {
		case "qwen3next", "qwen35", "qwen35moe":
			if interval > 0 && int64(i+1)%interval != 0 {
				out[i] = state{bytes, true}
			}
		case "mamba", "mamba2":
			out[i] = state{bytes, true}
		case "falcon-h1":
			out[i] = state{bytes, false}
		case "nemotron_h", "nemotron_h_moe":
			out[i] = state{0, kvHeads[i] == 0}
			if kvHeads[i] == 0 && wide[i] == 0 {
				out[i].bytes = bytes
			}
		default:
			if kvHeads[i] == 0 {
				out[i] = state{bytes, true}
			}
		}
	}
	return out
}
