package capability

import (
	"strings"
	"testing"
)

// The reason is about the engine that was asked for, and not about another one that has trouble of its own.
func TestTheReasonNamesTheEngineAskedFor(t *testing.T) {
	s := Survey{Engines: []EngineInfo{{Name: Ollama, State: Unreachable, URL: "http://10.0.0.5:11434"}, {Name: LlamaServer, State: Missing}}}
	for engine, want := range map[string]string{"": "ollama at http://10.0.0.5:11434 does not answer", Ollama: "does not answer", LlamaServer: "llama-server is not installed"} {
		d := Pick(s, DefaultCatalog(), Request{Engine: engine})
		if got := strings.Join(d.Reasons, "; "); d.CanEnable || !strings.Contains(got, want) {
			t.Errorf("engine %q: %q, want %q", engine, got, want)
		}
	}
}
