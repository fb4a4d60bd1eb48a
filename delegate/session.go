package delegate

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Session is what one session's slot of the engine has been sent: the part of the prompt that lives longer than a
// task, block by block. It is a plain value: the caller keeps it (per session and slot, in private: it holds file
// bodies, without which an earlier block could not be sent again byte for byte) and passes it to the next Build.
// The zero value is a session that has sent nothing. A lost or outdated Session costs prefill, never correctness.
type Session struct {
	Head   string  `json:"head,omitempty"` // of the system text and project block; another head starts afresh
	Blocks []Block `json:"blocks,omitempty"`

	// Tail are the outputs' blocks that followed Blocks in the last prompt. They are not kept, but while they are
	// unchanged they come first among what is appended, and so are found in the cache.
	Tail []Block `json:"tail,omitempty"`

	// BytesPerToken is what the last exact count came to; it sizes blocks without asking the engine for each.
	BytesPerToken float64 `json:"bytes_per_token,omitempty"`
}

// Block is one file as it was sent.
type Block struct {
	Path    string `json:"path"`
	Hash    string `json:"hash"` // of Body
	Body    string `json:"body"`
	Version int    `json:"version"` // over 1: an earlier version stands above and is declared out of date
	Tokens  int    `json:"tokens"`

	// Idle counts the tasks since one named this file.
	Idle int `json:"idle,omitempty"`
}

// File is one file for a prompt. Path is relative, with slashes, as the model shall see it.
type File struct {
	Path string
	Body string
}

// idleLimit is after how many tasks without it a file counts as gone for good.
const idleLimit = 4

// defaultBytesPerToken is for code before the engine has counted anything.
const defaultBytesPerToken = 3.4

// Layout is how the files of one prompt are arranged, and why.
type Layout struct {
	Blocks []Block // the part that the session keeps
	Tail   []Block // outputs as they are now
	Unused []string
	Stale  []string // paths of which an earlier version stands in Blocks
	Kept   int      // blocks that are byte for byte where they were
	Why    string   // fresh, append, rebuild
}

// arrange decides the order of blocks. Kept blocks stay as they were sent; new and changed files follow. Each place
// where a block is out of date is also a place to cut: what stood before it is kept, what is alive after it is sent
// again, and the dead weight is gone. The cheapest wins, in tokens to prefill: those of this prompt, and those that
// the dead weight will cost later, because it brings the day nearer when the window is full and all must be sent
// anew. room is what blocks may take; 0 means that the window's size is unknown.
func (s Session) arrange(head string, files, outputs []File, room int) Layout {
	want := make(map[string]string, len(files))
	for _, f := range files {
		want[f.Path] = f.Body
	}
	outs := make(map[string]string, len(outputs))
	for _, f := range outputs {
		outs[f.Path] = f.Body
	}
	base := s.Blocks
	if head != s.Head {
		base = nil
	}
	best, bestCost := Layout{}, math.Inf(1)
	for cut := len(base); cut >= 0; cut-- {
		if cut < len(base) && !dead(base, cut, want, outs) {
			continue
		}
		l := s.layout(base, cut, files, outputs)
		cost := l.cost(room) + lost(base, cut, l)
		if cost < bestCost {
			best, bestCost = l, cost
		}
	}
	if math.IsInf(bestCost, 1) { // nothing fits by the estimate: the tightest form, and the exact count decides
		best = s.layout(nil, 0, files, outputs)
	}
	switch {
	case len(base) == 0:
		best.Why = "fresh"
	case best.Kept == len(base):
		best.Why = "append"
	default:
		best.Why = "rebuild"
	}
	return best
}

// dead reports whether block i is of no use to this task: another version is asked for, or nobody asked for long.
// A block with a later version in base is dead whatever is asked for, unless what is asked for is just this one again.
func dead(base []Block, i int, want, outs map[string]string) bool {
	b := base[i]
	if body, ok := want[b.Path]; ok && body != b.Body {
		return true
	}
	if body, ok := outs[b.Path]; ok && body != b.Body {
		return true
	}
	for _, later := range base[i+1:] {
		if later.Path == b.Path {
			return true
		}
	}
	_, named := want[b.Path]
	_, out := outs[b.Path]
	return !named && !out
}

// layout keeps base[:cut] and appends what is asked for and not yet there.
func (s Session) layout(base []Block, cut int, files, outputs []File) Layout {
	l := Layout{Blocks: slices.Clone(base[:cut]), Kept: cut}
	last := map[string]int{} // path → index of its latest block
	for i, b := range l.Blocks {
		last[b.Path] = i
	}
	named := map[string]bool{}
	isOutput := map[string]bool{}
	for _, f := range outputs {
		isOutput[f.Path], named[f.Path] = true, true
	}
	block := func(f File) Block {
		b := Block{Path: f.Path, Hash: hashOf(f.Body), Body: f.Body, Version: 1, Tokens: s.tokens(len(f.Body) + len(f.Path) + 24)}
		if i, ok := last[f.Path]; ok {
			b.Version = l.Blocks[i].Version + 1
			b.Tokens += s.tokens(len(supersededNote(b)))
		}
		return b
	}
	present := func(f File) bool {
		i, ok := last[f.Path]
		return ok && l.Blocks[i].Body == f.Body
	}
	for _, f := range s.cachedFirst(files, base, cut) {
		named[f.Path] = true
		if isOutput[f.Path] || present(f) {
			continue // an output is about to change: it goes last, where it costs nobody else's place
		}
		b := block(f)
		l.Blocks = append(l.Blocks, b)
		last[f.Path] = len(l.Blocks) - 1
	}
	for _, f := range s.cachedFirst(outputs, base, cut) {
		if !present(f) {
			l.Tail = append(l.Tail, block(f))
		}
	}
	l.note(named)
	return l
}

