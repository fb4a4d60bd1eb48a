package delegate

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Input is what a prompt is made of. Nothing in it may be volatile where it stands early: Project must not hold a
// time, an id or an absolute path, and paths are relative.
type Input struct {
	Task    Task
	Mode    string // ModeFiles or ModeText; empty: by the task
	Model   string // as the engine knows it; chooses the family
	Project string // what is true of the whole project; rarely changes
	Context []File // expanded, in the order of the caller's list
	Outputs []Output
	Session Session // of this session and slot
	Think   bool    // off unless the tier says so
}

// Output is one declared output with what is there now.
type Output struct {
	Path        string
	Description string
	Exists      bool
	Body        string // as it is now

	// Edit: too large to be written again; search/replace blocks are asked for. Build sets it.
	Edit bool
}

// Prompt is a laid-out request. Messages are sent as they are.
type Prompt struct {
	Messages []Message
	Outputs  []Output // with Edit decided
	Tokens   int
	Exact    bool // Tokens is the engine's own count
	Room     int  // tokens left for the answer; 0: the window's size is unknown
	Layout   Layout

	// Session is what the slot holds once the engine has processed this prompt; keep it for the next one, whatever
	// becomes of the answer.
	Session Session

	// Warm is the part that later tasks of the session share, as messages: sent with one token of answer, it fills a
	// slot before the tasks fan out.
	Warm []Message
}

// Unfit says that a prompt does not fit, with the numbers and what could be left out.
type Unfit struct {
	Prompt  int // tokens
	Answer  int // tokens that the answer needs
	Context int // tokens of the window
	Exact   bool
	Largest []Weight // droppable files, largest first
}

// Weight is a file and about how many tokens it takes.
type Weight struct {
	Path   string
	Tokens int
}

// Error names the numbers and the files to drop.
func (u *Unfit) Error() string {
	about := ""
	if !u.Exact {
		about = "about "
	}
	s := fmt.Sprintf("the prompt does not fit: %s%d tokens, with %d for the answer, in a window of %d", about, u.Prompt, u.Answer, u.Context)
	if drop := u.Drop(); len(drop) > 0 {
		names := make([]string, len(drop))
		for i, w := range drop {
			names[i] = fmt.Sprintf("%s (about %d)", w.Path, w.Tokens)
		}
		s += "; over by " + fmt.Sprint(u.Over()) + "; leave out " + strings.Join(names, ", ")
	}
	return s
}

// Over is by how many tokens it does not fit.
func (u *Unfit) Over() int { return u.Prompt + u.Answer - u.Context }

// Drop is the shortest list of context files, largest first, without which it would fit; all where that is not enough.
func (u *Unfit) Drop() []Weight {
	over := u.Over()
	for i, w := range u.Largest {
		if over -= w.Tokens; over <= 0 {
			return u.Largest[:i+1]
		}
	}
	return u.Largest
}

// Build lays the prompt out and has the engine count it: constant system text, project, context files in the
// session's order, outputs as they are, the task. It returns *Unfit where the window is too small; it never cuts.
func Build(ctx context.Context, c Completer, in Input) (Prompt, error) {
	if in.Mode == "" {
		in.Mode = DefaultMode(in.Task)
	}
	limits := c.Limits()
	outputs := decideEdits(in, limits)
	answer := answerNeed(in, outputs)
	var p Prompt
	for _, tight := range []bool{false, true} {
		s := in.Session
		if tight {
			s.Blocks = nil // everything dead goes; the order begins again
		}
		var err error
		if p, err = lay(ctx, c, in, s, outputs, answer); err != nil {
			return Prompt{}, err
		}
		if limits.Context == 0 || p.Tokens+answer <= limits.Context {
			return p, nil
		}
		if len(in.Session.Blocks) == 0 {
			break
		}
	}
	return Prompt{}, unfit(p, in, answer, limits.Context)
}

// lay arranges, renders and counts once.
func lay(ctx context.Context, c Completer, in Input, s Session, outputs []Output, answer int) (Prompt, error) {
	head := headText(in)
	tail := taskText(in, outputs, Layout{})
	room := 0
	if limit := c.Limits().Context; limit > 0 {
		room = max(1, limit-answer-s.tokens(len(head)+len(tail))-64)
	}
	l := s.arrange(hashOf(head), normalFiles(in.Context), existing(outputs), room)
	p := render(in, head, outputs, l)
	n, exact, err := c.Count(ctx, p.Messages, nil)
	if err != nil {
		return Prompt{}, fmt.Errorf("counting the prompt's tokens: %w", err)
	}
	p.Tokens, p.Exact = n, exact
	if limit := c.Limits().Context; limit > 0 {
		p.Room = max(0, limit-n)
	}
	p.Session = Session{Head: hashOf(head), Blocks: l.Blocks, Tail: l.Tail, BytesPerToken: s.BytesPerToken}
	if bytes := sizeOf(p.Messages); n > 0 && bytes > 0 {
		p.Session.BytesPerToken = float64(bytes) / float64(n)
	}
	return p, nil
}

func render(in Input, head string, outputs []Output, l Layout) Prompt {
	var files strings.Builder
	for _, b := range l.Blocks {
		b.render(&files)
	}
	shared := files.String()
	for _, b := range l.Tail {
		b.render(&files)
	}
	user := files.String() + taskText(in, outputs, l)
	p := Prompt{Outputs: outputs, Layout: l, Messages: []Message{{Role: System, Content: head}, {Role: User, Content: user}}}
	if shared == "" {
		shared = "Ready?" // a chat template may refuse a conversation without a user's turn
	}
	p.Warm = []Message{{Role: System, Content: head}, {Role: User, Content: shared}}
	return p
}

