package repotest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const (
	module   = "localllm"
	maxLines = 400
)

// tracked lists what git tracks or would track, so that build outputs and engines don't count.
func tracked(t *testing.T) (root string, files []string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		if info, err := os.Lstat(filepath.Join(root, name)); err == nil && info.Mode().IsRegular() {
			files = append(files, name)
		}
	}
	if len(files) < 10 {
		t.Fatalf("only %d files tracked: the look-up is broken", len(files))
	}
	return root, files
}

func parse(t *testing.T, root, name string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// The table of who may import what of ours. A package that is not named may import any leaf of internal/.
var ours = map[string][]string{
	"capability": {},
	"scoring":    {},
	"stats":      {},
	"lifecycle":  {"capability"},
	"delegate":   {},
}

// What reaches outside, and so has no place in a package that decides.
var outside = []string{"os/exec", "net/http", "C", "github.com/mark3labs/mcp-go"}

// violation says why a package in dir may not import imp, or "".
func violation(dir, imp string) string {
	rel, isOurs := strings.CutPrefix(imp, module+"/")
	top, _, _ := strings.Cut(dir, "/")
	if allowed, decides := ours[top]; decides {
		for _, o := range outside {
			if imp == o || strings.HasPrefix(imp, o+"/") {
				return "top-level packages decide; what reaches outside belongs into internal/"
			}
		}
		if isOurs && !within(rel, append([]string{top}, allowed...)) {
			return "top-level " + top + " may import of ours only " + strings.Join(append([]string{"itself"}, allowed...), ", ")
		}
	}
	switch {
	case !isOurs:
		if strings.HasPrefix(imp, "github.com/mark3labs/mcp-go") && !within(dir, []string{"internal/mcpserver"}) {
			return "only internal/mcpserver speaks MCP"
		}
	case rel == "internal/app" && !within(dir, []string{"cmd", "internal/app"}):
		return "only cmd imports app: everything else is wired by it"
	case within(rel, []string{"cmd"}):
		return "nothing imports a command"
	case within(rel, []string{"test"}) && !within(dir, []string{"test"}):
		return "product code does not import what exists for tests"
	case within(dir, []string{"internal/engine"}) && within(rel, []string{"internal/mcpserver", "internal/keeper", "internal/workspace", "scoring", "stats"}):
		return "an engine knows lifecycle, delegate, capability and leaves, nothing else"
	}
	return ""
}

func within(dir string, roots []string) bool {
	for _, r := range roots {
		if dir == r || strings.HasPrefix(dir, r+"/") {
			return true
		}
	}
	return false
}

func TestImports(t *testing.T) {
	root, files := tracked(t)
	for _, name := range files {
		if !strings.HasSuffix(name, ".go") || strings.Contains(name, "testdata/") {
			continue
		}
		isTest := strings.HasSuffix(name, "_test.go")
		for _, spec := range parse(t, root, name).Imports {
			imp, _ := strconv.Unquote(spec.Path.Value)
			// Tests of any package may use the engines, the harness and real processes.
			if isTest && (within(imp, []string{module + "/test"}) || within(path.Dir(name), []string{"capability", "lifecycle", "delegate", "scoring", "stats"})) {
				continue
			}
			if why := violation(path.Dir(name), imp); why != "" {
				t.Errorf("%s imports %s: %s", name, imp, why)
			}
		}
	}
}

// The table itself must refuse what it is for.
func TestImportTableRefuses(t *testing.T) {
	for _, c := range []struct {
		dir, imp string
		ok       bool
	}{
		{"scoring", "os/exec", false},
		{"delegate", "net/http", false},
		{"delegate", "net/http/httptest", false},
		{"capability", "localllm/internal/gpu", false},
		{"lifecycle", "localllm/capability", true},
		{"lifecycle", "localllm/delegate", false},
		{"stats", "localllm/scoring", false},
		{"internal/keeper", "localllm/internal/app", false},
		{"internal/keeper", "os/exec", true},
		{"cmd/localllm", "localllm/internal/app", true},
		{"internal/app", "github.com/mark3labs/mcp-go/mcp", false},
		{"internal/proc", "localllm/test/harness", false},
	} {
		if got := violation(c.dir, c.imp); (got == "") != c.ok {
			t.Errorf("%s importing %s: %q", c.dir, c.imp, got)
		}
	}
}

func TestOneCommentAPackage(t *testing.T) {
	root, files := tracked(t)
	comments := map[string][]string{}
	for _, name := range files {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "testdata/") {
			continue
		}
		f := parse(t, root, name)
		dir := path.Dir(name)
		if comments[dir] == nil {
			comments[dir] = []string{}
		}
		if f.Doc != nil {
			comments[dir] = append(comments[dir], name)
			if f.Name.Name != "main" && !strings.HasPrefix(f.Doc.Text(), "Package "+f.Name.Name+" ") {
				t.Errorf("%s: the package comment starts with %q", name, strings.SplitN(f.Doc.Text(), "\n", 2)[0])
			}
		}
	}
	for dir, in := range comments {
		if len(in) != 1 {
			t.Errorf("%s has %d package comments %v, want one", dir, len(in), in)
		}
	}
}

func TestFilesAreShort(t *testing.T) {
	root, files := tracked(t)
	for _, name := range files {
		if !strings.HasSuffix(name, ".go") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(b, []byte("\n")); n > maxLines {
			t.Errorf("%s has %d lines, want at most %d: split it by what it does", name, n, maxLines)
		}
	}
}

// Where packages come from is the machine's own business: its clients know their registries. The names are put
// together here so that this file passes its own test.
var registryHosts = regexp.MustCompile(`(?i)` + strings.Join([]string{
	`proxy\.` + `golang`, `sum\.` + `golang`, `goproxy` + `\.(io|cn)`,
	`registry\.` + `npmjs`, `npmjs` + `\.(com|org)`, `registry\.` + `yarnpkg`,
	`deb\.` + `debian`, `debian` + `\.(org|net)`, `ubuntu` + `\.com`,
	`pypi` + `\.org`, `pythonhosted` + `\.org`, `crates` + `\.io`,
}, "|"))

func TestNoRegistryHosts(t *testing.T) {
	root, files := tracked(t)
	for _, name := range files {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range bytes.Split(b, []byte("\n")) {
			if m := registryHosts.Find(line); m != nil {
				t.Errorf("%s:%d names the registry host %q", name, i+1, m)
			}
		}
	}
}

func TestSecretsAndBuildOutputsAreNotTracked(t *testing.T) {
	root, files := tracked(t)
	for _, name := range files {
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > 1<<20 {
			t.Errorf("%s is %d KiB: large files are made by the repository, not kept in it", name, info.Size()>>10)
		}
		if info.Mode()&fs.ModePerm&0o002 != 0 {
			t.Errorf("%s can be written by anyone", name)
		}
	}
}
