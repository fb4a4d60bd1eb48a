//go:build unix

package toolloop

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"localllm/delegate"
)

// one runs one call and returns what the model was told.
func one(r *rig, task delegate.Task, name string, a any) string {
	r.t.Helper()
	r.model.say = []delegate.Completion{calls(name, a), says("There is nothing else to be done."), says("There is nothing else to be done.")}
	r.model.asked = nil
	r.run(task)
	told := r.model.told(0)
	if i := strings.LastIndex(told, "\n["); i >= 0 {
		told = told[:i] // the budget
	}
	return told
}

func TestPagesAreStable(t *testing.T) {
	var body strings.Builder
	for i := 1; i <= 1000; i++ {
		fmt.Fprintf(&body, "line %d\n", i)
	}
	r := newRig(t).write(map[string]string{"big.txt": body.String(), "wide.txt": strings.Repeat("x", 40_000) + "\nend\n", "empty.txt": "", "bare.txt": "a\nb", "crlf.txt": "a\r\nb\r\n"})
	var got strings.Builder
	for offset := 1; offset > 0; {
		told := one(r, delegate.Task{}, "read_file", args{"path": "big.txt", "offset": offset})
		if again := one(r, delegate.Task{}, "read_file", args{"path": "big.txt", "offset": offset}); again != told {
			t.Fatalf("the page at %d differs", offset)
		}
		head, page, _ := strings.Cut(told, "\n")
		got.WriteString(page + "\n")
		_, next, more := strings.Cut(head, "go on with offset ")
		offset = 0
		if more {
			_, _ = fmt.Sscan(next, &offset)
		}
	}
	if got.String() != body.String() {
		t.Error("the pages together are not the file")
	}
	for a, want := range map[string]string{
		`{"path":"big.txt","offset":1000,"limit":5}`: "big.txt, lines 1000 to 1000 of 1000:\nline 1000",
		`{"path":"big.txt","offset":1001}`:           "error: big.txt has only 1000 lines",
		`{"path":"empty.txt"}`:                       "empty.txt is empty",
		`{"path":"bare.txt"}`:                        "bare.txt, lines 1 to 2 of 2:\na\nb",
		`{"path":"./crlf.txt"}`:                      "crlf.txt, lines 1 to 2 of 2:\na\nb",
		`{"path":"."}`:                               "error: . is a folder",
		`{"path":"*.txt"}`:                           "error: ",
	} {
		if told := one(r, delegate.Task{}, "read_file", a); !strings.HasPrefix(told, want) {
			t.Errorf("%s: %s", a, told)
		}
	}
	if told := one(r, delegate.Task{}, "read_file", args{"path": "wide.txt"}); !strings.Contains(told, "[this line is 40001 bytes long]") || len(told) > 20<<10 || !strings.Contains(told, "go on with offset 2") {
		t.Errorf("%d bytes: %s", len(told), told[len(told)-100:])
	}
}

