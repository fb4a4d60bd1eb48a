package workspace_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"localllm/delegate"
)

// Whatever is asked for wrongly, the answer says what is wrong and what to do, the model is not asked and nothing moves.
func TestBadInput(t *testing.T) {
	ok := delegate.Task{Task: "t", OutputFiles: out("a.txt")}
	rows := map[string]struct {
		set  func(*delegate.Task)
		says string
	}{
		"a folder as output":        {func(t *delegate.Task) { t.OutputFiles = out("sub") }, "folder"},
		"a binary output":           {func(t *delegate.Task) { t.OutputFiles = out("bin.dat") }, "binary"},
		"a binary context file":     {func(t *delegate.Task) { t.ContextFiles = []string{"bin.dat"} }, "binary"},
		"context that is not there": {func(t *delegate.Task) { t.ContextFiles = []string{"nothing.txt"} }, "nothing.txt"},
		"50,000 files by a glob":    {func(t *delegate.Task) { t.ContextFiles = []string{"many/**"} }, "many/**"},
		"a glob that is none":       {func(t *delegate.Task) { t.ContextFiles = []string{"[a-"} }, "[a-"},
		"output equal to context":   {func(t *delegate.Task) { t.ContextFiles = []string{"./a.txt"} }, "also output_files[0]"},
		"a verify that is missing":  {func(t *delegate.Task) { t.Verify = []byte(`["no-such-program"]`) }, "no-such-program"},
		"protect outside":           {func(t *delegate.Task) { t.Protect = []string{"../x"}; t.Verify = sh("false") }, "outside"},
		"the same output twice":     {func(t *delegate.Task) { t.OutputFiles = out("a.txt", "./a.txt") }, "again"},
		"no task":                   {func(t *delegate.Task) { t.Task = "" }, "task is missing"},
		"an odd verify":             {func(t *delegate.Task) { t.Verify = []byte(`7`) }, "verify takes"},
		"attempts":                  {func(t *delegate.Task) { t.Attempts = -1 }, "attempts takes"},
	}
	r := newRig(t, map[string]string{"a.txt": "old\n", "sub/b.txt": "b\n", "bin.dat": "\x00\x01"}, says(files("a.txt", "new\n")))
	before := photograph(t, r.root)
	many := filepath.Join(r.root, "many")
	for i := range 50_000 {
		dir := filepath.Join(many, fmt.Sprint(i/1000))
		if i%1000 == 0 {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		f, err := os.Create(filepath.Join(dir, fmt.Sprint(i, ".txt")))
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	}
	for name, row := range rows {
		task := ok
		row.set(&task)
		asked := len(r.script.requests)
		res, err := r.Run(t.Context(), delegate.Job{ID: "bad", Task: task, Slot: -1})
		said, hint := res.Reason, res.Hint
		var field *delegate.FieldError
		if errors.As(err, &field) {
			said, hint = err.Error(), strings.Join(field.Hints(), "")
		} else if err != nil || res.Status != delegate.Refused {
			t.Errorf("%s: %v %+v", name, err, res)
		}
		if !strings.Contains(said, row.says) || hint == "" {
			t.Errorf("%s: %q, hint %q; want %q", name, said, hint, row.says)
		}
		if len(r.script.requests) > asked {
			t.Errorf("%s: the model was asked", name)
		}
	}
	if err := os.RemoveAll(many); err != nil {
		t.Fatal(err)
	}
	same(t, "bad input", before, photograph(t, r.root))
	r.clean()
}

func TestTreeThatCanNotBeWritten(t *testing.T) {
	if os.Getuid() == 0 {
		// root writes where the mode forbids it, so only a file system that is read-only will do.
		r := newRig(t, nil, says(""))
		r.root = "/proc"
		r.Runner = assemble(t, r.layout, "/proc", r.script)
		if res := r.run(delegate.Task{Task: "t", OutputFiles: out("fs/x.txt")}); res.OK || res.Reason == "" {
			t.Errorf("%+v", res)
		}
		return
	}
	r := newRig(t, map[string]string{"ro/a.txt": "old\n"}, says(files("ro/b.txt", "new\n")))
	if err := os.Chmod(filepath.Join(r.root, "ro"), 0o555); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Join(r.root, "ro"), 0o755)
	if res := r.run(delegate.Task{Task: "t", OutputFiles: out("ro/b.txt")}); res.Status != delegate.Refused || len(r.script.requests) > 0 {
		t.Errorf("%+v", res)
	}
}
