// Package shapes rebuilds the GGUF headers of published models from their configurations, as sparse files: real names,
// shapes and types of every tensor, and not one byte of weights. It is for tests of estimates; nothing can be run with it.
package shapes

import (
	"fmt"
	"slices"

	"localllm/internal/gguf"
)

// Tensor types by ggml's numbering.
const (
	f32   = 0
	q5_0  = 6
	q8_0  = 8
	q4K   = 12
	q6K   = 14
	mxfp4 = 39
)

// Model is one model's header.
type Model struct {
	Name    string
	Arch    string
	keys    []pair
	tensors []tensor
}

type pair struct {
	key   string
	value any
}

type tensor struct {
	name string
	kind uint32
	dims []int64
}

// WithVocabulary adds a vocabulary of n made-up tokens: it is the longest part of real headers.
func (m Model) WithVocabulary(n int) Model {
	tokens := make([]string, n)
	for i := range tokens {
		tokens[i] = fmt.Sprintf("token%d", i)
	}
	m.keys = append(slices.Clone(m.keys), pair{"tokenizer.ggml.tokens", tokens})
	return m
}

// Write makes the sparse file.
func (m Model) Write(path string) error {
	draft := &gguf.Draft{}
	for _, p := range m.keys {
		draft.Set(p.key, p.value)
	}
	for _, t := range m.tensors {
		draft.AddHollow(t.name, t.kind, t.dims...)
	}
	return draft.WriteFile(path)
}

// builder adds keys under the architecture's prefix, and tensors with the types of a Q4_K_M file.
type builder struct{ m *Model }

func start(name, arch string) builder {
	b := builder{&Model{Name: name, Arch: arch}}
	b.raw("general.architecture", arch)
	b.raw("general.name", name)
	b.raw("tokenizer.ggml.model", "none")
	return b
}

func (b builder) raw(key string, value any) { b.m.keys = append(b.m.keys, pair{key, value}) }

// drop takes out a key that was set for the usual case.
func (b builder) drop(key string) {
	b.m.keys = slices.DeleteFunc(b.m.keys, func(p pair) bool { return p.key == b.m.Arch+"."+key })
}

func (b builder) set(key string, value any) {
	if n, ok := value.(int); ok {
		value = uint32(n)
	}
	if f, ok := value.(float64); ok {
		value = float32(f)
	}
	b.raw(b.m.Arch+"."+key, value)
}

func (b builder) add(kind uint32, name string, dims ...int64) {
	// The quantizer falls back where a row is no whole number of their blocks.
	if small, falls := map[uint32]uint32{q4K: q5_0, q6K: q8_0}[kind]; falls && dims[0]%256 != 0 {
		kind = small
	}
	b.m.tensors = append(b.m.tensors, tensor{name, kind, dims})
}

// mat is a weight matrix, vec a vector that stays unquantized.
func (b builder) mat(name string, dims ...int64)  { b.add(q4K, name+".weight", dims...) }
func (b builder) more(name string, dims ...int64) { b.add(q6K, name+".weight", dims...) }
func (b builder) vec(name string, dims ...int64)  { b.add(f32, name, dims...) }

func blk(i int64, name string) string { return fmt.Sprintf("blk.%d.%s", i, name) }
