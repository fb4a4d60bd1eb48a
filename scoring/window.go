package scoring

import "fmt"

// Window is the room a task needs and has, in tokens.
type Window struct {
	Prompt  int    `json:"prompt_tokens"`
	Output  int    `json:"output_tokens"`
	Context int    `json:"context"` // 0: no engine is enabled, so nothing is known to fit into
	Fits    bool   `json:"fits"`
	Source  string `json:"source"` // tokenizer: counted by the engine; estimate: bytes ÷ 3
}

// Size is what is known for measuring a window.
type Size struct {
	PromptTokens int   // counted by the engine's tokenizer; 0 if there is none
	PromptBytes  int64 // of the task's files, for the estimate; its text is counted beside them
	OutputBytes  int64 // of the declared outputs as they are now: they come back whole
	MaxTokens    int   // the caller's own limit for the answer; 0 is none
	Context      int   // the window of one slot; 0 if no engine is enabled
}

// bytesPerToken errs toward too many tokens: source text has 3 to 4 bytes a token with today's vocabularies.
const bytesPerToken = 3

// overhead is the system text and the chat template around a task, in tokens.
const overhead = 600

// EstimateTokens is a cautious guess for text that no tokenizer has counted.
func EstimateTokens(bytes int64) int { return int((bytes + bytesPerToken - 1) / bytesPerToken) }

// Fit measures a task against a window.
func Fit(t Task, s Size) Window {
	w := Window{Prompt: s.PromptTokens, Context: s.Context, Source: "tokenizer"}
	if w.Prompt == 0 {
		w.Prompt = EstimateTokens(s.PromptBytes+int64(len(t.Text))) + overhead
		w.Source = "estimate"
	}
	w.Output = expectedOutput(t, s)
	w.Fits = s.Context == 0 || w.Prompt+w.Output <= s.Context
	return w
}

// expectedOutput allows for files that exist coming back a fifth longer, and 1,200 tokens for each new one.
func expectedOutput(t Task, s Size) int {
	const answer, newFile = 800, 1200
	out := answer
	if t.Outputs > 0 {
		out = max(EstimateTokens(s.OutputBytes)*6/5, newFile*t.Outputs)
	}
	if s.MaxTokens > 0 {
		out = min(out, s.MaxTokens)
	}
	return out
}

func windowReason(w Window) Reason {
	r := Reason{Signal: "window"}
	how := "counted by the engine's tokenizer"
	if w.Source != "tokenizer" {
		how = fmt.Sprintf("estimated at %d bytes a token", bytesPerToken)
	}
	need := fmt.Sprintf("%d prompt tokens (%s) and about %d for the answer", w.Prompt, how, w.Output)
	switch {
	case w.Context == 0:
		r.Detail = need + "; no engine is enabled, so no window is known to fit them into"
	case w.Fits:
		r.Detail = fmt.Sprintf("%s fit into %d", need, w.Context)
	default:
		r.Detail = fmt.Sprintf("%s do not fit into %d: name fewer context files, split the task, or enable a larger context", need, w.Context)
	}
	return r
}
