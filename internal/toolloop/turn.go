package toolloop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"localllm/delegate"
)

// What one turn, and one line of trouble after the other, may come to.
const (
	mostCalls   = 16
	mostSame    = 3 // identical failing calls
	mostCuts    = 2
	mostGarbled = 4 // turns in a row with no call that could be understood
)

// take appends an answer and what becomes of it; it reports whether the round has ended.
func (c *conversation) take(ctx context.Context, answer delegate.Completion) bool {
	switch {
	case answer.Finish == finishGarbled:
		return c.unreadable(ctx, answer, "Your last answer held a tool call that could not be read. Send it again as one valid JSON object with the tool's name and its arguments.")
	case answer.Finish == delegate.FinishLength:
		return c.cutOff(ctx, answer)
	}
	c.cuts = 0
	calls := answer.Calls
	text := answer.Text
	if len(calls) == 0 {
		text, calls = callsInText(answer.Text)
	}
	if len(calls) > 0 {
		return c.callAll(ctx, text, calls, answer.Thinking)
	}
	// Ollama leaves out what it takes for a call and can't read, or of a tool that it was not given.
	if strings.TrimSpace(answer.Text) == "" && len(answer.Thinking) == 0 && answer.Tokens.Generated >= dropped {
		return c.unreadable(ctx, answer, "Your last answer held no text, and no tool call that could be read. The tools are "+strings.Join(c.toolNames(), ", ")+"; call one with valid JSON arguments.")
	}
	if looksLikeCall(answer.Text) {
		return c.unreadable(ctx, answer, `You wrote a tool call as text, and it could not be read. Call the tool itself, with valid JSON arguments.`)
	}
	return c.end(ctx, answer)
}

// dropped is how many tokens of nothing are more than an end.
const dropped = 8

func (c *conversation) toolNames() []string {
	out := make([]string, len(c.tools))
	for i, t := range c.tools {
		out[i] = t.Name
	}
	return out
}

// heard appends what the model said without a call.
func (c *conversation) heard(answer delegate.Completion) {
	text := strings.TrimSpace(answer.Text)
	if text == "" {
		text = "(nothing)" // some templates refuse an empty turn
	}
	c.append(delegate.Message{Role: delegate.Assistant, Content: text, Thinking: answer.Thinking})
}

func (c *conversation) tell(ctx context.Context, text string) {
	c.append(delegate.Message{Role: delegate.User, Content: text + "\n" + c.budget(ctx)})
}

func (c *conversation) unreadable(ctx context.Context, answer delegate.Completion, correction string) bool {
	c.done.MalformedCalls++
	if c.garbled++; c.garbled >= mostGarbled {
		c.stop(stopGarbled, "its tool calls could not be read, again and again")
		return true
	}
	c.heard(answer)
	c.tell(ctx, correction)
	return false
}

func (c *conversation) cutOff(ctx context.Context, answer delegate.Completion) bool {
	if c.cuts++; c.cuts >= mostCuts {
		c.stop(stopCut, "its answer was cut off by the token limit, again")
		return true
	}
	if len(answer.Calls) > 0 {
		c.done.MalformedCalls++
	}
	c.heard(answer)
	c.tell(ctx, "Your answer was cut off by the token limit, and no tool ran. Do it in smaller steps: write a part of the file first, then add to it with edit_file.")
	return false
}

// end judges an answer without a call: the model says that it is through.
func (c *conversation) end(ctx context.Context, answer delegate.Completion) bool {
	answer.Finish = delegate.FinishStop
	text, err := delegate.Gate{}.Text(answer)
	missing := c.missing()
	idle := len(c.wrote) == 0 && len(c.order.Task.Verify) > 0
	if !c.nudged && (err != nil || idle || missing != "" || announces(answer)) {
		c.nudged = true
		c.heard(answer)
		ask := "You called no tool. If work is left, call the tool now instead of saying that you will; if all is done, say in one sentence what you changed."
		if missing != "" {
			ask = "You have not written " + missing + " yet. Write it now with write_file."
		} else if idle {
			ask = "You have changed no file yet. Do it now with write_file or edit_file."
		}
		c.tell(ctx, ask)
		return false
	}
	c.done.StopReason = stopEnd
	switch {
	case missing != "":
		c.done.StopReason, c.done.Unusable = stopIdle, "it ended without writing "+missing
	case idle:
		c.done.StopReason, c.done.Unusable = stopIdle, "it ended without changing any file"
	case err != nil:
		c.done.StopReason, c.done.Unusable = stopIdle, "its last answer can't be used: "+err.Error()
	}
	c.done.Text = c.report(text)
	return true
}

