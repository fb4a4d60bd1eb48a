package capability

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var (
	sizeInName  = regexp.MustCompile(`(?i)(?:^|[^a-z0-9.])(\d{1,4}(?:\.\d{1,2})?)b(?:$|[^a-z0-9])`)
	quantInName = regexp.MustCompile(`(?i)(?:^|[^a-z0-9])i?(q[2-8](?:_[a-z0-9]+)*|f16|bf16|fp16|mxfp4)(?:$|[^a-z0-9])`)
)

// bitsPerWeight of the common quantizations, as whole files come out.
var bitsPerWeight = map[string]float64{
	"q2": 3.3, "q3": 3.9, "q4": 4.85, "q5": 5.7, "q6": 6.6, "q8": 8.5, "f1": 16, "bf": 16, "fp": 16, "mx": 4.3,
}

// guess is the last resort for a model that is neither here nor in the table: parameters times bits, from its name.
func guess(name string) Shape {
	m := sizeInName.FindStringSubmatch(strings.ReplaceAll(name, "/", " "))
	if m == nil {
		return Shape{Name: name, Notes: []string{"its size is not known before it is downloaded"}}
	}
	billions, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return Shape{Name: name}
	}
	bits := bitsPerWeight["q4"]
	if q := quantInName.FindStringSubmatch(name); q != nil {
		bits = bitsPerWeight[strings.ToLower(q[1])[:2]]
	}
	return Shape{
		Name:    name,
		Weights: int64(billions * 1e9 * bits / 8),
		Notes:   []string{fmt.Sprintf("estimated from its name alone: %s billion parameters at %.1f bits, without the cache", m[1], bits)},
	}
}
