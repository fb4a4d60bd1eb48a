package practice

import (
	"fmt"
	"math"
	"math/rand/v2"

	"localllm/internal/gguf"
)

// Where in the embedding what is kept. All flags have the value level where they are set.
//
//   - layer 0: the assistant token attends to the markers of the prompt (atMarkers then holds each one's share of all
//     marker tokens), and its feed-forward part turns «no share» into atAbsent. Any share over leastShare is as good as
//     another, so how often a marker occurs does not matter.
//   - layer 1: an entry none of whose markers is absent is set in atActive.
//   - layer 2: the most specific of those is set in atChosen, whose coordinates lead to the answers' first tokens.
//
// After that each token of an answer leads to the next: the embedding of a piece is a random direction from atRandom
// on, and the output row of its follower is that direction. Where nothing follows, the end token wins by atConst.
const (
	atConst     = 0
	atAssistant = 1
	atMarker    = 2
	atMarkers   = 3
	atAbsent    = atMarkers + MaxMarkers
	atActive    = atAbsent + MaxMarkers
	atChosen    = atActive + MaxEntries
	atRandom    = atChosen + MaxEntries
	level       = 4

	// With a rotary base of 1e12 this coordinate turns by less than a millionth over a prompt, in either pairing of coordinates.
	slowest = headWidth - 2
)

func (p *plan) weights(draft *gguf.Draft, o Options) {
	p.embeddings(draft, o)
	for i := range o.Layers {
		l := newLayer(o)
		switch i {
		case 0:
			l.attendToMarkers()
			l.absent()
		case 1:
			l.active(p.answers)
		case 2:
			l.chosen(len(p.answers))
		default:
			l.inert()
		}
		l.add(draft, i, o)
	}
}

// How sharp the answers are: tokens that are not the next one stay under e^-20 even at a temperature of 1.
const sharpness = 8

// The end token's share of the next token's strength. Random directions reach up to 0.4 of each other.
const endShare = 0.65

func (p *plan) embeddings(draft *gguf.Draft, o Options) {
	n, d := len(p.words.stored), o.Width
	in, out := floats(n*d), floats(n*d)
	for id := range n {
		in[id*d+atConst] = level
	}
	in[assistantToken*d+atAssistant] = level
	for i, id := range p.markers {
		in[id*d+atMarker] = level
		in[id*d+atMarkers+i] = level
	}
	random := rand.New(rand.NewPCG(1, 2))
	direction := floats(leastWidth - atRandom)
	// In the order of the tokens, for the same script is to give the same file.
	for id := range n {
		follower, ok := p.follows[id]
		if !ok {
			continue
		}
		for k := range direction {
			direction[k] = float32(random.NormFloat64())
		}
		unit(direction)
		for k, x := range direction {
			in[id*d+atRandom+k] = level * x
			out[follower*d+atRandom+k] = sharpness * x
		}
	}
	for i, a := range p.answers {
		if a.first >= 0 {
			out[a.first*d+atChosen+i] = sharpness
		}
	}
	out[endToken*d+atConst] = endShare * sharpness
	draft.Add("token_embd.weight", in, int64(d), int64(n))
	draft.Add("output_norm.weight", norms(o), int64(d))
	draft.Add("output.weight", out, int64(d), int64(n))
}

// norms undo what a greater width does to the normalised embedding.
func norms(o Options) []float32 {
	norm := floats(o.Width)
	for i := range norm {
		norm[i] = float32(math.Sqrt(float64(leastWidth) / float64(o.Width)))
	}
	return norm
}

type layer struct {
	width, heads, hidden      int
	query, key, value, output []float32
	gate, up, down            []float32
}

func newLayer(o Options) *layer {
	d, heads, hidden := o.Width, o.heads()*headWidth, o.hidden()
	return &layer{
		width: d, heads: heads, hidden: hidden,
		query: floats(d * heads), key: floats(d * headWidth), value: floats(d * headWidth), output: floats(heads * d),
		gate: floats(d * hidden), up: floats(d * hidden), down: floats(hidden * d),
	}
}

