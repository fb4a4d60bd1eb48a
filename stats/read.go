package stats

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

const (
	block = 256 << 10
	// longestLine is more than any writer's line; what is longer is a bad one.
	longestLine = 4 << 20
)

// lines hands over each line of a block that can be placed, and counts those that can't. What fn gets is valid during
// the call.
func lines(b []byte, fn func(l *line, one []byte)) (skipped int) {
	var l line
	for len(b) > 0 {
		var one []byte
		one, b = nextLine(b)
		if len(one) == 0 {
			continue
		}
		l = line{}
		if !l.scan(one) && !l.parse(one) || !l.ours() {
			skipped++
			continue
		}
		fn(&l, one)
	}
	return skipped
}

// nextLine cuts the first line off, without its end; a line of nothing but space is empty.
func nextLine(b []byte) (one, rest []byte) {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		one, rest = b[:i], b[i+1:]
	} else {
		one = b
	}
	if n := len(one); n > 0 && one[n-1] == '\r' {
		one = one[:n-1]
	}
	if len(one) > 0 && (one[0] == ' ' || one[0] == '\t') {
		one = bytes.TrimSpace(one)
	}
	return one, rest
}

// blocks cuts what it reads at line ends and hands the pieces over. fresh gives a buffer to fill, or nil for a new
// one; a piece handed over is the receiver's. A line longer than longestLine is handed over in pieces that are no
// JSON: all but its first are dropped, so that it counts once.
func blocks(ctx context.Context, r io.Reader, fresh func() []byte, hand func([]byte) error) error {
	var rest []byte // the unfinished line at the end of the last block
	dropping := false
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		buf := fresh()
		if need := len(rest) + block; cap(buf) < need {
			buf = make([]byte, need)
		}
		buf = buf[:cap(buf)]
		n := copy(buf, rest)
		m, err := fill(r, buf[n:])
		buf = buf[:n+m]
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended {
			return fmt.Errorf("reading the log: %w", err)
		}
		if dropping {
			i := bytes.IndexByte(buf, '\n')
			if i < 0 {
				if ended {
					return nil
				}
				rest = rest[:0]
				continue
			}
			buf, dropping = buf[i+1:], false
		}
		if ended {
			return hand(buf)
		}
		end := bytes.LastIndexByte(buf, '\n') + 1
		rest = append(rest[:0], buf[end:]...)
		if len(rest) > longestLine {
			// Its beginning alone is no JSON, so it counts as the bad line that it is.
			end, rest, dropping = end+longestLine, rest[:0], true
			buf = append(buf[:end:end], '\n')
			end++
		}
		if err := hand(buf[:end]); err != nil {
			return err
		}
	}
}

// fill reads until b is full. It is io.ReadFull, but tells the end of a log from a log that was cut off
// (io.ErrUnexpectedEOF of a reader that knows how long it should be).
func fill(r io.Reader, b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var m int
		m, err = r.Read(b[n:])
		n += m
	}
	return n, err
}
