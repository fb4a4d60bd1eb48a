// Package sse reads server-sent events, as the streaming endpoints of OpenAI, Anthropic and llama-server send them.
// It never buffers more than one event and never interprets its data.
package sse

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// MaxEvent bounds the data of one event, in bytes. A hostile or broken server must not fill our memory.
const MaxEvent = 8 << 20

// ErrTooLarge means that an event was over MaxEvent.
var ErrTooLarge = errors.New("an event of the stream is too large")

// Event is one event. Data is only valid until the next one is read.
type Event struct {
	Name string // empty for the default kind
	Data []byte
}

// Read calls each for every event until the stream ends, each returns an error, or ErrStop. It returns nil at an
// orderly end of the stream, also when the last event lacks its empty line.
func Read(r io.Reader, each func(Event) error) error {
	in := bufio.NewReaderSize(r, 32<<10)
	var name string
	var data []byte
	some := false
	emit := func() error {
		if !some {
			name = ""
			return nil
		}
		err := each(Event{Name: name, Data: data})
		name, data, some = "", data[:0], false
		return err
	}
	for {
		line, err := readLine(in, MaxEvent)
		if len(line) > 0 {
			field, value, _ := bytes.Cut(line, []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch string(field) {
			case "data":
				if len(data)+len(value) > MaxEvent {
					return ErrTooLarge
				}
				if some {
					data = append(data, '\n')
				}
				data, some = append(data, value...), true
			case "event":
				name = string(value)
			}
		} else if err == nil {
			if err := emit(); err != nil {
				return stopped(err)
			}
		}
		if errors.Is(err, io.EOF) {
			return stopped(emit())
		}
		if err != nil {
			return fmt.Errorf("reading the stream: %w", err)
		}
	}
}

// ErrStop ends Read without an error.
var ErrStop = errors.New("stop reading")

func stopped(err error) error {
	if errors.Is(err, ErrStop) {
		return nil
	}
	return err
}

// readLine returns a line without its end (LF or CRLF). The slice is valid until the next read.
func readLine(in *bufio.Reader, limit int) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		whole := append([]byte(nil), line...)
		for errors.Is(err, bufio.ErrBufferFull) {
			if len(whole) > limit {
				return nil, ErrTooLarge
			}
			line, err = in.ReadSlice('\n')
			whole = append(whole, line...)
		}
		line = whole
	}
	return bytes.TrimRight(line, "\r\n"), err
}
