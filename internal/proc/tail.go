package proc

import "sync"

// Tail keeps the last Limit bytes written to it. Its zero value keeps 64 KiB. It never fails and never blocks.
type Tail struct {
	Limit int

	mu   sync.Mutex
	buf  []byte
	lost int64
}

func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	limit := t.Limit
	if limit == 0 {
		limit = 64 << 10
	}
	n := len(p)
	if len(p) > limit {
		t.lost += int64(len(p) - limit)
		p = p[len(p)-limit:]
	}
	if over := len(t.buf) + len(p) - limit; over > 0 {
		t.lost += int64(over)
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	t.buf = append(t.buf, p...)
	return n, nil
}

func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}

// Lost is how many bytes were dropped from the front.
func (t *Tail) Lost() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lost
}
