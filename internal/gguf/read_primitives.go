package gguf

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// spend takes n bytes from what may be kept.
func (d *decoder) spend(n int64) bool {
	if n < 0 || n > d.budget {
		return false
	}
	d.budget -= n
	return true
}

func (d *decoder) bytes(n int) ([]byte, error) {
	if int64(n) > d.left {
		return nil, io.ErrUnexpectedEOF
	}
	b := d.buf[:]
	if n > len(b) {
		b = make([]byte, n)
	}
	b = b[:n]
	if _, err := io.ReadFull(d.r, b); err != nil {
		return nil, err
	}
	d.left -= int64(n)
	d.read += int64(n)
	return b, nil
}

func (d *decoder) skip(n uint64) error {
	if n > uint64(d.left) {
		return io.ErrUnexpectedEOF
	}
	for left := int64(n); left > 0; {
		step, err := d.r.Discard(int(min(left, 1<<30)))
		left -= int64(step)
		if err != nil {
			return err
		}
	}
	d.left -= int64(n)
	d.read += int64(n)
	return nil
}

func (d *decoder) uint32() (uint32, error) {
	b, err := d.bytes(4)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

func (d *decoder) uint64() (uint64, error) {
	b, err := d.bytes(8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// name is a key or a tensor's name: short, and kept.
func (d *decoder) name() (string, error) {
	n, err := d.uint64()
	if err != nil {
		return "", err
	}
	if n > maxName || !d.spend(int64(n)+64) {
		return "", fmt.Errorf("a name of %d bytes", n)
	}
	b, err := d.bytes(int(n))
	if err != nil {
		return "", err
	}
	return string(b), nil
}

func (d *decoder) whole(kind uint32) (int64, error) {
	size, ok := kindSize[kind]
	if !ok || kind == kindFloat32 || kind == kindFloat64 {
		return 0, fmt.Errorf("value type %d is unknown", kind)
	}
	b, err := d.bytes(int(size))
	if err != nil {
		return 0, err
	}
	switch kind {
	case kindInt8:
		return int64(int8(b[0])), nil
	case kindUint8, kindBool:
		return int64(b[0]), nil
	case kindUint16:
		return int64(binary.LittleEndian.Uint16(b)), nil
	case kindInt16:
		return int64(int16(binary.LittleEndian.Uint16(b))), nil
	case kindUint32:
		return int64(binary.LittleEndian.Uint32(b)), nil
	case kindInt32:
		return int64(int32(binary.LittleEndian.Uint32(b))), nil
	case kindUint64:
		return int64(min(binary.LittleEndian.Uint64(b), math.MaxInt64)), nil
	}
	return int64(binary.LittleEndian.Uint64(b)), nil
}

func (d *decoder) float(kind uint32) (float64, error) {
	b, err := d.bytes(int(kindSize[kind]))
	if err != nil {
		return 0, err
	}
	if kind == kindFloat32 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))), nil
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b)), nil
}
