// Package stats is the delegation log's record and what the log says: rates, tokens, times and how well the score
// foretold. It reads from what it is handed and never opens, locks or writes a file.
package stats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Record is one line of the delegation log. The first eight fields are the documented ones and are always written;
// the order is the log's order.
type Record struct {
	Timestamp          time.Time `json:"timestamp"` // when it ended
	Task               string    `json:"task"`
	TaskType           string    `json:"task_type"`
	Score              float64   `json:"score"`
	Decision           string    `json:"decision"`            // delegate, consider, keep
	VerificationPassed *bool     `json:"verification_passed"` // nil: nothing was verified
	TokensGenerated    int       `json:"tokens_generated"`
	TimeSeconds        float64   `json:"time_seconds"`

	ID           string   `json:"id,omitempty"`
	Status       string   `json:"status,omitempty"` // empty on a line that analyze wrote
	Model        string   `json:"model,omitempty"`
	Engine       string   `json:"engine,omitempty"`
	Profile      string   `json:"profile,omitempty"`
	Attempts     int      `json:"attempts,omitempty"`
	TokensPrompt int      `json:"tokens_prompt,omitempty"` // of all attempts together
	TokensCached int      `json:"tokens_cached,omitempty"` // of those, reused by the engine
	Files        []string `json:"files"`                   // declared outputs, whether or not they came to be; null: not known
	VerifyExit   *int     `json:"verify_exit,omitempty"`
	BaselineExit *int     `json:"baseline_exit,omitempty"`
	Session      string   `json:"session,omitempty"`
	Version      string   `json:"version,omitempty"`

	// Cause is the kind of failure in a word or two (how the last attempt ended); Reason is the sentence about it.
	Cause         string  `json:"cause,omitempty"`
	Reason        string  `json:"reason,omitempty"`
	DecodeSeconds float64 `json:"decode_seconds,omitempty"` // of TimeSeconds, generating tokens

	// What went past the caller and what did not, in tokens; see Kept.
	TokensRead    int `json:"tokens_read,omitempty"`    // of files that the local model read
	TokensWritten int `json:"tokens_written,omitempty"` // of files that it wrote
	TokensRequest int `json:"tokens_request,omitempty"` // of the caller's request
	TokensResult  int `json:"tokens_result,omitempty"`  // of the result that the caller got
}

// Lengths that a line keeps to, in characters.
const (
	TaskLimit   = 500
	ReasonLimit = 200
	filesLimit  = 20
)

// Line is the record as the log has it, with the newline. Secrets in the free texts go through redact first, whole,
// so that none is cut in half and missed; then the texts are cut to their limits.
func (r Record) Line(redact func(string) string) ([]byte, error) {
	r.Timestamp = r.Timestamp.UTC().Truncate(time.Second)
	r.Task = cut(redact(r.Task), TaskLimit)
	r.Reason = cut(oneLine(redact(r.Reason)), ReasonLimit)
	r.Cause = cut(oneLine(redact(r.Cause)), ReasonLimit)
	if len(r.Files) > filesLimit {
		r.Files = r.Files[:filesLimit]
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return nil, fmt.Errorf("writing a log line: %w", err)
	}
	return b.Bytes(), nil
}

func cut(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit-1]) + "…"
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Statuses that a line may have beside the delegation's own: what a line without a status says by its
// verification_passed.
const (
	Passed     = "passed" // green afterwards; whether it was red before is not known
	failed     = "failed"
	unverified = "unverified"
)

// OK says whether a status counts as accomplished.
func OK(status string) bool {
	switch status {
	case "proven", "unproven", "unverified", "answered", Passed:
		return true
	}
	return false
}

// Verdict is what an outcome says about the score: whether it counts at all, and whether as a success. Proven is
// one; failed, rejected and timed out are none; the rest says nothing. A line of another writer that has no status
// counts by its verification_passed.
func Verdict(status string) (success, counts bool) {
	switch status {
	case "proven", Passed:
		return true, true
	case "failed", "rejected", "timed_out":
		return false, true
	}
	return false, false
}

// Outcome is the record's status, or what verification_passed says where there is none; "" on a line of analyze.
func (r Record) Outcome() string {
	passed := verdict(0)
	if r.VerificationPassed != nil {
		passed = no
		if *r.VerificationPassed {
			passed = yes
		}
	}
	return outcome(r.Status, passed, r.TimeSeconds > 0 || r.TokensGenerated > 0)
}

func outcome(status string, passed verdict, worked bool) string {
	switch {
	case status == "analyzed":
		return ""
	case status != "":
		return status
	case passed == yes:
		return Passed
	case passed == no:
		return failed
	case worked:
		return unverified
	}
	return ""
}

// Out is how many tokens stayed out of the caller's context: files read and written by the local model, less
// the caller's own request and the result it got. It is below zero where delegating cost more than it kept out;
// what did not work out kept nothing out. Files are measured by their size, so the engine's own counts bound them:
// no more was read than went into one prompt, and no more written than was generated.
func (c Kept) Out(ok bool) int {
	read, written := min(c.Read, c.Prompt), min(c.Written, c.Generated)
	if !ok {
		read, written = 0, 0
	}
	return read + written - c.Request - c.Result
}

// Kept is what Out is worked out from, in tokens. Prompt is that of one attempt.
type Kept struct {
	Read, Written, Request, Result int
	Prompt, Generated              int
}

// KeptOutFormula is Kept.Out in words, for whoever shows the number.
const KeptOutFormula = "tokens of files that the local model read and wrote and that never passed through the caller" +
	" (only where the delegation worked out, and no more than the engine counted in a prompt and in its answers)," +
	" minus the tokens of the caller's request and of the result it got"
