package delegate

import "context"

// hiding keeps secrets from an endpoint that is not on this machine. A secret is replaced by the same word each time,
// so that the prefix stays the same, and the word in an answer becomes the secret again.
type hiding struct {
	Completer
	hide func(string) (string, func(string) string)
}

// Hidden is c with secrets hidden from it by hide, see Runner.Hide; c itself where it is loopback.
func Hidden(c Completer, hide func(string) (string, func(string) string)) Completer {
	if hide == nil || c.Limits().Loopback {
		return c
	}
	return hiding{c, hide}
}

func (r *Runner) completer() Completer { return Hidden(r.Completer, r.Hide) }

func (h hiding) Complete(ctx context.Context, r Request) (Completion, error) {
	var reveals []func(string) string
	r.Messages, reveals = h.messages(r.Messages)
	c, err := h.Completer.Complete(ctx, r)
	for _, reveal := range reveals {
		c.Text = reveal(c.Text)
		for i := range c.Calls {
			c.Calls[i].Arguments = reveal(c.Calls[i].Arguments)
		}
	}
	return c, err
}

func (h hiding) Count(ctx context.Context, messages []Message, tools []Tool) (int, bool, error) {
	hidden, _ := h.messages(messages)
	return h.Completer.Count(ctx, hidden, tools)
}

func (h hiding) messages(messages []Message) ([]Message, []func(string) string) {
	out := make([]Message, len(messages))
	var reveals []func(string) string
	for i, m := range messages {
		hidden, reveal := h.hide(m.Content)
		if hidden != m.Content {
			reveals = append(reveals, reveal)
		}
		m.Content = hidden
		if len(m.Calls) > 0 { // what it wrote comes back to it with its own words for the secrets
			m.Calls = append([]ToolCall(nil), m.Calls...)
			for j := range m.Calls {
				m.Calls[j].Arguments, _ = h.hide(m.Calls[j].Arguments)
			}
		}
		out[i] = m
	}
	return out, reveals
}
