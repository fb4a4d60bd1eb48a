package gguf

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
)

// Draft is a model file being put together: its metadata and tensors keep the order in which they were added.
type Draft struct {
	keys    []draftKey
	tensors []draftTensor
	err     error
}

type draftKey struct {
	name  string
	value any
}

type draftTensor struct {
	name  string
	kind  uint32
	dims  []int64
	bytes int64
	data  []float32 // nil: a hole in the file
}

// Set adds a metadata value: a string, bool, uint32, int32, uint64, float32, or a slice of strings, bool, int32, uint32 or
// float32.
func (d *Draft) Set(name string, value any) {
	switch value.(type) {
	case string, bool, uint32, int32, uint64, float32, []string, []bool, []int32, []uint32, []float32:
		d.keys = append(d.keys, draftKey{name, value})
	default:
		d.fail(fmt.Errorf("metadata %s: no GGUF type for %T", name, value))
	}
}

// Add adds an F32 tensor; dims has the length of a row first. The data is not copied.
func (d *Draft) Add(name string, data []float32, dims ...int64) {
	size, ok := tensorBytes(0, dims)
	if !ok || size != 4*int64(len(data)) {
		d.fail(fmt.Errorf("tensor %s: %d numbers do not fill %v", name, len(data), dims))
	}
	d.tensors = append(d.tensors, draftTensor{name, 0, dims, size, data})
}

// AddHollow adds a tensor of any type by ggml's numbering whose data is left a hole in the file, for tools that read the header alone.
func (d *Draft) AddHollow(name string, kind uint32, dims ...int64) {
	size, ok := tensorBytes(kind, dims)
	if !ok {
		d.fail(fmt.Errorf("tensor %s: type %d cannot have the shape %v", name, kind, dims))
	}
	d.tensors = append(d.tensors, draftTensor{name, kind, dims, size, nil})
}

func (d *Draft) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

// WriteFile writes the file as a whole: path has all of it or is as it was.
func (d *Draft) WriteFile(path string) (err error) {
	if d.err != nil {
		return fmt.Errorf("writing %s: %w", path, d.err)
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".localllm-tmp-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = file.Close()
			_ = os.Remove(file.Name())
			err = fmt.Errorf("writing %s: %w", path, err)
		}
	}()
	if err := d.write(file); err != nil {
		return err
	}
	if err := file.Chmod(0o644); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

func (d *Draft) write(file *os.File) error {
	out := bufio.NewWriterSize(file, 1<<20)
	header := d.header()
	if _, err := out.Write(header); err != nil {
		return err
	}
	at := int64(len(header))
	row := make([]byte, 0, 1<<16)
	for _, tensor := range d.tensors {
		if tensor.data == nil {
			if err := out.Flush(); err != nil {
				return err
			}
			at += aligned(tensor.bytes)
			if _, err := file.Seek(at, 0); err != nil {
				return err
			}
			continue
		}
		for from := 0; from < len(tensor.data); from += cap(row) / 4 {
			row = row[:0]
			for _, number := range tensor.data[from:min(from+cap(row)/4, len(tensor.data))] {
				row = binary.LittleEndian.AppendUint32(row, math.Float32bits(number))
			}
			if _, err := out.Write(row); err != nil {
				return err
			}
		}
		if _, err := out.Write(make([]byte, aligned(tensor.bytes)-tensor.bytes)); err != nil {
			return err
		}
		at += aligned(tensor.bytes)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	// A hole at the end needs the size said.
	return file.Truncate(at)
}

func (d *Draft) header() []byte {
	out := []byte("GGUF")
	out = binary.LittleEndian.AppendUint32(out, newestVersion)
	out = binary.LittleEndian.AppendUint64(out, uint64(len(d.tensors)))
	out = binary.LittleEndian.AppendUint64(out, uint64(len(d.keys)))
	for _, key := range d.keys {
		out = appendValue(appendText(out, key.name), key.value)
	}
	var offset int64
	for _, tensor := range d.tensors {
		out = appendText(out, tensor.name)
		out = binary.LittleEndian.AppendUint32(out, uint32(len(tensor.dims)))
		for _, dim := range tensor.dims {
			out = binary.LittleEndian.AppendUint64(out, uint64(dim))
		}
		out = binary.LittleEndian.AppendUint32(out, tensor.kind)
		out = binary.LittleEndian.AppendUint64(out, uint64(offset))
		offset += aligned(tensor.bytes)
	}
	return append(out, make([]byte, aligned(int64(len(out)))-int64(len(out)))...)
}

func appendValue(out []byte, value any) []byte {
	le := binary.LittleEndian
	switch v := value.(type) {
	case string:
		return appendText(le.AppendUint32(out, kindString), v)
	case bool:
		return appendBool(le.AppendUint32(out, kindBool), v)
	case uint32:
		return le.AppendUint32(le.AppendUint32(out, kindUint32), v)
	case int32:
		return le.AppendUint32(le.AppendUint32(out, kindInt32), uint32(v))
	case uint64:
		return le.AppendUint64(le.AppendUint32(out, kindUint64), v)
	case float32:
		return le.AppendUint32(le.AppendUint32(out, kindFloat32), math.Float32bits(v))
	case []string:
		out = appendArray(out, kindString, len(v))
		for _, text := range v {
			out = appendText(out, text)
		}
	case []bool:
		out = appendArray(out, kindBool, len(v))
		for _, flag := range v {
			out = appendBool(out, flag)
		}
	case []int32:
		out = appendArray(out, kindInt32, len(v))
		for _, number := range v {
			out = le.AppendUint32(out, uint32(number))
		}
	case []uint32:
		out = appendArray(out, kindUint32, len(v))
		for _, number := range v {
			out = le.AppendUint32(out, number)
		}
	case []float32:
		out = appendArray(out, kindFloat32, len(v))
		for _, number := range v {
			out = le.AppendUint32(out, math.Float32bits(number))
		}
	}
	return out
}

func appendBool(out []byte, flag bool) []byte {
	if flag {
		return append(out, 1)
	}
	return append(out, 0)
}

func appendArray(out []byte, kind uint32, n int) []byte {
	out = binary.LittleEndian.AppendUint32(out, kindArray)
	out = binary.LittleEndian.AppendUint32(out, kind)
	return binary.LittleEndian.AppendUint64(out, uint64(n))
}

func appendText(out []byte, text string) []byte {
	return append(binary.LittleEndian.AppendUint64(out, uint64(len(text))), text...)
}

func aligned(size int64) int64 {
	return (size + defaultAlign - 1) / defaultAlign * defaultAlign
}