// cachedFirst orders what will be appended: first, in their old order, those that stood right there in the last
// prompt (the live rest of base after the cut, then the last outputs), then the others as they were given.
func (s Session) cachedFirst(files []File, base []Block, cut int) []File {
	rank := map[string]int{}
	n := 0
	for _, b := range append(slices.Clone(base[cut:]), s.Tail...) {
		n++
		rank[b.Path+"\x00"+b.Body] = n
	}
	out := slices.Clone(files)
	slices.SortStableFunc(out, func(a, b File) int {
		ra, rb := rank[a.Path+"\x00"+a.Body], rank[b.Path+"\x00"+b.Body]
		switch {
		case ra == rb:
			return 0
		case ra == 0:
			return 1
		case rb == 0:
			return -1
		}
		return ra - rb
	})
	return out
}

// note fills Unused, Stale and the idle counts.
func (l *Layout) note(named map[string]bool) {
	seen := map[string]bool{}
	versions := map[string]int{}
	for _, b := range l.all() {
		versions[b.Path]++
	}
	for i := range l.Blocks {
		b := &l.Blocks[i]
		if named[b.Path] {
			b.Idle = 0
		} else {
			b.Idle++
		}
		if seen[b.Path] {
			continue
		}
		seen[b.Path] = true
		if !named[b.Path] {
			l.Unused = append(l.Unused, b.Path)
		}
		if versions[b.Path] > 1 {
			l.Stale = append(l.Stale, b.Path)
		}
	}
}

func (l *Layout) all() []Block { return append(slices.Clone(l.Blocks), l.Tail...) }

// cost is in tokens to prefill; infinite where the blocks do not fit.
func (l *Layout) cost(room int) float64 {
	var sent, live, weight float64
	for i, b := range l.Blocks {
		if i >= l.Kept {
			sent += float64(b.Tokens)
		}
		switch {
		case l.outdated(i), b.Idle >= idleLimit:
			weight += float64(b.Tokens)
		default:
			live += float64(b.Tokens)
		}
	}
	tail := 0.0
	for _, b := range l.Tail {
		tail += float64(b.Tokens)
	}
	sent += tail
	if room <= 0 {
		return sent + weight/8 // an unknown window is taken for one that is eight times what is alive
	}
	free := float64(room) - live - tail
	if free < weight {
		return math.Inf(1)
	}
	if weight == 0 {
		return sent
	}
	return sent + weight*live/free
}

// lost is what a cut gives away: half of a block that nobody asked for now may be wanted again. It is infinite where
// the cut would leave an earlier version standing as if it were the file.
func lost(base []Block, cut int, l Layout) float64 {
	there := map[string]bool{}
	for _, b := range l.all() {
		there[b.Path+"\x00"+b.Body] = true
	}
	sum := 0.0
	for i, b := range base[cut:] {
		if there[b.Path+"\x00"+b.Body] {
			continue
		}
		kept, again := false, false
		for j, k := range l.all() {
			if k.Path == b.Path {
				kept, again = true, again || j >= l.Kept
			}
		}
		if kept && !again {
			return math.Inf(1)
		}
		replaced := again || slices.ContainsFunc(base[cut+i+1:], func(k Block) bool { return k.Path == b.Path })
		if !replaced && b.Idle < idleLimit {
			sum += float64(b.Tokens) / 2
		}
	}
	return sum
}

// outdated reports whether the block at i is not the latest version of its file in this layout.
func (l *Layout) outdated(i int) bool {
	b := l.Blocks[i]
	for _, later := range l.Blocks[i+1:] {
		if later.Path == b.Path {
			return true
		}
	}
	for _, t := range l.Tail {
		if t.Path == b.Path {
			return true
		}
	}
	return false
}

// tokens estimates by what this session's engine counted last.
func (s Session) tokens(bytes int) int {
	per := s.BytesPerToken
	if per <= 0 {
		per = defaultBytesPerToken
	}
	return int(math.Ceil(float64(bytes) / per))
}

func hashOf(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:8])
}

// render writes a block. Its bytes depend on the block alone, so that the same block is found in the cache whatever
// task it is for.
func (b Block) render(w *strings.Builder) {
	w.WriteString("### File: ")
	w.WriteString(b.Path)
	if b.Version > 1 {
		w.WriteString(" (version " + strconv.Itoa(b.Version) + ")")
	}
	w.WriteByte('\n')
	fence := fenceFor(b.Body)
	w.WriteString(fence + languageOf(b.Path) + "\n")
	w.WriteString(b.Body)
	if b.Body != "" && !strings.HasSuffix(b.Body, "\n") {
		w.WriteByte('\n')
	}
	w.WriteString(fence + "\n")
	if b.Version > 1 {
		w.WriteString(supersededNote(b))
	}
	w.WriteByte('\n')
}

// supersededNote stands after both versions, since the bytes of the earlier one can no longer change.
func supersededNote(b Block) string {
	v := strconv.Itoa(b.Version)
	return "Version " + v + " is what " + b.Path + " is now. Everything above that shows " + b.Path + " otherwise is out of date: it no longer exists.\n"
}

// fenceFor is a fence longer than any in body.
func fenceFor(body string) string {
	longest := 2
	for i := 0; i < len(body); {
		if body[i] != '`' {
			i++
			continue
		}
		n := i
		for n < len(body) && body[n] == '`' {
			n++
		}
		longest = max(longest, n-i)
		i = n
	}
	return strings.Repeat("`", longest+1)
}
