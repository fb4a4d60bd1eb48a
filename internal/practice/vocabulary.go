package practice

import (
	_ "embed"
	"fmt"
	"strings"
)

// The turns of a conversation. The model answers after assistant and ends with end.
const (
	endToken = iota
	systemToken
	userToken
	assistantToken
	toolToken
)

var controls = []string{endToken: "<|end|>", systemToken: "<|system|>", userToken: "<|user|>", assistantToken: "<|assistant|>", toolToken: "<|tool|>"}

// Token types by GGUF's numbering.
const (
	normal      = 1
	control     = 3
	userDefined = 4
)

// Learned from Go, Python, TypeScript and Markdown by test/practice/train.
//
//go:embed merges.txt
var mergeList string

// vocabulary is what the engines tokenize with. Prompts become the tokens that the merges build, and markers, which
// are found wherever they occur. Pieces of answers have no merges that lead to them, so no prompt becomes one.
type vocabulary struct {
	stored []string // as in the file: bytes written as characters for normal tokens, plain for the others
	kinds  []int32
	ids    map[string]int // by the bytes that a token stands for
	names  map[string]int // by the stored text, which must be unique too
	merges []string
	pieces map[int]bool // tokens that are part of an answer
}

func newVocabulary() *vocabulary {
	v := &vocabulary{ids: map[string]int{}, names: map[string]int{}, pieces: map[int]bool{}}
	for _, text := range controls {
		v.add(text, text, control)
	}
	for b := range 256 {
		v.addNormal(string([]byte{byte(b)}))
	}
	unwritten := map[rune]byte{}
	for b, r := range byteRune {
		unwritten[r] = byte(b)
	}
	for line := range strings.Lines(mergeList) {
		merge := strings.TrimSuffix(line, "\n")
		v.merges = append(v.merges, merge)
		var text []byte
		for _, r := range strings.Replace(merge, " ", "", 1) {
			text = append(text, unwritten[r])
		}
		v.addNormal(string(text))
	}
	return v
}

func (v *vocabulary) add(text, stored string, kind int32) int {
	id := len(v.stored)
	v.stored = append(v.stored, stored)
	v.kinds = append(v.kinds, kind)
	v.ids[text] = id
	v.names[stored] = id
	return id
}

// addNormal returns the token of these bytes, and adds it where it is new. It is -1 where another token has its name.
func (v *vocabulary) addNormal(text string) int {
	if id, ok := v.ids[text]; ok {
		return id
	}
	stored := ByteText([]byte(text))
	if _, ok := v.names[stored]; ok {
		return -1
	}
	return v.add(text, stored, normal)
}

// addMarker makes text a token that is found anywhere in a prompt.
func (v *vocabulary) addMarker(text string) (int, error) {
	id, known := v.ids[text]
	if named, ok := v.names[text]; ok && (!known || named != id) {
		return 0, fmt.Errorf("the marker %q has the name of another token", text)
	}
	if !known {
		return v.add(text, text, userDefined), nil
	}
	delete(v.names, v.stored[id])
	v.names[text] = id
	v.stored[id], v.kinds[id] = text, userDefined
	return id, nil
}

// Four characters are about a token of ordinary source.
const pieceRunes = 4

// answer cuts text into tokens each of which is a piece of no other answer and only once of this one, so that a token
// alone tells which one follows. Shorter answers must come first: they have fewer ways to be cut.
func (v *vocabulary) answer(text string) ([]int, error) {
	if text == "" {
		return nil, nil
	}
	c := cutter{v: v, text: text, used: map[string]bool{}, left: 10_000}
	if !c.greedy() && !c.cut(0) {
		return nil, fmt.Errorf("no way to cut the answer %.20q into tokens of its own", text)
	}
	ids := make([]int, len(c.pieces))
	for i, piece := range c.pieces {
		ids[i] = v.addNormal(piece)
		v.pieces[ids[i]] = true
	}
	return ids, nil
}

type cutter struct {
	v      *vocabulary
	text   string
	pieces []string
	used   map[string]bool
	left   int // tries of the search
}

// greedy takes the shortest free piece of pieceRunes or more, again and again. An ending that is not free is joined
// with as many of the last pieces as it takes.
func (c *cutter) greedy() bool {
	at := 0
	for at < len(c.text) {
		end := c.shortest(at)
		for end < 0 {
			if len(c.pieces) == 0 {
				return false
			}
			at -= len(c.pop())
			if c.free(c.text[at:]) {
				end = len(c.text)
			}
		}
		c.push(c.text[at:end])
		at = end
	}
	return true
}

func (c *cutter) shortest(at int) (end int) {
	for end = nextRunes(c.text, at, pieceRunes); ; end = nextRunes(c.text, end, 1) {
		if c.free(c.text[at:end]) {
			return end
		}
		if end == len(c.text) {
			return -1
		}
	}
}

func (c *cutter) push(piece string) {
	c.used[piece] = true
	c.pieces = append(c.pieces, piece)
}

func (c *cutter) pop() string {
	last := c.pieces[len(c.pieces)-1]
	delete(c.used, last)
	c.pieces = c.pieces[:len(c.pieces)-1]
	return last
}

// cut searches all ways to cut the text from at on, the shortest pieces first. Only answers that are as a whole no
// piece of their own need it, and those are short: the end token's name, say.
func (c *cutter) cut(at int) bool {
	if at == len(c.text) {
		return true
	}
	for end := nextRunes(c.text, at, 1); ; end = nextRunes(c.text, end, 1) {
		if c.try(at, end) {
			return true
		}
		if end == len(c.text) || c.left <= 0 {
			return false
		}
	}
}

func (c *cutter) try(at, end int) bool {
	c.left--
	piece := c.text[at:end]
	if c.left <= 0 || !c.free(piece) {
		return false
	}
	c.push(piece)
	if c.cut(end) {
		return true
	}
	c.pop()
	return false
}

func (c *cutter) free(piece string) bool {
	if c.used[piece] || endLike(piece) {
		return false
	}
	if id, ok := c.v.ids[piece]; ok {
		return !c.v.pieces[id]
	}
	_, named := c.v.names[ByteText([]byte(piece))]
	return !named
}

// endLike tells names that engines take for the end of a turn, whatever their type says: </s>, <EOT>, [EOS], …
func endLike(piece string) bool {
	name := strings.TrimLeft(piece, "_ ▁")
	return strings.HasPrefix(name, "<") && strings.HasSuffix(name, ">") || strings.HasPrefix(name, "[") && strings.HasSuffix(name, "]")
}

// nextRunes is the offset n characters after at, or the end.
func nextRunes(text string, at, n int) int {
	for offset := range text[at:] {
		if n == 0 {
			return at + offset
		}
		n--
	}
	return len(text)
}
