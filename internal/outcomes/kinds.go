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

func (k *kinds) add(r stats.Record) {
	kind, success, counts := Outcome(r)
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
	c.Last = max(c.Last, last(r))
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
	err   error
}

func (w *wholeLines) Read(p []byte) (int, error) {
	for len(w.ready) == 0 {
		if w.err != nil {
			return 0, w.err
		}
		buf := make([]byte, 64<<10)
		n, err := w.r.Read(buf)
		w.err = err
		w.held = append(w.held, buf[:n]...)
		end := bytes.LastIndexByte(w.held, '\n') + 1
		if w.all && err != nil {
			end = len(w.held)
		}
		if end > 0 {
			w.ready = append([]byte(nil), w.held[:end]...)
			w.held = append([]byte(nil), w.held[end:]...)
		}
	}
	n := copy(p, w.ready)
	w.ready = w.ready[n:]
	w.whole += int64(n)
	return n, nil
}
