package verify

import (
	"fmt"

	"localllm/internal/proc"
)

// The first error is mostly near the beginning, the summary at the end; what a runaway test prints between them is
// of no use.
const (
	keptHead = 48 << 10
	keptTail = 32 << 10
)

// capture keeps the beginning and the end of an output. proc writes to it from one goroutine at a time.
type capture struct {
	head []byte
	tail proc.Tail
}

func (c *capture) Write(p []byte) (int, error) {
	n := len(p)
	if room := keptHead - len(c.head); room > 0 {
		take := min(room, len(p))
		c.head = append(c.head, p[:take]...)
		p = p[take:]
	}
	if len(p) > 0 {
		c.tail.Limit = keptTail
		_, _ = c.tail.Write(p)
	}
	return n, nil
}

func (c *capture) String() string {
	if lost := c.tail.Lost(); lost > 0 {
		return fmt.Sprintf("%s\n[… %d bytes left out …]\n%s", c.head, lost, c.tail.String())
	}
	return string(c.head) + c.tail.String()
}
