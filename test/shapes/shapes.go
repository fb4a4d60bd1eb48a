// Package shapes rebuilds the GGUF headers of published models from their configurations, as sparse files: real names,
// shapes and types of every tensor, and not one byte of weights. It is for tests of estimates; nothing can be run with it.
package shapes

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"slices"
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

var typeSize = map[uint32][2]int64{ // bytes, elements of a block
	f32: {4, 1}, q5_0: {22, 32}, q8_0: {34, 32}, q4K: {144, 256}, q6K: {210, 256}, mxfp4: {17, 32},
}

// Model is one model's header.
type Model struct {
	Name    string
	Arch    string
	keys    []pair
	tensors []tensor
}

type pair struct {
	key   string
	value any // string, uint32, float32, bool, []uint32, []bool, []string
}

type tensor struct {
	name string
	kind uint32
	dims []int64
}

func (t tensor) bytes() int64 {
	n := int64(1)
	for _, d := range t.dims {
		n *= d
	}
	size := typeSize[t.kind]
	return n / size[1] * size[0]
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
func (m Model) Write(path string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	w := &counter{w: bufio.NewWriter(f)}
	data := m.header(w)
	if err := w.w.(*bufio.Writer).Flush(); err != nil {
		return err
	}
	return f.Truncate(align(w.n) + data)
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) put(values ...any) {
	for _, v := range values {
		if s, ok := v.(string); ok {
			c.text(s)
			continue
		}
		// A failed write shows at the flush.
		_ = binary.Write(c.w, binary.LittleEndian, v)
		c.n += int64(binary.Size(v))
	}
}

// text is written by hand: there are many, and reflection is slow.
func (c *counter) text(s string) {
	var size [8]byte
	binary.LittleEndian.PutUint64(size[:], uint64(len(s)))
	_, _ = c.w.Write(size[:])
	_, _ = io.WriteString(c.w, s)
	c.n += int64(len(size) + len(s))
}

func align(n int64) int64 { return (n + 31) / 32 * 32 }

func (m Model) header(w *counter) int64 {
	w.put([]byte("GGUF"), uint32(3), uint64(len(m.tensors)), uint64(len(m.keys)))
	for _, p := range m.keys {
		w.put(p.key)
		switch v := p.value.(type) {
		case string:
			w.put(uint32(8), v)
		case uint32:
			w.put(uint32(4), v)
		case float32:
			w.put(uint32(6), v)
		case bool:
			w.put(uint32(7), v)
		case []uint32:
			w.put(uint32(9), uint32(4), uint64(len(v)), v)
		case []string:
			w.put(uint32(9), uint32(8), uint64(len(v)))
			for _, text := range v {
				w.put(text)
			}
		case []bool:
			w.put(uint32(9), uint32(7), uint64(len(v)), v)
		default:
			panic(fmt.Sprintf("%s: no GGUF type for %T", p.key, p.value))
		}
	}
	offset := int64(0)
	for _, t := range m.tensors {
		w.put(t.name, uint32(len(t.dims)), t.dims, t.kind, uint64(offset))
		offset += align(t.bytes())
	}
	return offset
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
	// The quantizer falls back where a row is no whole number of blocks.
	if dims[0]%typeSize[kind][1] != 0 {
		kind = map[uint32]uint32{q4K: q5_0, q6K: q8_0}[kind]
	}
	b.m.tensors = append(b.m.tensors, tensor{name, kind, dims})
}

// mat is a weight matrix, vec a vector that stays unquantized.
func (b builder) mat(name string, dims ...int64)  { b.add(q4K, name+".weight", dims...) }
func (b builder) more(name string, dims ...int64) { b.add(q6K, name+".weight", dims...) }
func (b builder) vec(name string, dims ...int64)  { b.add(f32, name, dims...) }

func blk(i int64, name string) string { return fmt.Sprintf("blk.%d.%s", i, name) }
