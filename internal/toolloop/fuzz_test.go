package toolloop

import (
	"encoding/json"
	"testing"
)

// What a model writes is foreign text.
func FuzzCalls(f *testing.F) {
	f.Add("Let me look.\n<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a.go\"}}\n</tool_call>")
	f.Add("<tool_call>{\"name\":\"x\",\"arguments\":{\"path\":</tool_call><tool_call>{}</tool_call>")
	f.Add(`{"path": 7}`)
	f.Add(`{"path": null, "content": "x", "line": 1e99}`)
	f.Fuzz(func(t *testing.T, said string) {
		rest, calls := callsInText(said)
		if len(rest) > len(said) || len(calls) > mostCalls || len(calls) == 0 && rest != said {
			t.Errorf("%d calls, and %q is left", len(calls), rest)
		}
		_ = looksLikeCall(said)
		given := []string{said}
		for _, c := range calls {
			if c.Name == "" || !json.Valid([]byte(c.Arguments)) {
				t.Errorf("call %+v", c)
			}
			given = append(given, c.Arguments)
		}
		for _, raw := range given {
			for _, tool := range tools() {
				a, problem := tool.decode(raw)
				if problem != "" {
					continue
				}
				set := map[string]*string{"path": a.Path, "pattern": a.Pattern, "content": a.Content, "old": a.Old, "new": a.New, "command": a.Command}
				for _, need := range tool.needs {
					if set[need] == nil {
						t.Errorf("%s without %s", tool.Name, need)
					}
				}
			}
		}
	})
}