// headText is everything before the files: the release's text, the family's line, the project.
func headText(in Input) string {
	var w strings.Builder
	w.WriteString(systemText)
	if f := FamilyOf(in.Model); f.System != "" {
		w.WriteString("\n\n" + f.System)
	}
	if project := strings.TrimSpace(normalLines(in.Project)); project != "" {
		w.WriteString("\n\nThe project:\n" + project)
	}
	w.WriteByte('\n')
	return w.String()
}

// taskText is all that is prefilled anew with each task, and therefore short.
func taskText(in Input, outputs []Output, l Layout) string {
	var w strings.Builder
	if len(l.Unused) > 0 {
		w.WriteString("Not for this task, and perhaps out of date: " + strings.Join(l.Unused, ", ") + "\n")
	}
	if len(l.Stale) > 0 {
		w.WriteString("Only the last version above counts: " + strings.Join(l.Stale, ", ") + "\n")
	}
	w.WriteString("## Task\n")
	w.WriteString(strings.TrimSpace(normalLines(in.Task.Task)))
	w.WriteByte('\n')
	if line := instruction[taskType(in.Task)]; line != "" {
		w.WriteString(line + "\n")
	}
	if in.Mode == ModeFiles {
		w.WriteString("\nOutput files:\n")
		for _, o := range outputs {
			w.WriteString("- " + o.Path)
			switch {
			case o.Edit:
				w.WriteString(" (exists; by edits)")
			case o.Exists:
				w.WriteString(" (exists; give it whole)")
			}
			if d := strings.TrimSpace(o.Description); d != "" {
				w.WriteString(": " + strings.Join(strings.Fields(d), " "))
			}
			w.WriteByte('\n')
		}
	}
	if f := FamilyOf(in.Model); f.NoThink != "" && !in.Think {
		w.WriteString("\n" + f.NoThink)
	}
	return w.String()
}

func taskType(t Task) string {
	if t.TaskType == "" {
		return TaskTypes()[0]
	}
	return t.TaskType
}

// editOver is the size, in tokens, from which an existing file is changed by edits: a few minutes of decoding.
const editOver = 8000

// decideEdits asks for edits only where the whole file can't well be written again: small models do whole files better.
func decideEdits(in Input, limits Limits) []Output {
	outputs := slices.Clone(in.Outputs)
	for i := range outputs {
		o := &outputs[i]
		n := in.Session.tokens(len(o.Body))
		tooLarge := n > editOver || limits.Context > 0 && 2*n+n/4 > limits.Context*3/4 ||
			in.Task.MaxTokens > 0 && n+n/8 > in.Task.MaxTokens || limits.MaxTokens > 0 && n+n/8 > limits.MaxTokens
		o.Edit = o.Exists && tooLarge
	}
	return outputs
}

// answerNeed is how many tokens must stay free, or the answer would be cut off.
func answerNeed(in Input, outputs []Output) int {
	need := 256
	for _, o := range outputs {
		switch {
		case o.Edit:
			need += 1024
		case o.Exists:
			n := in.Session.tokens(len(o.Body))
			need += n + n/4 + 64
		default:
			need += 512
		}
	}
	if in.Task.MaxTokens > 0 {
		need = min(need, in.Task.MaxTokens)
	}
	if in.Think {
		return need + thinkingBudget
	}
	return need + FamilyOf(in.Model).Budget
}

func unfit(p Prompt, in Input, answer, window int) *Unfit {
	u := &Unfit{Prompt: p.Tokens, Answer: answer, Context: window, Exact: p.Exact}
	isOutput := map[string]bool{}
	for _, o := range in.Outputs {
		isOutput[o.Path] = true
	}
	for _, f := range in.Context {
		if !isOutput[f.Path] {
			u.Largest = append(u.Largest, Weight{f.Path, p.Session.tokens(len(f.Body) + len(f.Path) + 24)})
		}
	}
	slices.SortStableFunc(u.Largest, func(a, b Weight) int {
		if a.Tokens != b.Tokens {
			return b.Tokens - a.Tokens
		}
		return strings.Compare(a.Path, b.Path)
	})
	return u
}

// existing are the outputs that are shown. CRLF would make the same file two different blocks on two checkouts, so line
// ends are normalised here and restored by the gate.
func existing(outputs []Output) []File {
	var files []File
	for _, o := range outputs {
		if o.Exists {
			files = append(files, File{o.Path, normalLines(o.Body)})
		}
	}
	return files
}

func normalFiles(files []File) []File {
	out := make([]File, len(files))
	for i, f := range files {
		out[i] = File{f.Path, normalLines(f.Body)}
	}
	return out
}

func normalLines(s string) string {
	if !strings.Contains(s, "\r") {
		return s
	}
	return strings.ReplaceAll(s, "\r\n", "\n")
}

func sizeOf(messages []Message) int {
	n := 0
	for _, m := range messages {
		n += len(m.Content)
	}
	return n
}

// languageOf is the word after a fence.
func languageOf(name string) string {
	return strings.TrimPrefix(strings.ToLower(path.Ext(name)), ".")
}
