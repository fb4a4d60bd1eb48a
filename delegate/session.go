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
	want := map[string]string{} // path → hash
	context, outs := prepare(files, want), prepare(outputs, want)
	base := s.Blocks
	if head != s.Head {
		base = nil
	}
	best, bestCost := Layout{}, math.Inf(1)
	for cut := len(base); cut >= 0; cut-- {
		if cut < len(base) && !dead(base, cut, want) {
			continue
		}
		l := s.layout(base, cut, context, outs)
		cost := l.cost(room) + lost(base, cut, l)
		if cost < bestCost {
			best, bestCost = l, cost
		}
	}
	if math.IsInf(bestCost, 1) { // nothing fits by the estimate: the tightest form, and the exact count decides
		best = s.layout(nil, 0, context, outs)
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

// prepare hashes files once, whatever the number of layouts that are tried.
func prepare(files []File, want map[string]string) []Block {
	blocks := make([]Block, len(files))
	for i, f := range files {
		blocks[i] = Block{Path: f.Path, Hash: hashOf(f.Body), Body: f.Body}
		want[f.Path] = blocks[i].Hash
	}
	return blocks
}

// dead reports whether block i is of no use to this task: another version is asked for or stands further on, or
// nobody asks for the file.
func dead(base []Block, i int, want map[string]string) bool {
	b := base[i]
	for _, later := range base[i+1:] {
		if later.Path == b.Path {
			return true
		}
	}
	return want[b.Path] != b.Hash
}

// layout keeps base[:cut] and appends what is asked for and not yet there.
func (s Session) layout(base []Block, cut int, files, outputs []Block) Layout {
	l := Layout{Blocks: slices.Clone(base[:cut]), Kept: cut}
	last := map[string]Block{}
	for _, b := range l.Blocks {
		last[b.Path] = b
	}
	named, isOutput := map[string]bool{}, map[string]bool{}
	for _, f := range outputs {
		isOutput[f.Path], named[f.Path] = true, true
	}
	present := func(f Block) bool {
		b, ok := last[f.Path]
		return ok && b.Hash == f.Hash
	}
	for _, f := range s.cachedFirst(files, base, cut) {
		named[f.Path] = true
		if isOutput[f.Path] || present(f) {
			continue // an output is about to change: it goes last, where it costs nobody else's place
		}
		f = s.following(f, last)
		l.Blocks = append(l.Blocks, f)
		last[f.Path] = f
	}
	for _, f := range s.cachedFirst(outputs, base, cut) {
		if !present(f) {
			f = s.following(f, last)
			l.Tail = append(l.Tail, f)
			last[f.Path] = f
		}
	}
	l.note(named)
	return l
}

// following completes a block by what it supersedes.
func (s Session) following(b Block, last map[string]Block) Block {
	b.Version = last[b.Path].Version + 1
	size := len(b.Body) + len(b.Path) + 24
	if b.Version > 1 {
		size += len(supersededNote(b)) + 12
	}
	b.Tokens = s.tokens(size)
	return b
}

// cachedFirst orders what will be appended: first, in their old order, those that stood right there in the last
// prompt (the live rest of base after the cut, then the last outputs), then the others as they were given.
func (s Session) cachedFirst(files, base []Block, cut int) []Block {
	rank := map[identity]int{}
	for i, b := range append(slices.Clone(base[cut:]), s.Tail...) {
		rank[b.identity()] = i + 1
	}
	out := slices.Clone(files)
	slices.SortStableFunc(out, func(a, b Block) int {
		ra, rb := rank[a.identity()], rank[b.identity()]
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
// the cut would leave an earlier version of a file standing as if it were what the file is now.
func lost(base []Block, cut int, l Layout) float64 {
	there := map[identity]bool{}
	kept, again := map[string]bool{}, map[string]bool{}
	for i, b := range l.all() {
		there[b.identity()] = true
		kept[b.Path] = kept[b.Path] || i < l.Kept
		again[b.Path] = again[b.Path] || i >= l.Kept
	}
	sum := 0.0
	for i, b := range base[cut:] {
		switch {
		case there[b.identity()], again[b.Path]:
		case kept[b.Path] && slices.Contains(l.Unused, b.Path):
			return math.Inf(1)
		case b.Idle < idleLimit && !slices.ContainsFunc(base[cut+i+1:], func(k Block) bool { return k.Path == b.Path }):
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

// identity is of a file in one version.
type identity struct{ path, hash string }

func (b Block) identity() identity { return identity{b.Path, b.Hash} }

func hashOf(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:16])
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
