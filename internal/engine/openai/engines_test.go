package openai

import (
	"os"
	"testing"

	"localllm/internal/engine/protocoltest"
	"localllm/internal/practice"
	"localllm/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }

// Both engines by their routes of this format.
func TestRealEngines(t *testing.T) {
	for _, kind := range harness.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			s := harness.Start(t, kind, protocoltest.Script, practice.Options{Tools: true})
			c, err := Connect(protocoltest.At(s.URL, s.Model), string(kind))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			protocoltest.Real(t, c)
		})
	}
}
