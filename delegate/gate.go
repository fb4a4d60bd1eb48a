package delegate

import (
	"fmt"
	"strings"
)

// Kinds of rejection.
const (
	RejectEmpty     = "empty"
	RejectThinking  = "only_thinking"
	RejectCutOff    = "cut_off"
	RejectTooLong   = "too_long"
	RejectIntention = "intention"
	RejectNoFiles   = "no_files"
	RejectMissing   = "missing_output"
	RejectWrongPath = "wrong_path"
	RejectAmbiguous = "ambiguous"
	RejectDiff      = "diff"
	RejectEdit      = "edit"
	RejectElision   = "elision"
	RejectShrink    = "shrink"
	RejectUnparsed  = "unparsable"
)

// Rejection is why an answer is not used. Reason is one clause for people and for the model alike; Ask is what the
// model is asked to do about it.
type Rejection struct {
	Kind   string
	Path   string // the output concerned, if one is
	Reason string
	Ask    string
}

func (r *Rejection) Error() string { return r.Reason }

// Gate decides whether an answer is what was asked for. It writes nothing and corrects nothing but line ends.
type Gate struct {
	Outputs     []Output // from Prompt.Outputs
	AllowShrink bool

	// Parses returns the syntax error in a file, nil where there is none or the language is not known. May be nil.
	Parses func(path string, body []byte) error
}

// Answer is what may be written: exactly the declared outputs, in their order.
type Answer struct {
	Files    []File
	Warnings []string
}

const (
	askWhole = "Give every output file whole, each under its path line in one fenced block, and nothing else."
	askShort = "Answer again, shorter: only the output files, no explanation."
)

// Files judges an answer in files mode. The error is a *Rejection.
func (g Gate) Files(c Completion) (Answer, error) {
	if r := unusable(c); r != nil {
		return Answer{}, r
	}
	reply := Parse(c.Text, g.Outputs)
	if r := g.complete(c, reply); r != nil {
		return Answer{}, r
	}
	a := Answer{Warnings: reply.Warnings}
	for _, o := range g.Outputs {
		body, r := g.body(o, reply)
		if r == nil {
			r = g.sound(o, body)
		}
		if r != nil {
			return Answer{}, r
		}
		a.Files = append(a.Files, File{Path: o.Path, Body: body})
	}
	return a, nil
}

// Text judges an answer in text mode and returns it without the thinking.
func (g Gate) Text(c Completion) (string, error) {
	if r := unusable(c); r != nil {
		return "", r
	}
	text, _ := dropThinking(c.Text)
	text = strings.TrimSpace(text)
	if onlyAnnounces(text) {
		return "", &Rejection{Kind: RejectIntention, Reason: "it announces an answer and gives none", Ask: "Give the answer itself now."}
	}
	return text, nil
}

// unusable judges what needs no reading.
func unusable(c Completion) *Rejection {
	if len(c.Text) > MaxReplyBytes {
		return tooLong()
	}
	text, thought := dropThinking(c.Text)
	blank := strings.TrimSpace(text) == ""
	switch {
	case c.Finish == FinishLength && blank && thought > 0:
		return &Rejection{Kind: RejectThinking, Reason: "all its tokens went into thinking, and it was cut off before the answer", Ask: "Answer at once, without thinking first."}
	case c.Finish == FinishLength && blank:
		return &Rejection{Kind: RejectCutOff, Reason: "it is empty: the token limit was reached before a word of it", Ask: askShort}
	case c.Finish == FinishLength:
		return &Rejection{Kind: RejectCutOff, Reason: "it was cut off by the token limit", Ask: askShort}
	case blank && thought > 0:
		return &Rejection{Kind: RejectThinking, Reason: "it holds thinking and no answer", Ask: "Answer at once, without thinking first."}
	case blank:
		return &Rejection{Kind: RejectEmpty, Reason: "it is empty", Ask: askWhole}
	}
	return nil
}

// complete judges whether the declared outputs are there, before any of them is read.
func (g Gate) complete(c Completion, reply Reply) *Rejection {
	if reply.Problem != nil {
		return reply.Problem
	}
	var missing []string
	for _, o := range g.Outputs {
		if _, ok := reply.file(o.Path); !ok && len(reply.edits(o.Path)) == 0 {
			missing = append(missing, o.Path)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if len(reply.Files) == 0 && len(reply.Edits) == 0 && len(reply.Extra) == 0 && reply.Loose == 0 {
		if announces(reply.Text) {
			return &Rejection{Kind: RejectIntention, Reason: "it announces the work and holds no file", Ask: "Do not announce anything. " + askWhole}
		}
		return &Rejection{Kind: RejectNoFiles, Reason: "it holds no file in a fenced block", Ask: askWhole}
	}
	names := strings.Join(missing, ", ")
	switch {
	case len(reply.Extra) > 0:
		return &Rejection{Kind: RejectWrongPath, Path: missing[0],
			Reason: fmt.Sprintf("it has no %s, but %s, which nobody asked for", names, strings.Join(reply.Extra, ", ")),
			Ask:    "Use exactly these paths: " + g.paths() + ". " + askWhole}
	case reply.Loose > 0:
		return &Rejection{Kind: RejectAmbiguous, Path: missing[0],
			Reason: fmt.Sprintf("it has no path line for %s: %d code blocks are without one", names, reply.Loose),
			Ask:    "Put each file under a line \"### File: PATH\" with one of these paths: " + g.paths() + ". " + askWhole}
	}
	return &Rejection{Kind: RejectMissing, Path: missing[0], Reason: "it has no " + names, Ask: askWhole}
}

func (g Gate) paths() string {
	names := make([]string, len(g.Outputs))
	for i, o := range g.Outputs {
		names[i] = o.Path
	}
	return strings.Join(names, ", ")
}