// missing names declared outputs that were not written.
func (c *conversation) missing() string {
	var names []string
	for _, o := range c.order.Task.OutputFiles {
		if !c.wrote[clean(o.Path)] {
			names = append(names, o.Path)
		}
	}
	return strings.Join(names, ", ")
}

// announces is wider than the gate's judgement of a text: it costs one turn at most.
func announces(answer delegate.Completion) bool {
	_, err := delegate.Gate{Outputs: []delegate.Output{{Path: "x"}}}.Files(answer)
	var r *delegate.Rejection
	return errors.As(err, &r) && r.Kind == delegate.RejectIntention
}

var (
	callTag  = regexp.MustCompile(`(?s)<tool_call>\s*(\{.*?\})\s*</tool_call>`)
	callLike = regexp.MustCompile(`<tool_call>|<function=|<\|tool_call|\[TOOL_CALLS\]|(?s)^\s*(?:` + "```" + `(?:json)?\s*)?\{\s*"(?:name|tool|function)"\s*:`)
)

// callsInText finds calls that the engine left in the text, in the form that most models are taught.
func callsInText(text string) (rest string, calls []delegate.ToolCall) {
	for _, m := range callTag.FindAllStringSubmatch(text, mostCalls) {
		var call struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		}
		if json.Unmarshal([]byte(m[1]), &call) != nil || call.Name == "" || len(call.Arguments) == 0 {
			return text, nil
		}
		calls = append(calls, delegate.ToolCall{Name: call.Name, Arguments: string(call.Arguments)})
	}
	if len(calls) == 0 {
		return text, nil
	}
	return strings.TrimSpace(callTag.ReplaceAllString(text, "")), calls
}

func looksLikeCall(text string) bool { return callLike.MatchString(text) }

var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// callAll carries out a turn's calls, one after the other, and answers each.
func (c *conversation) callAll(ctx context.Context, text string, calls []delegate.ToolCall, thinking json.RawMessage) bool {
	shown := make([]delegate.ToolCall, 0, len(calls))
	for i, call := range calls[:min(len(calls), mostCalls)] {
		if call.ID == "" {
			call.ID = fmt.Sprintf("call_%d_%d", c.turns, i+1)
		}
		shown = append(shown, call)
	}
	over := len(calls) - len(shown)
	said := delegate.Message{Role: delegate.Assistant, Content: strings.TrimSpace(text), Thinking: thinking}
	for _, call := range shown {
		// Engines and providers refuse a history with a call that is not well formed.
		if !json.Valid([]byte(call.Arguments)) || !strings.HasPrefix(strings.TrimSpace(call.Arguments), "{") {
			call.Arguments = "{}"
		}
		if !plainName.MatchString(call.Name) {
			call.Name = "unknown"
		}
		said.Calls = append(said.Calls, call)
	}
	c.append(said)
	understood, stuck := false, ""
	for i, call := range shown {
		if ctx.Err() != nil {
			return true
		}
		r := c.call(ctx, call)
		understood = understood || !r.malformed
		if r.failed {
			if n := c.again(call); n >= mostSame {
				stuck = call.Name
			} else if n > 1 {
				r.text += "\nThis is the same call as before, and it failed the same way. Do something else."
			}
		}
		if i == len(shown)-1 {
			if over > 0 {
				r.text += fmt.Sprintf("\n%d more calls of this turn were not carried out: at most %d at once.", over, mostCalls)
			}
			r.text += "\n" + c.budget(ctx)
		}
		c.append(delegate.Message{Role: delegate.ToolRole, Content: r.text, CallID: call.ID, Tool: said.Calls[i].Name})
	}
	if understood {
		c.garbled = 0
	} else if c.garbled++; c.garbled >= mostGarbled {
		c.stop(stopGarbled, "its tool calls were malformed, again and again")
		return true
	}
	if stuck != "" {
		c.stop(stopRepeated, fmt.Sprintf("it made the same failing call of %s %d times", stuck, mostSame))
		return true
	}
	return false
}

// again counts a failing call. One that comes after a change is another one, as a test that is run again.
func (c *conversation) again(call delegate.ToolCall) int {
	key := call.Name + "\x00" + strings.TrimSpace(call.Arguments)
	c.failures[key]++
	return c.failures[key]
}
