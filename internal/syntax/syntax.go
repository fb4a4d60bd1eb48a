// Package syntax says whether a file parses, for the languages whose parser is at hand. It runs no program and
// judges no meaning.
package syntax

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"path"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/goccy/go-yaml/ast"
	yaml "github.com/goccy/go-yaml/parser"
	"github.com/tailscale/hujson"
	sh "mvdan.cc/sh/v3/syntax"
)

// Verdict is what a check came to.
type Verdict struct {
	Language string // empty: not known, and so not checked
	Err      error  // the first syntax error
}

// Check returns the first syntax error of a file, nil where it parses or its language is not known. It fits
// delegate.Gate.Parses.
func Check(name string, body []byte) error { return Of(name, body).Err }

// Of checks a file by its name's ending.
func Of(name string, body []byte) Verdict {
	language := languageOf(name)
	check := checks[language]
	if check == nil {
		return Verdict{}
	}
	return Verdict{Language: language, Err: guarded(check, name, bytes.TrimPrefix(body, []byte("\ufeff")))}
}

// guarded turns a parser's panic over hostile text into an error: the answer is not usable then either.
func guarded(check func(string, []byte) error, name string, body []byte) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the parser gave up: %v", r)
		}
	}()
	return check(name, body)
}

var checks = map[string]func(name string, body []byte) error{
	"go": checkGo, "json": checkJSON, "jsonc": checkJSONC, "jsonl": checkJSONLines, "toml": checkTOML, "yaml": checkYAML,
	"xml": checkXML, "shell": checkShell,
}

func languageOf(name string) string {
	base := strings.ToLower(path.Base(strings.ReplaceAll(name, `\`, "/")))
	switch base {
	case "go.mod", "go.sum":
		return ""
	case "tsconfig.json", "jsconfig.json", "devcontainer.json", ".eslintrc.json", "settings.json", "launch.json", "tasks.json", "extensions.json":
		return "jsonc" // these are read with comments by the programs that own them
	case "cargo.lock", "poetry.lock", "pipfile":
		return "toml"
	}
	switch path.Ext(base) {
	case ".go":
		return "go"
	case ".json", ".webmanifest", ".ipynb", ".geojson":
		return "json"
	case ".jsonc", ".code-workspace":
		return "jsonc"
	case ".jsonl", ".ndjson":
		return "jsonl"
	case ".toml":
		return "toml"
	case ".yaml", ".yml":
		return "yaml"
	case ".xml", ".svg", ".xsd", ".plist", ".csproj", ".pom":
		return "xml"
	case ".sh", ".bash":
		return "shell"
	}
	return ""
}

func checkGo(name string, body []byte) error {
	_, err := parser.ParseFile(token.NewFileSet(), path.Base(name), body, parser.SkipObjectResolution)
	var list scanner.ErrorList
	if errors.As(err, &list) && len(list) > 0 {
		return fmt.Errorf("line %d: %s", list[0].Pos.Line, list[0].Msg)
	}
	return err
}

func checkJSON(_ string, body []byte) error {
	var v any
	err := json.Unmarshal(body, &v)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("line %d: %s", lineAt(body, int(syntax.Offset)), syntax)
	}
	return err
}

func checkJSONC(_ string, body []byte) error {
	_, err := hujson.Parse(body)
	return err
}

func checkJSONLines(name string, body []byte) error {
	for i, line := range bytes.Split(body, []byte("\n")) {
		if len(bytes.TrimSpace(line)) > 0 && !json.Valid(line) {
			return fmt.Errorf("line %d: not a JSON value", i+1)
		}
	}
	return nil
}

func checkTOML(_ string, body []byte) error {
	var v map[string]any
	err := toml.Unmarshal(body, &v)
	var syntax toml.ParseError
	if errors.As(err, &syntax) {
		return fmt.Errorf("line %d: %s", syntax.Position.Line, syntax.Message)
	}
	return err
}

// checkYAML also refuses a document that is one piece of prose: YAML would take it for a string.
func checkYAML(_ string, body []byte) error {
	if bytes.Contains(body, []byte("{{")) || bytes.Contains(body, []byte("{%")) {
		return nil // a template of something that becomes YAML later
	}
	f, err := yaml.ParseBytes(body, 0)
	if err != nil {
		return errors.New(firstLine(err.Error()))
	}
	for _, doc := range f.Docs {
		if s, ok := doc.Body.(*ast.StringNode); ok && strings.Contains(s.Value, " ") {
			return errors.New("it is one sentence, not a mapping or a list")
		}
	}
	return nil
}

func checkXML(_ string, body []byte) error {
	d := xml.NewDecoder(bytes.NewReader(body))
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	elements := 0
	for {
		t, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if _, ok := t.(xml.StartElement); ok {
			elements++
		}
	}
	if elements == 0 {
		return errors.New("it has no element")
	}
	return nil
}

func lineAt(body []byte, offset int) int {
	return 1 + bytes.Count(body[:min(max(offset, 0), len(body))], []byte("\n"))
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

// checkShell reads as bash, of which POSIX shell is a part; zsh and fish are other languages.
func checkShell(_ string, body []byte) error {
	first, _, _ := bytes.Cut(body, []byte("\n"))
	if bytes.HasPrefix(first, []byte("#!")) && !bytes.Contains(first, []byte("sh")) || bytes.Contains(first, []byte("zsh")) || bytes.Contains(first, []byte("fish")) {
		return nil
	}
	_, err := sh.NewParser(sh.Variant(sh.LangBash)).Parse(bytes.NewReader(body), "")
	return err
}
