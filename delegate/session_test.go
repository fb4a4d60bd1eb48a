package delegate

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func file(path string, kb int, version string) File {
	line := "// " + path + " " + version + " and some words to fill the line up to a length of code\n"
	return File{path, strings.Repeat(line, kb*1000/len(line))}
}

// next sends one task and remembers it.
func next(s Session, room int, files, outputs []File) (Layout, Session) {
	l := s.arrange("h", files, outputs, room)
	return l, Session{Head: "h", Blocks: l.Blocks, Tail: l.Tail}
}

func order(blocks []Block) string {
	var names []string
	for _, b := range blocks {
		names = append(names, fmt.Sprintf("%s@%d", b.Path, b.Version))
	}
	return strings.Join(names, " ")
}

func TestArrange(t *testing.T) {
	a, b, c, d := file("a", 4, "1"), file("b", 4, "1"), file("c", 4, "1"), file("d", 4, "1")
	a2, c2 := file("a", 4, "2"), file("c", 4, "2")
	for _, x := range []struct {
		name    string
		before  [][]File // tasks sent before
		files   []File
		outputs []File
		room    int
		want    string
		tail    string
		why     string
	}{
		{"first", nil, []File{b, a}, nil, 0, "b@1 a@1", "", "fresh"},
		{"same in another order", [][]File{{a, b, c}}, []File{c, a, b}, nil, 0, "a@1 b@1 c@1", "", "append"},
		{"one more", [][]File{{a, c}}, []File{a, b, c}, nil, 0, "a@1 c@1 b@1", "", "append"},
		{"changed, early: appended", [][]File{{a, b, c, d}}, []File{a2, b, c, d}, nil, 90000, "a@1 b@1 c@1 d@1 a@2", "", "append"},
		{"changed, last: in its place", [][]File{{a, b, c}}, []File{a, b, c2}, nil, 90000, "a@1 b@1 c@1", "", "rebuild"},
		{"changed, window nearly full: rebuilt", [][]File{{a, b, c, d}}, []File{a2, b, c, d}, nil, 5200, "b@1 c@1 d@1 a@1", "", "rebuild"},
		{"unneeded stays", [][]File{{a, b, c}}, []File{b}, nil, 0, "a@1 b@1 c@1", "", "append"},
		{"changed back", [][]File{{a, b, c, d}, {a2, b, c, d}}, []File{a, b, c, d}, nil, 90000, "a@1 b@1 c@1 d@1", "", "rebuild"},
		{"output last", [][]File{{a, b}}, []File{a, b}, []File{c}, 0, "a@1 b@1", "c@1", "append"},
		{"output is context too", nil, []File{a, b}, []File{a}, 0, "b@1", "a@1", "fresh"},
		{"output was context before", [][]File{{a, b}}, []File{b}, []File{a}, 0, "a@1 b@1", "", "append"},
		{"output changed since", [][]File{{a, b, c}}, []File{b, c}, []File{a2}, 90000, "a@1 b@1 c@1", "a@2", "append"},
	} {
		var s Session
		for _, files := range x.before {
			_, s = next(s, x.room, files, nil)
		}
		l, _ := next(s, x.room, x.files, x.outputs)
		if order(l.Blocks) != x.want || order(l.Tail) != x.tail || l.Why != x.why {
			t.Errorf("%s: %q + %q by %s; want %q + %q by %s", x.name, order(l.Blocks), order(l.Tail), l.Why, x.want, x.tail, x.why)
		}
	}
}

func TestAnotherHeadStartsAfresh(t *testing.T) {
	_, s := next(Session{}, 0, []File{file("a", 1, "1")}, nil)
	if l := s.arrange("other", []File{file("b", 1, "1")}, nil, 0); order(l.Blocks) != "b@1" || l.Why != "fresh" {
		t.Errorf("%q by %s", order(l.Blocks), l.Why)
	}
}

// An output that was not changed is found where it stood, when it becomes context.
func TestLastOutputIsTakenFirst(t *testing.T) {
	a, o, z := file("a", 2, "1"), file("o", 2, "1"), file("n", 2, "1")
	_, s := next(Session{}, 0, []File{a}, []File{o})
	l, _ := next(s, 0, []File{a, z, o}, nil)
	if order(l.Blocks) != "a@1 o@1 n@1" {
		t.Errorf("%q", order(l.Blocks))
	}
}

// Whatever the history: all that is asked for is there in its present form, nothing that looks like the present form
// of a named file is an old one, each superseded block is declared so after both, and the session survives storage.
func TestOldIsNeverTakenForNew(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	why := map[string]int{}
	for range 100 {
		var s Session
		version := map[string]int{}
		room := []int{0, 3000, 6000, 40000}[rng.IntN(4)]
		for range 25 {
			var files, outputs []File
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				if rng.IntN(6) == 0 {
					version[name] = rng.IntN(4) // forth and back
				}
				f := file(name, 1+len(name)+int(name[0]-'a'), fmt.Sprint(version[name]))
				switch rng.IntN(5) {
				case 0, 1, 2:
					files = append(files, f)
				case 3:
					outputs = append(outputs, f)
				}
			}
			rng.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
			var l Layout
			l, s = next(s, room, files, outputs)
			why[l.Why]++
			checkLayout(t, l, files, outputs)
			stored, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			s = Session{}
			if err := json.Unmarshal(stored, &s); err != nil {
				t.Fatal(err)
			}
		}
	}
	if why["append"] == 0 || why["rebuild"] == 0 {
		t.Errorf("layouts %v: one of them was never chosen", why)
	}
}

func checkLayout(t *testing.T, l Layout, files, outputs []File) {
	t.Helper()
	all := l.all()
	last := map[string]Block{}
	for i, b := range all {
		last[b.Path] = b
		for _, earlier := range all[:i] {
			if earlier.Path == b.Path && earlier.Version >= b.Version {
				t.Fatalf("%s: version %d follows %d", b.Path, b.Version, earlier.Version)
			}
		}
		var w strings.Builder
		b.render(&w)
		superseding := slices.ContainsFunc(all[:i], func(e Block) bool { return e.Path == b.Path })
		if superseding != strings.Contains(w.String(), "out of date: it no longer exists") {
			t.Fatalf("%s: superseding is %v, and says:\n%s", b.Path, superseding, w.String()[max(0, w.Len()-200):])
		}
	}
	named := map[string]bool{}
	for _, f := range append(slices.Clone(files), outputs...) {
		named[f.Path] = true
		if last[f.Path].Body != f.Body {
			t.Fatalf("%s: its last block is not what it is now", f.Path)
		}
	}
	for path := range last {
		if !named[path] && !slices.Contains(l.Unused, path) {
			t.Fatalf("%s is there and is not called unneeded", path)
		}
	}
}
