package delegate

import (
	"encoding/json"
	"errors"
	goparser "go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// minFixtures is what the forms that models use come to; fewer means that some were lost.
const minFixtures = 120

// fixture is one answer with what must become of it. The header of its file says:
//
//	outputs: a.go, b.go(edit)   the declared outputs
//	finish: length              stop where absent
//	reject: diff|edit           kinds, one of which is right; accepted where absent
//	warn: words                 part of a warning that must be there
//	flags: crlf …               what the file format can't hold: see its use below
type fixture struct {
	completion Completion
	gate       Gate
	want       map[string]string
	reject     []string
	warn       string
}

func readFixture(t *testing.T, name string) fixture {
	t.Helper()
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	f := fixture{completion: Completion{Finish: FinishStop}, want: map[string]string{}}
	header := map[string]string{}
	for _, line := range strings.Split(string(archive.Comment), "\n") {
		if key, value, ok := strings.Cut(line, ": "); ok && !strings.HasPrefix(line, "#") {
			header[key] = value
		}
	}
	if header["finish"] != "" {
		f.completion.Finish = header["finish"]
	}
	if header["reject"] != "" {
		f.reject = strings.Split(header["reject"], "|")
	}
	f.warn = header["warn"]
	flags := strings.Fields(header["flags"])
	for _, o := range strings.Split(header["outputs"], ", ") {
		path, edit := strings.CutSuffix(o, "(edit)")
		f.gate.Outputs = append(f.gate.Outputs, Output{Path: path, Edit: edit})
	}
	for _, file := range archive.Files {
		part, path, _ := strings.Cut(file.Name, "/")
		body := changed(string(file.Data), part, flags)
		switch part {
		case "reply":
			f.completion.Text = body
		case "want":
			f.want[path] = body
		case "was":
			i := slices.IndexFunc(f.gate.Outputs, func(o Output) bool { return o.Path == path })
			f.gate.Outputs[i].Exists, f.gate.Outputs[i].Body = true, body
		}
	}
	f.gate.AllowShrink = slices.Contains(flags, "allow-shrink")
	f.gate.Parses = parses
	return f
}

func changed(body, part string, flags []string) string {
	has := func(flag string) bool {
		if part != "reply" {
			flag = part + "-" + flag
		}
		return slices.Contains(flags, flag)
	}
	if part == "reply" && slices.Contains(flags, "cut-newline") || has("cut") {
		body = strings.TrimSuffix(body, "\n")
	}
	if has("crlf") {
		body = strings.ReplaceAll(body, "\n", "\r\n")
	}
	if has("bom") {
		body = "\ufeff" + body
	}
	return body
}

// parses stands for the real check, which lives outside of this package.
func parses(path string, body []byte) error {
	switch filepath.Ext(path) {
	case ".go":
		_, err := goparser.ParseFile(token.NewFileSet(), path, body, 0)
		return err
	case ".json":
		var v any
		return json.Unmarshal(body, &v)
	}
	return nil
}

func TestReplies(t *testing.T) {
	names, err := filepath.Glob("testdata/replies/*.txtar")
	if err != nil || len(names) < minFixtures {
		t.Fatalf("%d fixtures, want at least %d (%v)", len(names), minFixtures, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			f := readFixture(t, name)
			answer, err := f.gate.Files(f.completion)
			var rejection *Rejection
			if errors.As(err, &rejection) {
				if !slices.Contains(f.reject, rejection.Kind) {
					t.Fatalf("rejected as %s: %s; want %v", rejection.Kind, rejection.Reason, f.reject)
				}
				if rejection.Reason == "" || rejection.Ask == "" || strings.HasSuffix(rejection.Reason, ".") {
					t.Errorf("badly worded: %+v", rejection)
				}
				return
			}
			if len(f.reject) > 0 {
				t.Fatalf("accepted %q, want it rejected as %v", answer.Files, f.reject)
			}
			if len(answer.Files) != len(f.gate.Outputs) || len(f.want) != len(f.gate.Outputs) {
				t.Fatalf("%d files of %d declared, %d wanted", len(answer.Files), len(f.gate.Outputs), len(f.want))
			}
			for i, file := range answer.Files {
				if file.Path != f.gate.Outputs[i].Path {
					t.Errorf("file %d is %s, declared is %s", i, file.Path, f.gate.Outputs[i].Path)
				}
				if file.Body != f.want[file.Path] {
					t.Errorf("%s:\n%q\nwant\n%q", file.Path, file.Body, f.want[file.Path])
				}
			}
			if f.warn != "" && !strings.Contains(strings.Join(answer.Warnings, "\n"), f.warn) {
				t.Errorf("warnings %q, want %q", answer.Warnings, f.warn)
			}
		})
	}
}

// FuzzReply: whatever a model writes, nothing but the declared outputs comes out, and no answer is both used and refused.
func FuzzReply(f *testing.F) {
	names, _ := filepath.Glob("testdata/replies/*.txtar")
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		outputs := ""
		for _, line := range strings.Split(string(archive.Comment), "\n") {
			if value, ok := strings.CutPrefix(line, "outputs: "); ok {
				outputs = value
			}
		}
		f.Add(string(archive.Files[0].Data), outputs)
	}
	f.Fuzz(func(t *testing.T, reply, declared string) {
		var outputs []Output
		for _, o := range strings.SplitN(declared, ", ", 5) {
			path, edit := strings.CutSuffix(o, "(edit)")
			outputs = append(outputs, Output{Path: path, Edit: edit, Exists: edit, Body: strings.Repeat("line\n", 3)})
		}
		answer, err := Gate{Outputs: outputs, AllowShrink: true}.Files(Completion{Text: reply, Finish: FinishStop})
		var rejection *Rejection
		if err != nil {
			if !errors.As(err, &rejection) || len(answer.Files) > 0 || rejection.Reason == "" {
				t.Fatalf("error %v beside %d files", err, len(answer.Files))
			}
			return
		}
		if len(answer.Files) != len(outputs) {
			t.Fatalf("%d files for %d outputs", len(answer.Files), len(outputs))
		}
		for i, file := range answer.Files {
			if file.Path != outputs[i].Path {
				t.Fatalf("%q was never declared", file.Path)
			}
			if len(file.Body) > 2*len(reply)+len(outputs[i].Body)+16 {
				t.Fatalf("%d bytes out of an answer of %d", len(file.Body), len(reply))
			}
		}
	})
}
