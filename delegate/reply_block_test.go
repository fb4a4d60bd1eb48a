package delegate

import "testing"

func TestOneBlock(t *testing.T) {
	const body = "x = 1\ny = 2\n"
	for name, c := range map[string]struct {
		text string
		want string // empty: not one block
	}{
		"a known language":    {"```python\n" + body + "```\n", body},
		"no language":         {"```\n" + body + "```", body},
		"words around it":     {"Here it is:\n\n```go\n" + body + "```\nThat was it.\n", body},
		"a name above it":     {"handlers/user.go\n```go\n" + body + "```\n", body},
		"not closed":          {"```python\n" + body, body},
		"CRLF":                {"```python\r\nx = 1\r\ny = 2\r\n```\r\n", body},
		"no fence":            {body, ""},
		"two blocks":          {"```go\na\n```\n```go\nb\n```\n", ""},
		"two named blocks":    {"a.go\n```go\na\n```\nb.go\n```go\nb\n```\n", ""},
		"one named, one not":  {"a.go\n```go\na\n```\n\n```sh\nls\n```\n", ""},
		"a diff":              {"```diff\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n```\n", ""},
		"nothing":             {"", ""},
		"a fence and nothing": {"```", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := OneBlock(c.text)
			if got != c.want || ok && c.want == "" && got != "" {
				t.Errorf("%q, %v; want %q", got, ok, c.want)
			}
		})
	}
}
