package delegate

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Repair appends the model's answer and what was wrong with it as turns, so that all that was sent before is found in
// the cache. It returns *Unfit where the window has no room for another answer; a fresh sample of p is what is left then.
func (p Prompt) Repair(ctx context.Context, c Completer, in Input, answer, feedback string) (Prompt, error) {
	text, _ := dropThinking(answer)
	if strings.TrimSpace(text) == "" {
		text = "(no answer)"
	}
	if f := FamilyOf(in.Model); f.NoThink != "" && !in.Think {
		feedback = strings.TrimRight(feedback, "\n") + "\n\n" + f.NoThink
	}
	next := p
	next.Messages = append(slices.Clone(p.Messages), Message{Role: Assistant, Content: text}, Message{Role: User, Content: feedback})
	n, exact, err := c.Count(ctx, next.Messages, nil)
	if err != nil {
		return Prompt{}, fmt.Errorf("counting the repair's tokens: %w", err)
	}
	next.Tokens, next.Exact = n, exact
	if window := c.Limits().Context; window > 0 {
		need := answerNeed(in, p.Outputs)
		if n+need > window {
			return Prompt{}, &Unfit{Prompt: n, Answer: need, Context: window, Exact: exact}
		}
		next.Room = window - n
	}
	return next, nil
}

// RejectedTurn asks for the answer again after the gate refused it.
func RejectedTurn(r *Rejection) string {
	return "Your answer could not be used: " + r.Reason + ".\n" + r.Ask + "\n"
}

// FailedTurn asks for a repair after the caller's verify command failed. packed is the bounded output of the command.
func FailedTurn(command, packed string) string {
	fence := fenceFor(packed)
	return "The files were written, and this check failed:\n\n" + fence + "\n$ " + command + "\n" + strings.TrimRight(packed, "\n") + "\n" + fence +
		"\n\nFind the cause, and give every output file again, whole and in the same form. Do not change the check.\n"
}
