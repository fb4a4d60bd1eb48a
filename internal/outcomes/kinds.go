package outcomes

import (
	"bytes"
	"io"

	"localllm/scoring"
	"localllm/stats"
)

// kinds is the index's counts while lines are taken in, in a stable order.
type kinds struct {
	at   map[scoring.Kind]int
	rows []counted
}

func (idx *index) byKind() *kinds {
	k := &kinds{at: make(map[scoring.Kind]int, len(idx.Kinds)), rows: append([]counted(nil), idx.Kinds...)}
	for i, c := range k.rows {
		k.at[c.Kind] = i
	}
	return k
}

func (k *kinds) add(b *stats.Brief) {
	kind, success, counts := Outcome(b)
	if !counts {
		return
	}
	i, ok := k.at[kind]
	if !ok {
		i = len(k.rows)
		k.rows = append(k.rows, counted{Kind: kind})
		k.at[kind] = i
	}
	c := &k.rows[i]
	c.Tried++
	if success {
		c.Succeeded++
	}
	c.Last = max(c.Last, b.Unix)
}

func (k *kinds) list() []counted { return k.rows }

// wholeLines passes a log through up to its last line end: a line that is still being written, or was torn, is
// taken in when its end is there.
type wholeLines struct {
	r     io.Reader
	all   bool   // pass a torn end through too
	whole int64  // bytes passed through
	held  []byte // read, and not known to end
	ready []byte
	next  []byte // ready's memory
	buf   []byte
	err   error
}

func (w *wholeLines) Read(p []byte) (int, error) {
	for len(w.ready) == 0 {
		if w.err != nil {
			return 0, w.err
		}
		w.more()
	}
	n := copy(p, w.ready)
	w.ready = w.ready[n:]
	w.whole += int64(n)
	return n, nil
}

// more reads a piece, once all that was ready is gone.
func (w *wholeLines) more() {
	if w.buf == nil {
		w.buf = make([]byte, 256<<10)
	}
	n, err := w.r.Read(w.buf)
	w.err = err
	was := len(w.held)
	w.held = append(w.held, w.buf[:n]...)
	end := was + bytes.LastIndexByte(w.held[was:], '\n') + 1
	switch {
	case w.all && err != nil:
		end = len(w.held)
	case end == was: // what was held before has no line end either
		return
	}
	w.next = append(w.next[:0], w.held[:end]...)
	w.ready = w.next
	w.held = append(w.held[:0], w.held[end:]...)
}
