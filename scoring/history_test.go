package scoring

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func both(tried, succeeded int) History {
	y := Tally{Tried: tried, Succeeded: succeeded}
	return History{Similar: y, Alike: y}
}

func TestThirtyOutcomesTurnTheAdvice(t *testing.T) {
	for _, h := range []History{both(30, 30), {Similar: Tally{30, 30}}} {
		if got := h.Correct(0.48); got <= Over {
			t.Errorf("30 successes leave 0.48 at %v (%+v)", got, h)
		}
	}
	for _, h := range []History{both(30, 0), {Similar: Tally{30, 0}}} {
		if got := h.Correct(0.78); got >= Under {
			t.Errorf("30 failures leave 0.78 at %v (%+v)", got, h)
		}
	}
}

// Every state that can come about, not only the first outcome.
func TestOneOutcomeIsSmallAndMonotone(t *testing.T) {
	for _, prior := range []float64{0, 0.08, 0.48, 0.6, 0.78, 1} {
		for n := range 40 {
			for s := 0; s <= n; s++ {
				for _, alike := range []Tally{{}, {n, s}, {n / 2, s / 2}} {
					h := History{Similar: Tally{n, s}, Alike: alike}
					was := h.Correct(prior)
					for _, success := range []bool{true, false} {
						g := h
						g.Similar.Add(success)
						near := g.Correct(prior)
						g.Alike.Add(success)
						now := g.Correct(prior)
						if d := now - was; d >= 0.06 || d <= -0.06 {
							t.Fatalf("prior %v, %+v: one outcome moves %v to %v", prior, h, was, now)
						}
						if success && (now < was || near < was) || !success && (now > was || near > was) {
							t.Fatalf("prior %v, %+v: success=%v moves %v to %v and %v", prior, h, success, was, near, now)
						}
						if now < 0 || now > 1 {
							t.Fatalf("out of range: %v", now)
						}
					}
				}
			}
		}
	}
}

func TestOrderOfOutcomesDoesNotMatter(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	kinds := []Kind{{Type: "generate", Model: "a", Outputs: 1, Size: 1, Verify: 1}, {Type: "generate", Model: "a", Outputs: 3}, {Type: "fix", Model: "a"}, {Type: "generate"}}
	type outcome struct {
		kind    Kind
		success bool
	}
	for range 200 {
		var log []outcome
		for range rng.IntN(60) {
			log = append(log, outcome{kinds[rng.IntN(len(kinds))], rng.IntN(2) == 0})
		}
		score := func() float64 {
			counted := map[Kind]Tally{}
			for _, o := range log {
				y := counted[o.kind]
				y.Add(o.success)
				counted[o.kind] = y
			}
			return Collect(kinds[0], counted).Correct(0.48)
		}
		want := score()
		rng.Shuffle(len(log), func(i, j int) { log[i], log[j] = log[j], log[i] })
		if got := score(); got != want {
			t.Fatalf("shuffled: %v, before %v", got, want)
		}
	}
}

func TestWhichKindsSpeak(t *testing.T) {
	task := Kind{Type: "generate", Model: "qwen", Outputs: 1, Size: 2, Verify: 1}
	for _, c := range []struct {
		name           string
		other          Kind
		similar, alike bool
	}{
		{"the same", task, true, true},
		{"a new model starts from the prior", Kind{Type: "generate", Model: "gemma", Outputs: 1, Size: 2, Verify: 1}, false, false},
		{"another type", Kind{Type: "fix", Model: "qwen", Outputs: 1, Size: 2, Verify: 1}, false, false},
		{"more outputs", Kind{Type: "generate", Model: "qwen", Outputs: 3, Size: 2, Verify: 1}, true, false},
		{"another size", Kind{Type: "generate", Model: "qwen", Outputs: 1, Size: 4, Verify: 1}, true, false},
		{"not verified", Kind{Type: "generate", Model: "qwen", Outputs: 1, Size: 2, Verify: 2}, true, false},
		{"a line of eight fields", Kind{Type: "generate", Verify: 1}, true, true},
		{"a line without a type", Kind{Model: "qwen"}, false, false},
	} {
		if got := task.Similar(c.other); got != c.similar {
			t.Errorf("%s: similar %v", c.name, got)
		}
		if got := task.Alike(c.other); got != c.alike {
			t.Errorf("%s: alike %v", c.name, got)
		}
	}
	if (Kind{Model: "x"}).Similar(Kind{Model: "x"}) {
		t.Error("two unknown types are similar")
	}
}

