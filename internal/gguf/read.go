package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// Bounds on what a foreign file can make us keep. Real files stay far below them: the largest vocabularies have some
// 270,000 tokens, which are counted and not kept, and the largest models some 1,200 tensors.
const (
	maxKeys       = 1 << 16
	maxTensors    = 1 << 17
	maxDims       = 4
	maxName       = 1 << 12
	maxTextKept   = 1 << 14
	maxListKept   = 1 << 12
	maxBudget     = 24 << 20 // for everything kept
	maxDepth      = 4        // arrays of arrays
	defaultAlign  = 32
	maxAlign      = 1 << 20
	oldestVersion = 2
	newestVersion = 3
)

// Value types of the metadata, by GGUF's numbering.
const (
	kindUint8 = iota
	kindInt8
	kindUint16
	kindInt16
	kindUint32
	kindInt32
	kindFloat32
	kindBool
	kindString
	kindArray
	kindUint64
	kindInt64
	kindFloat64
)

var kindSize = map[uint32]int64{
	kindUint8: 1, kindInt8: 1, kindBool: 1, kindUint16: 2, kindInt16: 2, kindUint32: 4, kindInt32: 4, kindFloat32: 4,
	kindUint64: 8, kindInt64: 8, kindFloat64: 8,
}

// Read reads one shard's header from r, of a file of the given size. It reads no tensor data. A header that ends too
// early is an error; tensor data that does is told by Missing.
func Read(r io.Reader, size int64) (*Header, error) {
	d := &decoder{r: bufio.NewReaderSize(r, 1<<16), left: size, budget: maxBudget, h: newHeader()}
	if err := d.header(size); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("the file ends inside its header: %w", io.ErrUnexpectedEOF)
		}
		return nil, err
	}
	return d.h, nil
}

func newHeader() *Header {
	return &Header{
		numbers: map[string]int64{}, reals: map[string]float64{}, lists: map[string][]int64{},
		texts: map[string]string{}, counts: map[string]int64{},
	}
}

type decoder struct {
	r      *bufio.Reader
	left   int64 // bytes of the file not read yet
	read   int64
	budget int64 // bytes that may still be kept
	h      *Header
	buf    [8]byte
}

func (d *decoder) header(size int64) error {
	magic, err := d.bytes(4)
	if err != nil {
		return ErrNotGGUF
	}
	if string(magic) != "GGUF" {
		return ErrNotGGUF
	}
	version, err := d.uint32()
	if err != nil {
		return err
	}
	if version < oldestVersion || version > newestVersion {
		if swapped := version<<24 | version>>24; version&0xffff == 0 && swapped <= newestVersion {
			return errors.New("a big-endian GGUF file: no engine here reads it")
		}
		return fmt.Errorf("GGUF version %d: want %d or %d", version, oldestVersion, newestVersion)
	}
	d.h.Version = version
	tensors, err := d.uint64()
	if err != nil {
		return err
	}
	keys, err := d.uint64()
	if err != nil {
		return err
	}
	if keys > maxKeys || tensors > maxTensors {
		return fmt.Errorf("a header of %d keys and %d tensors: more than any model has", keys, tensors)
	}
	for range keys {
		if err := d.pair(); err != nil {
			return err
		}
	}
	return d.tensors(tensors, size)
}

func (d *decoder) pair() error {
	key, err := d.name()
	if err != nil {
		return fmt.Errorf("reading a key: %w", err)
	}
	kind, err := d.uint32()
	if err != nil {
		return err
	}
	if err := d.value(key, kind); err != nil {
		return fmt.Errorf("reading %q: %w", key, err)
	}
	return nil
}

func (d *decoder) value(key string, kind uint32) error {
	switch kind {
	case kindString:
		return d.text(key)
	case kindArray:
		return d.array(key, 1)
	case kindFloat32, kindFloat64:
		f, err := d.float(kind)
		d.h.reals[key] = f
		return err
	}
	n, err := d.whole(kind)
	if err != nil {
		return err
	}
	d.h.numbers[key] = n
	return nil
}

func (d *decoder) text(key string) error {
	n, err := d.uint64()
	if err != nil {
		return err
	}
	if n > maxTextKept || !d.spend(int64(n)) {
		return d.skip(n)
	}
	b, err := d.bytes(int(n))
	if err != nil {
		return err
	}
	d.h.texts[key] = string(b)
	return nil
}

