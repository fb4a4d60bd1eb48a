package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"localllm/delegate"
)

// The session that is measured: 20 tasks over the same 8 files of 1,500 tokens each. Before task 8 the third file
// changes, before task 14 a ninth file comes in, whose path sorts into the middle.
const (
	tasks      = 20
	files      = 8
	fileTokens = 1500
	changedAt  = 7
	addedAt    = 13
	maxAnswer  = 48
)

// layout is an order of the prompt's parts.
type layout string

const (
	ours      layout = "this session's order"
	byPath    layout = "files by path, task last"
	taskFirst layout = "task before the files"
)

var layouts = []layout{ours, byPath, taskFirst}

// figure is one line of the table, by the engine's own counters.
type figure struct {
	Engine    string  `json:"engine"`
	Layout    layout  `json:"layout"`
	Tasks     int     `json:"tasks"`
	Prompt    int     `json:"prompt_tokens"`
	Cached    int     `json:"cached_tokens"`
	Prefilled int     `json:"prefilled_tokens"`
	Ideal     int     `json:"ideal_tokens"`
	Seconds   float64 `json:"prefill_seconds"`
}

func (f figure) ratio() float64 { return float64(f.Prefilled) / float64(f.Ideal) }

// session is the material; all of it is made from fixed seeds.
type session struct {
	files   []delegate.File // 8, and the ninth
	changed delegate.File   // the third file's later form
}

// newSession makes files of the wished size, by the tokenizer that will read them.
func newSession(count func(string) (int, error)) (session, error) {
	var s session
	for i, name := range []string{"auth/token.go", "billing/invoice.go", "catalog/item.go", "order/cart.go", "order/state.go", "queue/worker.go", "store/sql.go", "web/routes.go", "order/refund.go"} {
		body, err := code(uint64(i), fileTokens, count)
		if err != nil {
			return s, err
		}
		s.files = append(s.files, delegate.File{Path: name, Body: body})
	}
	lines := strings.Split(s.files[2].Body, "\n")
	lines[len(lines)/2] = "\t// a line that was not there before"
	s.changed = delegate.File{Path: s.files[2].Path, Body: strings.Join(lines, "\n")}
	return s, nil
}

var words = strings.Fields("order item price total user count index value result buffer reader writer queue worker state token cache limit offset status amount entry record field name path line")

// code is Go-like text of about n tokens.
func code(seed uint64, n int, count func(string) (int, error)) (string, error) {
	rng := rand.New(rand.NewPCG(seed, 7))
	word := func() string { return words[rng.IntN(len(words))] }
	var b strings.Builder
	fmt.Fprintf(&b, "package %s\n\n", word())
	for {
		for range 3 {
			a, c, d := word(), word(), word()
			fmt.Fprintf(&b, "// %s%d returns the %s of a %s, and an error where there is none.\nfunc %s%d(%s int, %s string) (int, error) {\n\tif %s < %d {\n\t\treturn 0, errors.New(\"no %s\")\n\t}\n\treturn %s + len(%s), nil\n}\n\n",
				a, rng.IntN(1000), c, d, a, rng.IntN(1000), c, d, c, rng.IntN(100), a, c, d)
		}
		got, err := count(b.String())
		if err != nil || got >= n {
			return b.String(), err
		}
	}
}

// task is what is asked for at step i: a few sentences, as a caller writes them.
func (s session) task(i int) delegate.Input {
	rng := rand.New(rand.NewPCG(uint64(i), 99))
	word := func() string { return words[rng.IntN(len(words))] }
	var text strings.Builder
	for range 8 {
		fmt.Fprintf(&text, "The %s of each %s has to be checked against the %s in %s before the %s is written, and number %d is a case of its own. ",
			word(), word(), word(), s.files[rng.IntN(files)].Path, word(), rng.IntN(10000))
	}
	output := fmt.Sprintf("%s/%s_%d.go", word(), word(), i)
	context := slices.Clone(s.files[:files])
	if i >= changedAt {
		context[2] = s.changed
	}
	if i >= addedAt {
		context = append(context, s.files[files])
	}
	return delegate.Input{
		Model: "practice", Context: context, Outputs: []delegate.Output{{Path: output}},
		Task: delegate.Task{Task: text.String(), TaskType: delegate.TaskTypes()[i%4], OutputFiles: []delegate.OutputFile{{Path: output}}},
	}
}

// ideal is what the session must prefill: each piece that is new to it once. Headings, reminders and notes that are
// sent again are not counted.
func (s session) ideal(count func(string) (int, error), system string) (int, error) {
	sum := 0
	seen := map[string]bool{}
	for i := range tasks {
		in := s.task(i)
		pieces := []string{system, in.Task.Task, in.Outputs[0].Path}
		for _, f := range in.Context {
			pieces = append(pieces, f.Body)
		}
		for _, p := range pieces {
			if seen[p] {
				continue
			}
			seen[p] = true
			n, err := count(p)
			if err != nil {
				return 0, err
			}
			sum += n
		}
	}
	return sum, nil
}

// play sends the first n tasks of the session in one layout and adds up the engine's counters.
func (s session) play(ctx context.Context, c delegate.Completer, order layout, n int) (figure, error) {
	f := figure{Layout: order, Tasks: n}
	var kept delegate.Session
	for i := range n {
		in := s.task(i)
		if order == ours {
			in.Session = kept
		} else {
			slices.SortFunc(in.Context, func(a, b delegate.File) int { return strings.Compare(a.Path, b.Path) })
		}
		p, err := delegate.Build(ctx, c, in)
		if err != nil {
			return f, fmt.Errorf("task %d: %w", i, err)
		}
		kept = p.Session
		if order == taskFirst {
			user := p.Messages[1].Content
			at := strings.LastIndex(user, "## Task\n")
			p.Messages[1].Content = user[at:] + "\n" + user[:at]
		}
		got, err := c.Complete(ctx, delegate.Request{Messages: p.Messages, MaxTokens: maxAnswer, Slot: 0})
		if err != nil {
			return f, fmt.Errorf("task %d: %w", i, err)
		}
		if got.Tokens.Prompt == 0 || got.Tokens.Cached > got.Tokens.Prompt {
			return f, fmt.Errorf("task %d: the engine's counters make no sense: %+v", i, got.Tokens)
		}
		f.Prompt += got.Tokens.Prompt
		f.Cached += got.Tokens.Cached
		f.Seconds += got.Prefill.Seconds()
	}
	f.Prefilled = f.Prompt - f.Cached
	return f, nil
}