func TestWhatCanNotBeRead(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "x.txt"), []byte("hidden-text\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := newRig(t).write(map[string]string{".env": "KEY=hidden-text", "id_rsa": "hidden-text", "blob": "a\x00hidden-text", "ok.txt": "fine\n", "sub/.gitignore": "junk\n", "sub/junk": "x"})
	for link, to := range map[string]string{"link": filepath.Join(outside, "x.txt"), "folder": outside} {
		if err := os.Symlink(to, filepath.Join(r.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []string{".env", "id_rsa", "blob", "../x", "link", "folder/x.txt", filepath.Join(outside, "x.txt"), "/etc/passwd", "gone", "a\x00b", ""} {
		for _, name := range []string{"read_file", "edit_file"} {
			told := one(r, delegate.Task{}, name, args{"path": p, "old": "hidden", "new": "shown"})
			if !strings.HasPrefix(told, "error: ") || strings.Contains(told, "hidden-text") {
				t.Errorf("%s %q: %s", name, p, told)
			}
		}
	}
	for _, name := range []string{"search", "list_files"} {
		told := one(r, delegate.Task{}, name, args{"pattern": "hidden-text|fine"})
		if strings.Contains(told, "hidden-text") || !strings.Contains(told, "ok.txt") || strings.Contains(told, "junk") && !strings.Contains(told, ".gitignore") {
			t.Errorf("%s: %s", name, told)
		}
	}
	if told := one(r, delegate.Task{ReadRoots: []string{outside}}, "read_file", args{"path": filepath.Join(outside, "x.txt")}); !strings.Contains(told, "hidden-text") {
		t.Errorf("a read root: %s", told)
	}
	if told := one(r, delegate.Task{}, "read_file", args{"path": filepath.Join(r.dir, "ok.txt")}); !strings.Contains(told, "ok.txt, lines 1 to 1") {
		t.Errorf("the whole path: %s", told)
	}
}

func TestSearch(t *testing.T) {
	r := newRig(t).write(map[string]string{"a.go": "package a\nfunc Alpha() {}\n", "sub/b.go": "func alpha() {}\n", "many.txt": strings.Repeat("hit\n", 100)})
	for a, want := range map[string]string{
		`{"pattern":"func \\w+"}`:                             "a.go:2: func Alpha() {}\nsub/b.go:1: func alpha() {}",
		`{"pattern":"ALPHA","ignore_case":true,"path":"sub"}`: "sub/b.go:1: func alpha() {}",
		`{"pattern":"alpha","path":"*.go"}`:                   "nothing found",
		`{"pattern":"("}`:                                     "error: the pattern is no RE2 expression",
		`{"pattern":"x","path":"nowhere"}`:                    "error: nowhere: does not exist",
		`{"pattern":"(x+x+)+y","path":"a.go"}`:                "nothing found",
	} {
		if told := one(r, delegate.Task{}, "search", a); !strings.HasPrefix(told, want) {
			t.Errorf("%s: %s", a, told)
		}
	}
	if told := one(r, delegate.Task{}, "search", args{"pattern": "hit"}); strings.Count(told, "many.txt:") != maxMatches || !strings.Contains(told, "40 more") {
		t.Errorf("%s", told)
	}
}

func TestEdits(t *testing.T) {
	rows := []struct{ name, before, a, after, told string }{
		{"one place", "a b c\n", `{"old":"b","new":"B"}`, "a B c\n", "changed f.txt in 1 places"},
		{"several places", "b b\n", `{"old":"b","new":"B"}`, "b b\n", "occurs 2 times"},
		{"all places", "b b\n", `{"old":"b","new":"B","all":true}`, "B B\n", "changed f.txt in 2 places"},
		{"no place", "a\n", `{"old":"b","new":"B"}`, "a\n", "does not occur"},
		{"nothing new", "a\n", `{"old":"a","new":"a"}`, "a\n", "the same"},
		{"nothing old", "a\n", `{"old":"","new":"a"}`, "a\n", "old is empty"},
		{"windows' line ends", "a\r\nb\r\nc\r\n", `{"old":"a\nb","new":"x\ny"}`, "x\r\ny\r\nc\r\n", "changed"},
		{"elided", "func a() {\n\treturn\n}\n", `{"old":"\treturn","new":"\t// ... rest unchanged ..."}`, "func a() {\n\treturn\n}\n", "was not changed"},
	}
	for _, row := range rows {
		r := newRig(t).write(map[string]string{"f.txt": row.before})
		told := one(r, delegate.Task{}, "edit_file", strings.Replace(row.a, "{", `{"path":"f.txt",`, 1))
		if !strings.Contains(told, row.told) || r.read("f.txt") != row.after {
			t.Errorf("%s: %s, now %q", row.name, told, r.read("f.txt"))
		}
	}
	r := newRig(t).write(map[string]string{"f.go": "package f\n"})
	if told := one(r, delegate.Task{}, "edit_file", args{"path": "f.go", "old": "package f", "new": "package f\nfunc {"}); !strings.Contains(told, "but it does not parse") {
		t.Errorf("%s", told)
	}
	if told := one(r, delegate.Task{}, "edit_file", args{"path": "gone.go", "old": "a", "new": "b"}); !strings.Contains(told, "write_file makes it") {
		t.Errorf("%s", told)
	}
}

func TestWhatCanNotBeWritten(t *testing.T) {
	outside := t.TempDir()
	rows := []struct {
		path, told string
		task       delegate.Task
	}{
		{"../x.txt", "outside", delegate.Task{}},
		{filepath.Join(outside, "x.txt"), "absolute", delegate.Task{}},
		{".env", "secrets", delegate.Task{}},
		{".git/hooks/pre-commit", "by themselves", delegate.Task{}},
		{".claude/settings.json", "by themselves", delegate.Task{}},
		{"out/x.txt", "leads outside", delegate.Task{}},
		{"dir", "folder", delegate.Task{}},
		{"b.txt", "only these may be written: a.txt", delegate.Task{OutputFiles: []delegate.OutputFile{{Path: "a.txt"}}}},
		{"b.txt", "only these may be written: sub/", delegate.Task{WriteRoots: []string{"sub"}}},
		{"subway/b.txt", "only these may be written", delegate.Task{WriteRoots: []string{"./sub/"}}},
		{"b_test.go", "protected", delegate.Task{Protect: []string{"*_test.go"}}},
		{"tests/deep/b.txt", "protected", delegate.Task{Protect: []string{"tests"}}},
	}
	for _, row := range rows {
		r := newRig(t).write(map[string]string{"dir/x": "x"})
		if err := os.Symlink(outside, filepath.Join(r.dir, "out")); err != nil {
			t.Fatal(err)
		}
		told := one(r, row.task, "write_file", args{"path": row.path, "content": "by the model\n"})
		if !strings.HasPrefix(told, "error: ") || !strings.Contains(told, row.told) {
			t.Errorf("%s: %s", row.path, told)
		}
		if left, _ := os.ReadDir(outside); len(left) > 0 {
			t.Fatalf("%s: wrote outside", row.path)
		}
	}
	r := newRig(t)
	if told := one(r, delegate.Task{WriteRoots: []string{"sub"}}, "write_file", args{"path": "sub/b.txt", "content": "x"}); r.read("sub/b.txt") != "x\n" {
		t.Errorf("%s", told)
	}
	both := delegate.Task{WriteRoots: []string{"sub"}, OutputFiles: []delegate.OutputFile{{Path: "a.txt"}}}
	r = newRig(t)
	one(r, both, "write_file", args{"path": "b.txt", "content": "x"})
	if told := one(r, both, "write_file", args{"path": "sub/b.txt", "content": "x"}); !strings.HasPrefix(told, "wrote sub/b.txt") || r.read("b.txt") != "ABSENT" {
		t.Errorf("beside the outputs: %s", told)
	}
	if res := newRig(t).run(delegate.Task{WriteRoots: []string{outside}}); res.Status != delegate.Refused || !strings.Contains(res.Reason, "write_roots") {
		t.Errorf("%+v", res)
	}
	long := strings.Repeat("a line of the file\n", 200)
	r = newRig(t).write(map[string]string{"f.txt": long})
	if told := one(r, delegate.Task{}, "write_file", args{"path": "f.txt", "content": "a line\n"}); !strings.Contains(told, "was not written") || r.read("f.txt") != long {
		t.Errorf("a file that shrinks: %s", told)
	}
}