func (d *decoder) array(key string, depth int) error {
	kind, err := d.uint32()
	if err != nil {
		return err
	}
	n, err := d.uint64()
	if err != nil {
		return err
	}
	if n > math.MaxInt64 {
		return fmt.Errorf("an array of %d elements", n)
	}
	if depth == 1 {
		d.h.counts[key] = int64(n)
	}
	switch kind {
	case kindString:
		return d.skipTexts(n)
	case kindArray:
		if depth >= maxDepth {
			return fmt.Errorf("arrays nested more than %d deep", maxDepth)
		}
		for range n {
			if err := d.array(key, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	size, ok := kindSize[kind]
	if !ok {
		return fmt.Errorf("value type %d is unknown", kind)
	}
	if depth > 1 || n > maxListKept || kind == kindFloat32 || kind == kindFloat64 || !d.spend(int64(n)*8) {
		if n > uint64(math.MaxInt64)/uint64(size) {
			return fmt.Errorf("an array of %d elements", n)
		}
		return d.skip(n * uint64(size))
	}
	list := make([]int64, n)
	for i := range list {
		if list[i], err = d.whole(kind); err != nil {
			return err
		}
	}
	d.h.lists[key] = list
	return nil
}

// skipTexts passes over strings; every one takes at least its length's eight bytes, so a lying count ends soon.
func (d *decoder) skipTexts(n uint64) error {
	if n > uint64(d.left)/8 {
		return io.ErrUnexpectedEOF
	}
	for range n {
		// A vocabulary has a quarter of a million of them: this loop is most of the time that a header takes.
		head, err := d.r.Peek(8)
		if err != nil {
			return err
		}
		size := binary.LittleEndian.Uint64(head)
		if d.left < 8 || size > uint64(d.left-8) {
			return io.ErrUnexpectedEOF
		}
		if err := d.skip(8 + size); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) tensors(n uint64, size int64) error {
	align := int64(defaultAlign)
	if a, ok := d.h.numbers["general.alignment"]; ok {
		if a <= 0 || a > maxAlign || a&(a-1) != 0 {
			return fmt.Errorf("alignment %d", a)
		}
		align = a
	}
	offsets := make([]int64, 0, min(n, 4096))
	for range n {
		t, offset, err := d.tensor()
		if err != nil {
			return err
		}
		d.h.Tensors = append(d.h.Tensors, t)
		offsets = append(offsets, offset)
	}
	data := (d.read + align - 1) / align * align
	d.h.FileBytes = size
	return d.h.place(offsets, align, data)
}

func (d *decoder) tensor() (TensorInfo, int64, error) {
	name, err := d.name()
	if err != nil {
		return TensorInfo{}, 0, fmt.Errorf("reading a tensor's name: %w", err)
	}
	count, err := d.uint32()
	if err != nil {
		return TensorInfo{}, 0, err
	}
	if count > maxDims {
		return TensorInfo{}, 0, fmt.Errorf("tensor %q has %d dimensions", name, count)
	}
	t := TensorInfo{Name: name, Dims: make([]int64, count)}
	for i := range t.Dims {
		n, err := d.uint64()
		if err != nil {
			return TensorInfo{}, 0, err
		}
		if n > math.MaxInt64 {
			return TensorInfo{}, 0, fmt.Errorf("tensor %q has a side of %d", name, n)
		}
		t.Dims[i] = int64(n)
	}
	if t.Type, err = d.uint32(); err != nil {
		return TensorInfo{}, 0, err
	}
	offset, err := d.uint64()
	if err != nil {
		return TensorInfo{}, 0, err
	}
	size, ok := tensorBytes(t.Type, t.Dims)
	if _, known := blocks[t.Type]; !known {
		size, ok = unknownBytes, true
	}
	if !ok || offset > math.MaxInt64 {
		return TensorInfo{}, 0, fmt.Errorf("tensor %q: type %d with sides %v is not possible", name, t.Type, t.Dims)
	}
	t.Bytes = size
	if !d.spend(int64(len(name)) + 96) {
		return TensorInfo{}, 0, errors.New("the header is larger than any model's")
	}
	return t, int64(offset), nil
}
