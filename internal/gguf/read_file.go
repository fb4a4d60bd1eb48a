package gguf

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

const maxShards = 512

var shardName = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})(\.gguf)$`)

// ReadFile reads the header of a model file, and those of its other shards where it is one of several.
func ReadFile(path string) (*Header, error) {
	h, err := readOne(path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	h.Shards = []string{path}
	count, ok := h.Number("split.count")
	if !ok || count <= 1 {
		return h, nil
	}
	if count > maxShards {
		return nil, fmt.Errorf("reading %s: split into %d files", path, count)
	}
	if err := h.join(path, int(count)); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return h, nil
}

// join adds the other shards of a split model. They must be named as the splitting tool names them.
func (h *Header) join(path string, count int) error {
	m := shardName.FindStringSubmatch(filepath.Base(path))
	if m == nil {
		return fmt.Errorf("it is one of %d files, and its name does not say which", count)
	}
	own, err := strconv.Atoi(m[2])
	if err != nil || own < 1 || own > count {
		return fmt.Errorf("shard %s of %d", m[2], count)
	}
	h.Shards = make([]string, count)
	for i := 1; i <= count; i++ {
		other := filepath.Join(filepath.Dir(path), fmt.Sprintf("%s-%05d-of-%05d%s", m[1], i, count, m[4]))
		h.Shards[i-1] = other
		if i == own {
			continue
		}
		part, err := readOne(other)
		if err != nil {
			return fmt.Errorf("shard %d of %d: %w", i, count, err)
		}
		if len(h.Tensors)+len(part.Tensors) > maxTensors {
			return fmt.Errorf("more than %d tensors", maxTensors)
		}
		if h.DataBytes > math.MaxInt64-part.DataBytes || h.Missing > math.MaxInt64-part.Missing {
			return fmt.Errorf("shard %d of %d is larger than any file", i, count)
		}
		if i == 1 {
			// The first shard carries the model's metadata.
			h.numbers, h.reals, h.lists, h.texts, h.counts = part.numbers, part.reals, part.lists, part.texts, part.counts
		}
		h.Tensors = append(h.Tensors, part.Tensors...)
		h.DataBytes += part.DataBytes
		h.FileBytes += part.FileBytes
		h.Missing += part.Missing
	}
	return nil
}

func readOne(path string) (*Header, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	// A named pipe would hang the open, and a folder is no model.
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: not a regular file", ErrNotGGUF)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(f, info.Size())
}
