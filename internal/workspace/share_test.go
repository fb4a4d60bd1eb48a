//go:build unix

package workspace_test

import (
	"fmt"
	"strings"
	"testing"

	"localllm/delegate"
	"localllm/internal/engine/llamaserver"
	"localllm/internal/practice"
	"localllm/lifecycle"
	"localllm/test/harness"
)

// On the real llama-server, a batch over four slots reads the context that its tasks share once, by the engine's own
// counters; without slot states it is read once on the warm slot, the tasks one after the other.
func TestBatchReadsItsSharedContextOnce(t *testing.T) {
	server := harness.Start(t, harness.LlamaServer, practice.Script{{Say: "It adds two numbers and returns the sum."}}, practice.Options{},
		"-c", "65536", "-np", "4", "--no-kv-unified", "--slots", "--slot-save-path", t.TempDir())
	for _, states := range []bool{true, false} {
		client, err := llamaserver.Connect(lifecycle.Endpoint{Engine: lifecycle.LlamaServer, URL: server.URL, Model: server.Model, Context: 16384, Slots: 4, SlotStates: states})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		r := newRig(t, nil)
		for i := range 4 {
			r.put(fmt.Sprintf("src/f%d.go", i), "package src\n\n"+strings.Repeat(fmt.Sprintf("// Case %v %d is one of many.\n", states, i), 40))
		}
		var model delegate.Completer = client
		if !states {
			model = pinned{client}
		}
		r.Runner = assemble(t, r.layout, r.root, model)
		jobs := make([]delegate.Job, 8)
		for i := range jobs {
			jobs[i] = delegate.Job{ID: fmt.Sprint(i), Task: delegate.Task{Task: fmt.Sprintf("What is question %d about?", i), ContextFiles: []string{"src"}, MaxTokens: 64}}
		}
		res, err := r.Batch(t.Context(), jobs)
		if err != nil || !res.OK {
			t.Fatalf("%v %+v", err, res)
		}
		prompt, read, cold := 0, 0, 0
		for _, one := range res.Results {
			prompt += one.Tokens.Prompt
			read += one.Tokens.Prompt - one.Tokens.Cached
			if one.Tokens.Cached < one.Tokens.Prompt/2 {
				cold++
			}
		}
		t.Logf("slot states %v: %d tokens in 8 prompts, %d of them read, %d prompts cold", states, prompt, read, cold)
		// With states the warming request reads the context, and no task does; else the first task does.
		if want := map[bool]int{true: 0, false: 1}[states]; cold != want || read > prompt/8*(want+2) {
			t.Errorf("slot states %v: of %d tokens %d were read anew, %d prompts were cold, want %d", states, prompt, read, cold, want)
		}
	}
}

// pinned is an endpoint that pins slots and can't copy them.
type pinned struct{ delegate.Completer }

func (p pinned) Limits() delegate.Limits {
	l := p.Completer.Limits()
	l.PinnedSlots = true
	return l
}
