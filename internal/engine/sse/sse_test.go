package sse

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func read(t *testing.T, r io.Reader) ([]string, error) {
	t.Helper()
	var got []string
	err := Read(r, func(e Event) error {
		got = append(got, e.Name+"|"+string(e.Data))
		return nil
	})
	return got, err
}

func TestForms(t *testing.T) {
	for text, want := range map[string][]string{
		"data: a\n\ndata: b\n\n":               {"|a", "|b"},
		"data: a\r\n\r\ndata: b\r\n\r\n":       {"|a", "|b"},
		"event: delta\ndata: {\"x\":1}\n\n":    {`delta|{"x":1}`},
		"data: one\ndata: two\n\n":             {"|one\ntwo"},
		"data:tight\n\n":                       {"|tight"},
		"data:  two spaces\n\n":                {"| two spaces"},
		": a comment\n\n: ping\n\ndata: a\n\n": {"|a"},
		"data: no empty line at the end":       {"|no empty line at the end"},
		"data: a\n":                            {"|a"},
		"id: 7\nretry: 10\ndata: a\n\n":        {"|a"},
		"event: alone\n\ndata: a\n\n":          {"|a"},
		"data:\n\n":                            {"|"},
		"data\n\n":                             {"|"},
		"":                                     nil,
		"\n\n\n":                               nil,
		"data: " + strings.Repeat("x", 100_000) + "\n\n": {"|" + strings.Repeat("x", 100_000)},
	} {
		for name, r := range map[string]io.Reader{"whole": strings.NewReader(text), "byte by byte": iotest.OneByteReader(strings.NewReader(text))} {
			if got, err := read(t, r); err != nil || !slices.Equal(got, want) {
				t.Errorf("%q, %s: %q, %v", text[:min(len(text), 60)], name, got, err)
			}
		}
	}
}

func TestEnds(t *testing.T) {
	broken := errors.New("the line broke")
	if got, err := read(t, io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(broken))); !errors.Is(err, broken) || !slices.Equal(got, []string{"|a"}) {
		t.Errorf("%q, %v", got, err)
	}
	n := 0
	if err := Read(strings.NewReader("data: a\n\ndata: b\n\n"), func(Event) error { n++; return ErrStop }); err != nil || n != 1 {
		t.Errorf("ErrStop: %d events, %v", n, err)
	}
	if err := Read(strings.NewReader("data: a\n\n"), func(Event) error { return broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
}

type endless struct{ text string }

func (e endless) Read(p []byte) (int, error) {
	return copy(p, strings.Repeat(e.text, len(p)/len(e.text)+1)), nil
}

func TestHostileLength(t *testing.T) {
	for _, text := range []string{"x", "data: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\n"} {
		if err := Read(endless{text}, func(Event) error { return nil }); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%q for ever: %v", text[:1], err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("data: a\n\nevent: x\ndata: b\r\n\r\n: c\n\n"))
	f.Add([]byte("data"))
	f.Fuzz(func(t *testing.T, text []byte) {
		size := 0
		err := Read(bytes.NewReader(text), func(e Event) error {
			size += len(e.Data) + len(e.Name)
			return nil
		})
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if size > len(text) {
			t.Errorf("%d bytes out of %d", size, len(text))
		}
	})
}
