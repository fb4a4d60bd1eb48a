package delegate_test

import (
	"context"
	"strings"
	"testing"

	"localllm/delegate"
)

// A secret in an ordinary file does not reach an endpoint elsewhere, and is still in the file that comes back.
func TestSecretsStayHereAndComeBack(t *testing.T) {
	hide := func(s string) (string, func(string) string) {
		return strings.ReplaceAll(s, "sesame", "HIDDEN_1"), func(t string) string { return strings.ReplaceAll(t, "HIDDEN_1", "sesame") }
	}
	for _, loopback := range []bool{true, false} {
		b := newBench(outcomes(red(""), red(""), green("")))
		b.Hide = hide
		b.model.limits.Loopback = loopback
		b.tree.files["a.txt"], b.tree.files["shown.txt"] = "key = sesame\n", "also sesame\n"
		b.model.do = func(_ context.Context, r delegate.Request) (delegate.Completion, error) {
			body := "key = HIDDEN_1\nnew\n"
			for _, m := range r.Messages {
				if strings.Contains(m.Content, "sesame") {
					body = "key = sesame\nnew\n"
				}
			}
			return delegate.Completion{Text: block("a.txt", body), Finish: delegate.FinishStop}, nil
		}
		res := b.run(t, writeA)
		if res.Status != delegate.Proven || b.tree.files["a.txt"] != "key = sesame\nnew\n" {
			t.Errorf("loopback %v: %+v, %q", loopback, res, b.tree.files["a.txt"])
		}
		for _, q := range b.model.requests {
			for _, m := range q.Messages {
				if strings.Contains(m.Content, "sesame") != loopback && strings.Contains(m.Content, "key =") {
					t.Errorf("loopback %v, sent: %s", loopback, m.Content)
				}
			}
		}
	}
}

// In a tool loop the model's own calls go back to it with the next request: by then they hold the secret again.
func TestSecretsInCallsStayHereToo(t *testing.T) {
	hide := func(s string) (string, func(string) string) {
		return strings.ReplaceAll(s, "sesame", "HIDDEN_1"), func(t string) string { return strings.ReplaceAll(t, "HIDDEN_1", "sesame") }
	}
	b := newBench(outcomes())
	b.model.limits.Loopback = false
	b.model.do = func(context.Context, delegate.Request) (delegate.Completion, error) {
		return delegate.Completion{Calls: []delegate.ToolCall{{Name: "write_file", Arguments: `{"content":"HIDDEN_1"}`}}}, nil
	}
	c := delegate.Hidden(b.model, hide)
	history := []delegate.Message{{Role: delegate.User, Content: "key = sesame"}, {Role: delegate.Assistant, Calls: []delegate.ToolCall{{Name: "write_file", Arguments: `{"content":"sesame"}`}}}}
	answer, err := c.Complete(t.Context(), delegate.Request{Messages: history})
	if err != nil || answer.Calls[0].Arguments != `{"content":"sesame"}` {
		t.Errorf("%+v %v", answer, err)
	}
	if sent := b.model.requests[0].Messages[1].Calls[0].Arguments; strings.Contains(sent, "sesame") {
		t.Errorf("sent %s", sent)
	}
	if kept := history[1].Calls[0].Arguments; kept != `{"content":"sesame"}` {
		t.Errorf("the history itself was changed: %s", kept)
	}
}
