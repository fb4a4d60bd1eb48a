package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"localllm": main})
}

// Every script runs the real program with a home of its own and no engine in reach. Update the goldens by hand: they
// are what people see.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			for _, name := range []string{"CLAUDE_PROJECT_DIR", "OLLAMA_MODELS", "LOCALLLM_OLLAMA", "LOCALLLM_LLAMA_SERVER", "NO_COLOR"} {
				env.Setenv(name, "")
			}
			env.Setenv("LOCALLLM_HOME", env.WorkDir+"/home")
			env.Setenv("OLLAMA_HOST", "127.0.0.1:9") // the discard port: nobody is there
			env.Setenv("TMPDIR", os.TempDir())
			return nil
		},
	})
}
