package practice

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func many(n int, entry func(i int) string) string {
	entries := make([]string, n)
	for i := range entries {
		entries[i] = entry(i)
	}
	return "[" + strings.Join(entries, ",") + "]"
}

func TestWrongScripts(t *testing.T) {
	ok := `{"when":["A1"],"say":"x"}`
	for name, c := range map[string]struct {
		script string
		number int
		says   string
	}{
		"not a list":           {`{"when":[]}`, 1, "JSON list"},
		"nothing":              {``, 1, "JSON list"},
		"no entry":             {`[]`, 1, "no entry"},
		"bad JSON":             {`[` + ok + `,{"when":["B"],"say":x}]`, 2, "invalid character"},
		"cut off":              {`[` + ok + `,{"when":["B"],"say":"x"`, 2, "too early"},
		"cut off after one":    {`[` + ok, 1, "too early"},
		"more after the list":  {`[` + ok + `] 1`, 1, "goes on"},
		"unknown field":        {`[` + ok + `,{"when":[],"says":"x"}]`, 2, "says"},
		"no answer":            {`[{"when":["A"]}]`, 1, "missing"},
		"wrong type":           {`[{"when":"A","say":"x"}]`, 1, "string"},
		"not UTF-8":            {"[" + ok + ",{\"when\":[],\"say\":\"\xff\"}]", 2, "UTF-8"},
		"same markers":         {`[{"when":["A","B"],"say":"x"},` + `{"when":["C"],"say":"y"},{"when":["B","A","B"],"say":"z"}]`, 3, "as entry 1"},
		"two defaults":         {`[{"when":[],"say":"x"},{"say":"y"}]`, 2, "as entry 1"},
		"empty marker":         {`[` + ok + `,{"when":[""],"say":"x"}]`, 2, "empty"},
		"a marker in another":  {`[` + ok + `,{"when":["xA1y"],"say":"x"}]`, 2, "inside"},
		"a marker around one":  {`[{"when":["xA1y"],"say":"x"},{"when":["A1"],"say":"y"}]`, 2, "inside"},
		"inside in one entry":  {`[{"when":["AB","ABC"],"say":"x"}]`, 1, "inside"},
		"a marker of a role":   {`[{"when":["hi<|user|>"],"say":"x"}]`, 1, "<|user|>"},
		"a marker with a zero": {`[{"when":["a\u0000"],"say":"x"}]`, 1, "plain"},
		"a marker of a page":   {`[{"when":["` + strings.Repeat("m", 1025) + `"],"say":"x"}]`, 1, "1024 bytes"},
		"too long at once":     {`[` + ok + `,{"say":"` + strings.Repeat("é", 32<<10) + `"}]`, 2, "too long"},
		"too long in all":      {many(3, func(i int) string { return fmt.Sprintf(`{"when":["%c"],"say":%q}`, 'a'+i, strings.Repeat("y", 30<<10)) }), 3, "too long"},
		"too many entries":     {many(49, func(i int) string { return fmt.Sprintf(`{"when":["m%02d"],"say":"x"}`, i) }), 49, "48 entries"},
		"too many markers":     {many(25, func(i int) string { return fmt.Sprintf(`{"when":["m%02d","n%02d"],"say":"x"}`, i, i) }), 25, "48 markers"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(c.script))
			var wrong *EntryError
			if !errors.As(err, &wrong) {
				t.Fatalf("got %v", err)
			}
			if wrong.Number != c.number || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %q, want entry %d and %q", err, c.number, c.says)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
}

func TestWrongScriptLeavesNoFile(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "m.gguf")
	for name, write := range map[string]func() error{
		"two entries": func() error { return Write(path, Script{{Say: "a"}, {Say: "b"}}, Options{}) },
		// The name of a space in the vocabulary is a letter of its own that nobody's marker should be.
		"a token's name": func() error { return Write(path, Script{{When: []string{"Ġ"}, Say: "b"}}, Options{}) },
		"layers":         func() error { return Write(path, Script{{Say: "a"}}, Options{Layers: 2}) },
		"width":          func() error { return Write(path, Script{{Say: "a"}}, Options{Width: 400}) },
		"context":        func() error { return Write(path, Script{{Say: "a"}}, Options{Context: 1 << 20}) },
	} {
		if err := write(); err == nil {
			t.Errorf("%s: no error", name)
		}
		if left, _ := os.ReadDir(folder); len(left) > 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
}

func TestSameScriptSameFile(t *testing.T) {
	script := Script{{When: []string{"B", "A"}, Say: "one\ntwo\nthree"}, {When: []string{"A"}, Say: "four"}, {Say: "five and six"}}
	var files [2][]byte
	for i := range files {
		path := filepath.Join(t.TempDir(), "m.gguf")
		if err := Write(path, script, Options{}); err != nil {
			t.Fatal(err)
		}
		files[i], _ = os.ReadFile(path)
	}
	if len(files[0]) == 0 || !bytes.Equal(files[0], files[1]) {
		t.Error("two models of one script differ")
	}
}

// What a model says is the chain of pieces from an answer's first token on; each piece must lead to one other.
func TestPieces(t *testing.T) {
	for name, answers := range map[string][]string{
		"one inside the other": {"a", "aa", "aaa", "aaaa", "b", "ab", "aab"},
		"same ending":          {"x := 1\n}\n", "y := 1\n}\n", "}\n", "z := 1\n}\n"},
		"same answer":          {"same", "same"},
		"ends of turns":        {"</s>", "<|end|>", "[EOS]", "a</s>b</s>c"},
		"one letter":           {strings.Repeat("a", 60<<10)},
		"letters beyond ASCII": {strings.Repeat("日本語🎉", 1000), "é"},
		"white space":          {"\t\t  \n\n\r\n   ", " ", "\n"},
		"a marker":             {"MARKER", "MARKER MARKER"},
		"source":               {strings.Repeat("\tif err != nil {\n\t\treturn err\n\t}\n", 300)},
	} {
		t.Run(name, func(t *testing.T) {
			script := Script{}
			for i, text := range answers {
				script = append(script, Entry{When: []string{"MARKER", fmt.Sprintf("m%d!", i)}, Say: text})
			}
			p, err := newPlan(script)
			if err != nil {
				t.Fatal(err)
			}
			texts := map[int]string{}
			for text, id := range p.words.ids {
				texts[id] = text
			}
			for i, a := range p.answers {
				var said strings.Builder
				for id, more := a.first, true; more; id, more = p.next(id) {
					if endLike(texts[id]) {
						t.Errorf("the piece %q would end the turn", texts[id])
					}
					said.WriteString(texts[id])
				}
				// Equally specific entries come in reverse.
				if want := answers[len(answers)-1-i]; said.String() != want {
					t.Errorf("says %.60q, want %.60q", said.String(), want)
				}
			}
		})
	}
}

func (p *plan) next(id int) (int, bool) {
	follower, ok := p.follows[id]
	return follower, ok
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`[{"when":["a"],"say":"x"},{"say":""}]`))
	f.Add([]byte(`[{"when":["a","b"],"say":"</s>"},{"when":["é"],"say":"</s></s>"}] `))
	f.Add([]byte("[{\"say\":\"\\ud800\"}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		script, err := Parse(text)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
			return
		}
		if _, err := newPlan(script); err != nil {
			var wrong *EntryError
			if !errors.As(err, &wrong) {
				t.Errorf("no entry's number in %v", err)
			}
		}
	})
}
