package stats

import "math"

// histogram counts durations in buckets that grow by a fixed factor, so that a quantile is within one percent
// whatever the number of lines. Merging is addition, so the order of lines is nothing to it.
type histogram struct {
	n      int
	counts [buckets]uint32
}

const (
	growth  = 1.01
	buckets = 2120 // up to 1.01^2120 ms, two weeks
	// Everything under a millisecond is one bucket.
	smallest = 1000
)

var perLog = 1 / math.Log(growth)

// add counts a duration in microseconds.
func (h *histogram) add(micros int64) {
	h.n++
	h.counts[bucketOf(micros)]++
}

func bucketOf(micros int64) int {
	if micros <= smallest {
		return 0
	}
	return min(1+int(math.Log(float64(micros)/smallest)*perLog), buckets-1)
}

func (h *histogram) merge(o *histogram) {
	h.n += o.n
	for i, c := range o.counts {
		h.counts[i] += c
	}
}

// seconds gives the middle of the bucket that holds the q-quantile: the smallest value that has q of all at or under it.
func (h *histogram) seconds(q float64) float64 {
	if h.n == 0 {
		return 0
	}
	rank := max(1, int(math.Ceil(q*float64(h.n))))
	for i, c := range h.counts {
		if rank -= int(c); rank <= 0 {
			if i == 0 {
				return 0
			}
			middle := smallest * math.Pow(growth, float64(i)-0.5) / 1e6
			return significant(middle)
		}
	}
	return 0
}

// significant keeps three digits: more would claim more than the buckets know.
func significant(x float64) float64 {
	scale := math.Pow(10, 2-math.Floor(math.Log10(x)))
	return math.Round(x*scale) / scale
}