func TestKindOfATask(t *testing.T) {
	for _, c := range []struct {
		task Task
		want Kind
	}{
		{Task{Type: "generate", Model: "m", Outputs: 1, Prompt: 999, Verify: true}, Kind{"generate", "m", 1, 1, 1}},
		{Task{Type: "generate", Outputs: 9, Prompt: 1000}, Kind{"generate", "", 3, 2, 2}},
		{Task{Type: "generate", Prompt: 15999}, Kind{"generate", "", 0, 3, 2}},
		{Task{Type: "ask", Prompt: 16000}, Kind{"ask", "", NoOutputs, 4, 2}},
	} {
		if got := KindOf(c.task); got != c.want {
			t.Errorf("%+v is %+v, want %+v", c.task, got, c.want)
		}
	}
}

func reason(a Advice, signal string) string {
	for _, r := range a.Reasons {
		if r.Signal == signal {
			return r.Detail
		}
	}
	return ""
}

func TestAdviceShowsPriorAndHistory(t *testing.T) {
	task := Task{Text: "CRUD routes", Type: "generate", Model: "qwen", Verify: true}
	a := Score(task, both(30, 0), Window{Fits: true, Context: 4096})
	if a.Prior != 0.78 || a.Recommendation != Keep || a.History.Similar != 30 || a.History.Successes != 0 || a.History.Weight < 0.7 {
		t.Errorf("%+v", a)
	}
	if got := reason(a, "history"); !strings.Contains(got, "0 of 30") || !strings.Contains(got, "0.78 becomes 0.21") {
		t.Errorf("history says %q", got)
	}
	a = Score(task, History{}, Window{Fits: true})
	if got := reason(a, "history"); !strings.Contains(got, "the table alone") || a.History.Weight != 0 {
		t.Errorf("an empty history says %q, weight %v", got, a.History.Weight)
	}
}

func TestVerifyAdvice(t *testing.T) {
	for kind, want := range map[string]string{"test": "new tests", "document": "doc build", "ask": "cannot be proven", "fix": "red until"} {
		a := Score(Task{Type: kind}, History{}, Window{Fits: true})
		if got := reason(a, "nothing to verify with"); a.Verifiable || !strings.Contains(got, want) {
			t.Errorf("%s: %q", kind, got)
		}
	}
	a := Score(Task{Type: "fix", Verify: true}, History{}, Window{Fits: true})
	if !a.Verifiable || reason(a, "nothing to verify with") != "" {
		t.Errorf("a verified task is told to verify: %+v", a)
	}
}

func TestWindow(t *testing.T) {
	crud := Task{Text: "Generate Express CRUD routes", Outputs: 1}
	for _, c := range []struct {
		name   string
		task   Task
		size   Size
		want   Window
		advice Recommendation
	}{
		{"counted and fitting", crud, Size{PromptTokens: 1000, Context: 2200}, Window{1000, 1200, 2200, true, "tokenizer"}, Delegate},
		{"one token too many", crud, Size{PromptTokens: 1001, Context: 2200}, Window{1001, 1200, 2200, false, "tokenizer"}, Keep},
		{"a limit on the answer", crud, Size{PromptTokens: 1001, Context: 2200, MaxTokens: 100}, Window{1001, 100, 2200, true, "tokenizer"}, Delegate},
		{"no engine", crud, Size{PromptBytes: 272}, Window{700, 1200, 0, true, "estimate"}, Delegate},
		{"a big file comes back whole", crud, Size{PromptTokens: 9000, OutputBytes: 24000, Context: 16000}, Window{9000, 9600, 16000, false, "tokenizer"}, Keep},
		{"a text answer", Task{Text: "CRUD?"}, Size{PromptTokens: 10, Context: 810}, Window{10, 800, 810, true, "tokenizer"}, Delegate},
	} {
		w := Fit(c.task, c.size)
		if w != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, w, c.want)
		}
		a := Score(c.task, History{}, w)
		if a.Recommendation != c.advice {
			t.Errorf("%s: %v with score %v", c.name, a.Recommendation, a.Score)
		}
		if said := reason(a, "window"); !w.Fits && !strings.Contains(said, "do not fit") || w.Context == 0 && !strings.Contains(said, "no engine") {
			t.Errorf("%s: says %q", c.name, said)
		}
	}
}
