//go:build unix

package enginetest

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"localllm/delegate"
	"localllm/internal/proc"
)

func kill(id proc.Identity) error { return proc.Signal(id, syscall.SIGKILL) }

func freeze(id proc.Identity) error { return proc.Signal(id, syscall.SIGSTOP) }

// filler is text of a file, about n bytes.
func filler(n int) string {
	return strings.Repeat("func add(a, b int) int { return a + b }\n", n/40+1)
}

func countsAndCache(t *testing.T, a Adapter) {
	h := host(t, a)
	server := begin(t, a, Settings{}, h)
	c := connect(t, a, server)
	prefix := []delegate.Message{{Role: delegate.System, Content: "Write what is asked."}, {Role: delegate.User, Content: filler(4000)}}
	warm, err := c.Warm(t.Context(), delegate.Request{Messages: prefix, Slot: 0})
	if err != nil || warm.Prompt < 500 || warm.Generated != 0 {
		t.Fatalf("Warm = %+v, %v", warm, err)
	}
	if again, err := c.Warm(t.Context(), delegate.Request{Messages: prefix, Slot: 0}); err != nil || again.Cached < again.Prompt-8 {
		t.Errorf("second Warm = %+v, %v", again, err)
	}
	whole := append([]delegate.Message(nil), prefix...)
	whole[1].Content += "\n" + Short
	n, exact, err := c.Count(t.Context(), whole, nil)
	if err != nil {
		t.Fatal(err)
	}
	var phases []string
	got, err := c.Complete(t.Context(), delegate.Request{Messages: whole, MaxTokens: 2, Slot: 0, Progress: func(g delegate.Generating) { phases = append(phases, g.Phase) }})
	if err != nil {
		t.Fatal(err)
	}
	if !exact || n != got.Tokens.Prompt {
		t.Errorf("counted %d (exact %v), the engine saw %d", n, exact, got.Tokens.Prompt)
	}
	if fresh := got.Tokens.Prompt - got.Tokens.Cached; got.Tokens.Cached == 0 || fresh > n-warm.Prompt+16 {
		t.Errorf("%d of %d tokens were prefilled after warming %d", fresh, got.Tokens.Prompt, warm.Prompt)
	}
	if got.Finish != delegate.FinishLength || got.Tokens.Generated != 2 {
		t.Errorf("cut off: %q after %d tokens", got.Finish, got.Tokens.Generated)
	}
	if len(phases) < 2 || phases[0] != "waiting" || phases[len(phases)-1] != "generating" {
		t.Errorf("phases %v", phases)
	}
	repair := append(whole, delegate.Message{Role: delegate.Assistant, Content: got.Text}, delegate.Message{Role: delegate.User, Content: "again: " + Short})
	second, err := c.Complete(t.Context(), delegate.Request{Messages: repair, MaxTokens: 2, Slot: 0})
	if err != nil || second.Tokens.Cached < got.Tokens.Prompt-16 {
		t.Errorf("an appended turn: %+v, %v; the turn before had %d tokens", second.Tokens, err, got.Tokens.Prompt)
	}
	over := []delegate.Message{{Role: delegate.User, Content: filler(a.Spec.Context * 8)}}
	if _, err := c.Complete(t.Context(), delegate.Request{Messages: over, Slot: 0}); err == nil {
		t.Error("a prompt over the context was taken")
	}
	stop(t, server)
}

func cancelFrees(t *testing.T, a Adapter) {
	h := host(t, a)
	server := begin(t, a, Settings{}, h)
	c := connect(t, a, server)
	for _, during := range []string{"prefill", "generating"} {
		prompt := Long
		if during == "prefill" {
			prompt = "different " + during + filler(a.Spec.Context*2)
		}
		ctx, cancel := context.WithCancel(t.Context())
		_, err := c.Complete(ctx, delegate.Request{
			Messages: []delegate.Message{{Role: delegate.User, Content: prompt}}, Slot: 0,
			Progress: func(g delegate.Generating) {
				if during == "prefill" || g.OutputTokens > 3 {
					time.AfterFunc(50*time.Millisecond, cancel)
				}
			},
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: Complete = %v", during, err)
		}
		began := time.Now()
		if _, err := c.Complete(t.Context(), ask(Short, 1)); err != nil {
			t.Errorf("%s: after the cancel: %v", during, err)
		}
		if took := time.Since(began); took > 3*time.Second { // the promise is one; the machine may be busy
			t.Errorf("%s: the slot was free after %v", during, took)
		} else {
			t.Logf("%s: the slot was free after %v", during, took)
		}
		cancel()
	}
	stop(t, server)
}
