package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestAMessageWithoutEndIsDropped(t *testing.T) {
	var out, library bytes.Buffer
	g := newGuard(&out, func() {})
	in := io.MultiReader(strings.NewReader(`{"x":"`), io.LimitReader(letters{}, maxMessage+10), strings.NewReader("\"}\n{\"id\":1}\n"))
	if err := g.pump(in, &library); err != nil {
		t.Fatal(err)
	}
	if library.String() != "{\"id\":1}\n" || !strings.Contains(out.String(), "over 64 MiB") {
		t.Errorf("passed on %d bytes, said %q", library.Len(), out.String())
	}
}

type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

func TestABrokenOutputEndsTheSessionOnce(t *testing.T) {
	gone := 0
	g := newGuard(broken{}, func() { gone++ })
	for range 3 {
		if _, err := g.Write([]byte("{}\n")); err == nil {
			t.Error("writing into a broken pipe succeeded")
		}
	}
	if gone != 1 {
		t.Errorf("noticed %d times", gone)
	}
	if _, err := g.Write([]byte("not JSON\n")); err == nil || !strings.Contains(err.Error(), "something else than a message") {
		t.Errorf("%v", err)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func FuzzPump(f *testing.F) {
	for _, s := range []string{"", "\n\r\n", `{"id":1,"method":"tools/call"}` + "\n" + `{"method":"notifications/cancelled","params":{"requestId":1}}` + "\n",
		`{"method":"notifications/cancelled","params":[]}` + "\n", "[]\nnull\n\xff\n", `{"id":{"a":1},"method":"tools/call"}` + "\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var out, library bytes.Buffer
		g := newGuard(&out, func() {})
		if err := g.pump(bytes.NewReader(in), &library); err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(library.Bytes()) {
			if !bytes.HasSuffix(line, []byte("\n")) || !bytes.Contains(in, line) {
				t.Fatalf("passed on %q", line)
			}
			// Whatever the library answers to it must come out as it is, once.
			var m envelope
			if json.Unmarshal(line, &m) == nil && m.ID != nil && m.Method != "" {
				answer, err := json.Marshal(map[string]any{"id": m.ID, "result": 1})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := g.Write(append(answer, '\n')); err != nil {
					t.Fatal(err)
				}
			}
		}
		if len(g.calls) > 0 {
			t.Fatalf("%d calls were never answered", len(g.calls))
		}
	})
}
