// Package scoring says whether a task suits a local model: the documented table as the prior, corrected by what
// happened with such tasks on this machine. It is pure: it reads no file, asks no engine and knows no clock.
package scoring

import (
	"fmt"
	"math"
)

// Recommendation is the advice in one word.
type Recommendation string

// The three pieces of advice. Delegate needs a score strictly over 0.6, Keep one strictly under 0.4.
const (
	Delegate Recommendation = "delegate"
	Consider Recommendation = "consider"
	Keep     Recommendation = "keep"
)

// Over and Under are the strict thresholds.
const (
	Over  = 0.6
	Under = 0.4
)

// Task is what is known of a task before anybody tries it. A zero value of a field means «not known».
type Task struct {
	Text    string // what is asked, in the caller's words
	Type    string // generate, test, refactor, …
	Model   string // the model that would do it
	Outputs int    // files to be written; 0 is none declared
	Prompt  int    // tokens of the prompt
	Verify  bool   // a command will prove the result
}

// Advice is the answer, with the names of the tool's analyze result.
type Advice struct {
	Score          float64        `json:"score"`
	Recommendation Recommendation `json:"recommendation"`
	Reasons        []Reason       `json:"reasons"`
	Prior          float64        `json:"prior"`
	History        Evidence       `json:"history"`
	Window         Window         `json:"window"`
	Verifiable     bool           `json:"verifiable"`
}

// Reason is one thing that moved the score, or would change the advice.
type Reason struct {
	Signal string  `json:"signal"`
	Impact float64 `json:"impact"`
	Detail string  `json:"detail"`
}

// Evidence is what the history said. Similar tasks have the type and the model; alike ones also agree in the
// number of outputs, the size and whether they are verified. Weight is the history's share of the score.
type Evidence struct {
	Similar        int     `json:"similar"`
	Successes      int     `json:"successes"`
	Weight         float64 `json:"weight"`
	Alike          int     `json:"alike"`
	AlikeSuccesses int     `json:"alike_successes"`
}

// Score gives the advice for a task from the table, the outcomes of similar tasks and the room in the window.
func Score(t Task, h History, w Window) Advice {
	prior, reasons := Prior(t)
	score := h.Correct(prior)
	a := Advice{Score: score, Prior: prior, History: h.evidence(), Window: w, Verifiable: t.Verify}
	a.Reasons = append(reasons, historyReason(t, h, prior, score))
	a.Recommendation = recommend(score)
	if !w.Fits {
		a.Recommendation = Keep
	}
	a.Reasons = append(a.Reasons, windowReason(w))
	if !t.Verify {
		a.Reasons = append(a.Reasons, Reason{Signal: "nothing to verify with", Detail: verifyAdvice(t.Type)})
	}
	return a
}

func recommend(score float64) Recommendation {
	switch {
	case score > Over:
		return Delegate
	case score < Under:
		return Keep
	}
	return Consider
}

func historyReason(t Task, h History, prior, score float64) Reason {
	r := Reason{Signal: "history", Impact: round(score - prior)}
	who := t.Model
	if who == "" {
		who = "any model"
	}
	kind := t.Type
	if kind == "" {
		kind = "such"
	}
	if h.Similar.Tried == 0 {
		r.Detail = fmt.Sprintf("no %s task by %s has a verdict on this machine yet: the table alone speaks", kind, who)
		return r
	}
	alike := "none of these alike in outputs, size and verify"
	if h.Alike.Tried > 0 {
		alike = fmt.Sprintf("%d of %d that are also alike in outputs, size and verify", h.Alike.Succeeded, h.Alike.Tried)
	}
	r.Detail = fmt.Sprintf("%d of %d %s tasks by %s were proven here (%s): %.2f becomes %.2f",
		h.Similar.Succeeded, h.Similar.Tried, kind, who, alike, prior, score)
	return r
}

func verifyAdvice(taskType string) string {
	const lead = "no verify given, so nothing will prove the result: pass verify, for example "
	switch taskType {
	case "test":
		return lead + "the command that runs just the new tests"
	case "document":
		return lead + "the linter or the doc build"
	case "ask", "summarize", "review":
		return "a text answer cannot be proven: read it before you build on it"
	}
	return lead + "the test or build command that is red until the task is done"
}

// round keeps four decimals, so that sums of hundredths compare as they read.
func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }
