package gguf

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Header is what a GGUF file says about itself, over all its shards.
type Header struct {
	Version   uint32
	Tensors   []TensorInfo
	DataBytes int64 // of the tensors, with their padding, as the header demands
	FileBytes int64 // of all shards on disk
	Missing   int64 // bytes that the header promises and the files don't have: a download that was cut off
	Shards    []string

	numbers map[string]int64
	reals   map[string]float64
	lists   map[string][]int64
	texts   map[string]string
	counts  map[string]int64 // lengths of all arrays, kept or not
}

// TensorInfo is one tensor of the file.
type TensorInfo struct {
	Name  string
	Dims  []int64
	Type  uint32
	Bytes int64
}

// ErrNotGGUF is what reading some other kind of file gives.
var ErrNotGGUF = errors.New("not a GGUF file")

// Number is a whole number or a boolean.
func (h *Header) Number(key string) (int64, bool) {
	n, ok := h.numbers[key]
	return n, ok
}

// Real is a number with a fraction.
func (h *Header) Real(key string) (float64, bool) {
	f, ok := h.reals[key]
	return f, ok
}

// Numbers is an array of whole numbers or booleans; arrays longer than a model has layers are not kept.
func (h *Header) Numbers(key string) ([]int64, bool) {
	list, ok := h.lists[key]
	return list, ok
}

// Text is a string; very long ones are not kept.
func (h *Header) Text(key string) (string, bool) {
	s, ok := h.texts[key]
	return s, ok
}

// Count is the length of an array, whether or not it was kept.
func (h *Header) Count(key string) (int64, bool) {
	n, ok := h.counts[key]
	return n, ok
}

// block is how a tensor type stores numbers: size bytes for each block of count elements.
type block struct{ size, count int64 }

// blocks by ggml's numbering of types. A number that is missing was withdrawn, or is newer than this table.
var blocks = map[uint32]block{
	0: {4, 1}, 1: {2, 1}, 2: {18, 32}, 3: {20, 32},
	4: {17, 32}, // Ollama's first gpt-oss files number mxfp4 so
	6: {22, 32}, 7: {24, 32}, 8: {34, 32}, 9: {36, 32},
	10: {84, 256}, 11: {110, 256}, 12: {144, 256}, 13: {176, 256}, 14: {210, 256}, 15: {292, 256},
	16: {66, 256}, 17: {74, 256}, 18: {98, 256}, 19: {50, 256}, 20: {18, 32}, 21: {110, 256}, 22: {82, 256},
	23: {136, 256}, 24: {1, 1}, 25: {2, 1}, 26: {4, 1}, 27: {8, 1}, 28: {8, 1}, 29: {56, 256}, 30: {2, 1},
	34: {54, 256}, 35: {66, 256}, 39: {17, 32}, 40: {36, 64}, 41: {18, 128},
}

// tensorBytes is the size of a tensor, or false where its type is unknown or its size is impossible.
func tensorBytes(kind uint32, dims []int64) (int64, bool) {
	b, ok := blocks[kind]
	if !ok {
		return 0, false
	}
	elements := int64(1)
	for _, d := range dims {
		if d < 0 || d > 0 && elements > math.MaxInt64/d {
			return 0, false
		}
		elements *= d
	}
	if len(dims) > 0 && dims[0]%b.count != 0 {
		return 0, false
	}
	rows := elements / b.count
	if rows > math.MaxInt64/b.size {
		return 0, false
	}
	return rows * b.size, true
}

// unknownBytes marks a tensor of a type newer than the table, until place has found its size.
const unknownBytes = -1

// place checks where the tensors lie in the data, which begins at the given byte of the file, and finds the sizes of
// those with an unknown type: they reach to the next one, or to the file's end.
func (h *Header) place(offsets []int64, align, data int64) error {
	next := slices.Clone(offsets)
	slices.Sort(next)
	end := int64(0)
	for i := range h.Tensors {
		t := &h.Tensors[i]
		if t.Bytes == unknownBytes {
			t.Bytes = max(0, h.FileBytes-data-offsets[i])
			if at, _ := slices.BinarySearch(next, offsets[i]+1); at < len(next) {
				t.Bytes = next[at] - offsets[i]
			}
		}
		if offsets[i] > math.MaxInt64-t.Bytes-data {
			return fmt.Errorf("tensor %q lies beyond any file", t.Name)
		}
		end = max(end, offsets[i]+t.Bytes)
		if h.DataBytes > math.MaxInt64-t.Bytes-align {
			return fmt.Errorf("tensor %q lies beyond any file", t.Name)
		}
		h.DataBytes += (t.Bytes + align - 1) / align * align
	}
	if len(h.Tensors) > 0 && data+end > h.FileBytes {
		h.Missing = data + end - h.FileBytes
	}
	return nil
}
