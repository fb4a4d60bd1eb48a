package capability

import (
	"fmt"
	"slices"
	"strings"
)

// kvBlock is how a cache type stores numbers: size bytes for each block of count elements.
type kvBlock struct{ size, count int64 }

var kvTypes = map[string]kvBlock{
	"f32":  {4, 1},
	"f16":  {2, 1},
	"bf16": {2, 1},
	"q8_0": {34, 32},
	"q5_1": {24, 32},
	"q5_0": {22, 32},
	"q4_1": {20, 32},
	"q4_0": {18, 32},
}

// DefaultKVType is what engines use where nothing else is asked for.
const DefaultKVType = "f16"

// ParseKVType checks the name of a KV cache type. An empty name is the default.
func ParseKVType(s string) (string, error) {
	if s == "" {
		return DefaultKVType, nil
	}
	name := strings.ToLower(s)
	if _, ok := kvTypes[name]; !ok {
		return "", fmt.Errorf("kv type %q: want one of %s", s, strings.Join(KVTypes(), ", "))
	}
	return name, nil
}

// KVTypes lists the known cache types, the largest first.
func KVTypes() []string {
	names := make([]string, 0, len(kvTypes))
	for name := range kvTypes {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		x, y := kvTypes[a], kvTypes[b]
		if d := y.size*x.count - x.size*y.count; d != 0 {
			return int(d)
		}
		return strings.Compare(b, a)
	})
	return names
}

// bytes is the size of n elements. A row that is no whole number of blocks can't be quantized by the engine; it is
// rounded up.
func (b kvBlock) bytes(n int64) int64 { return (n + b.count - 1) / b.count * b.size }

// roundUp is the next multiple of step. Engines pad the context to 256 cells.
func roundUp(n, step int64) int64 { return (n + step - 1) / step * step }