// attendToMarkers: the assistant token's score for a marker is about 30, for anything else 0.
func (l *layer) attendToMarkers() {
	const sharp = 1.25
	l.query[slowest*l.width+atAssistant] = sharp
	l.key[slowest*l.width+atMarker] = sharp
	for m := range MaxMarkers {
		l.value[valueAt(m)*l.width+atMarkers+m] = 0.35
		l.output[(atMarkers+m)*l.heads+valueAt(m)] = 1
	}
}

// valueAt leaves out the first coordinate of each half: engines rotate a quantized cache by a Hadamard matrix, and the
// rounding of a single coordinate's rotation, the same sign all over a block, comes back there.
func valueAt(m int) int {
	if m < headWidth/2-1 {
		return m + 1
	}
	return m + 2
}

const (
	steep = 10
	// A smaller share of all marker tokens counts as none. A zero share is not quite zero in a quantized cache.
	leastShare = 1.0 / 4096
)

// absent: hidden unit m is positive at the assistant token where marker m has no share, and negative anywhere else.
func (l *layer) absent() {
	for m := range MaxMarkers {
		l.unit(m, atAbsent+m, 0.5/400)
		l.gate[m*l.width+atAssistant] = 2 * steep
		l.gate[m*l.width+atConst] = -steep
		l.gate[m*l.width+atMarkers+m] = -2 * steep / leastShare
	}
}

// active: unit e is positive at the assistant token where no marker of entry e is absent.
func (l *layer) active(answers []answer) {
	for e, a := range answers {
		l.unit(e, atActive+e, 0.5/350)
		l.gate[e*l.width+atAssistant] = 2 * steep
		l.gate[e*l.width+atConst] = -steep
		for _, m := range a.markers {
			l.gate[e*l.width+atAbsent+m] = -16 * steep
		}
	}
}

// chosen: unit e is positive where entry e is active and none after it, which are as specific or more.
func (l *layer) chosen(entries int) {
	for e := range entries {
		l.unit(e, atChosen+e, 0.08)
		l.gate[e*l.width+atActive+e] = 4 * steep
		for f := e + 1; f < entries; f++ {
			l.gate[e*l.width+atActive+f] = -8 * steep
		}
	}
}

// unit lets hidden unit h write to one coordinate, multiplied by the constant.
func (l *layer) unit(h, to int, strength float32) {
	l.up[h*l.width+atConst] = 0.25
	l.down[to*l.hidden+h] = strength
}

// inert fills everything but the two projections that write, so that the layer costs its time and says nothing.
func (l *layer) inert() {
	random := rand.New(rand.NewPCG(3, 4))
	for _, matrix := range [][]float32{l.query, l.key, l.value, l.gate, l.up} {
		for i := range matrix {
			matrix[i] = (random.Float32() - 0.5) / 16
		}
	}
}

func (l *layer) add(draft *gguf.Draft, index int, o Options) {
	d, heads, hidden := int64(l.width), int64(l.heads), int64(l.hidden)
	for _, tensor := range []struct {
		name    string
		data    []float32
		in, out int64
	}{
		{"attn_q", l.query, d, heads},
		{"attn_k", l.key, d, headWidth},
		{"attn_v", l.value, d, headWidth},
		{"attn_output", l.output, heads, d},
		{"ffn_gate", l.gate, d, hidden},
		{"ffn_up", l.up, d, hidden},
		{"ffn_down", l.down, hidden, d},
	} {
		draft.Add(fmt.Sprintf("blk.%d.%s.weight", index, tensor.name), tensor.data, tensor.in, tensor.out)
	}
	draft.Add(fmt.Sprintf("blk.%d.attn_norm.weight", index), norms(o), d)
	draft.Add(fmt.Sprintf("blk.%d.ffn_norm.weight", index), norms(o), d)
}
