package lifecycle

import (
	"errors"
	"strings"
	"testing"
)

var (
	us     = Process{PID: 10, Start: 1, Boot: "b"}
	them   = Process{PID: 20, Start: 1, Boot: "b"}
	small  = Spec{Engine: LlamaServer, Model: "a", Context: 8192, Slots: 1, KVType: "f16"}
	large  = Spec{Engine: LlamaServer, Model: "a", Context: 32768, Slots: 1, KVType: "f16"}
	other  = Spec{Engine: LlamaServer, Model: "b", Context: 8192, Slots: 1}
	slots4 = Spec{Engine: LlamaServer, Model: "a", Context: 8192, Slots: 4}
)

func held(by Process) Observed {
	return Observed{Lease: Lease{Kind: Held, Client: by, Who: "client"}, Locked: true, ClientAlive: true}
}

func runs(s Spec, leases ...Observed) Situation {
	return Situation{Keeper: true, Wanted: Wanted{Generation: 3, Choices: []Spec{s}}, Status: Status{Generation: 3, State: Ready, Spec: &s}, Leases: leases}
}

func TestDecide(t *testing.T) {
	pending := runs(other)
	pending.Wanted = Wanted{Generation: 4, Choices: []Spec{small}}
	stopped := runs(small)
	stopped.Wanted.Stop = true
	failed := runs(small)
	failed.Status.State = Failed
	stopping := runs(small)
	stopping.Status.State = Stopping
	noKeeper := runs(small, held(them))
	noKeeper.Keeper = false
	loading := runs(small)
	loading.Status.Spec, loading.Status.State = nil, Loading
	steppedDown := runs(small, held(us))
	steppedDown.Wanted.Choices = []Spec{large, small}
	task := held(us)
	task.Kind = Task
	orphan := held(them)
	orphan.Locked = false
	ended := held(them)
	ended.Ended = true
	for _, c := range []struct {
		name string
		s    Situation
		ask  Ask
		want Move
	}{
		{"nothing at all", Situation{}, Ask{Choices: []Spec{small}}, Start},
		{"a status left by a killed keeper", noKeeper, Ask{Choices: []Spec{small}}, Start},
		{"failed before", failed, Ask{Choices: []Spec{small}}, Start},
		{"just stopping", stopping, Ask{Choices: []Spec{small}}, Start},
		{"told to stop, not seen by the keeper yet", stopped, Ask{Choices: []Spec{small}}, Start},
		{"the same", runs(small, held(them)), Ask{Choices: []Spec{small}}, Join},
		{"the same, still loading", loading, Ask{Choices: []Spec{small}}, Join},
		{"the same, not begun yet", pending, Ask{Choices: []Spec{small}}, Join},
		{"what was pending replaces what runs", pending, Ask{Choices: []Spec{other}}, Replace},
		{"a larger context serves a smaller wish", runs(large, held(them)), Ask{Choices: []Spec{small}}, Join},
		{"a later choice runs", runs(small, held(them)), Ask{Choices: []Spec{large, small}}, Join},
		{"a later choice runs, and nobody else needs it", runs(small, held(us)), Ask{Choices: []Spec{large, small}}, Replace},
		{"a later choice runs, after the same wish", steppedDown, Ask{Choices: []Spec{large, small}}, Join},
		{"a smaller context does not serve", runs(small, held(them)), Ask{Choices: []Spec{large}}, Refuse},
		{"more slots serve", runs(slots4, held(them)), Ask{Choices: []Spec{{Engine: LlamaServer, Model: "a", Context: 8192, Slots: 1}}}, Join},
		{"fewer slots don't", runs(small, held(them)), Ask{Choices: []Spec{slots4}}, Refuse},
		{"another KV type", runs(small, held(them)), Ask{Choices: []Spec{{Engine: LlamaServer, Model: "a", Context: 1, Slots: 1, KVType: "q8_0"}}}, Refuse},
		{"other model, other holder", runs(small, held(them)), Ask{Choices: []Spec{other}}, Refuse},
		{"other model, ours alone", runs(small, held(us)), Ask{Choices: []Spec{other}}, Replace},
		{"other model, persisted", runs(small), Ask{Choices: []Spec{other}}, Replace},
		{"other model, a background task of ours", runs(small, task), Ask{Choices: []Spec{other}}, Refuse},
		{"other model, holder crashed a moment ago", runs(small, orphan), Ask{Choices: []Spec{other}}, Refuse},
		{"other model, holder has ended", runs(small, ended), Ask{Choices: []Spec{other}}, Replace},
		{"the match takes anything", runs(small, held(them)), Ask{Choices: []Spec{other}, Match: &Match{}}, Join},
		{"the same, and it does not answer", runs(small, held(them)), Ask{Choices: []Spec{small}, Broken: true}, Replace},
		{"only joining, nothing runs", Situation{}, Ask{Match: &Match{}}, Nothing},
		{"only joining, another runs", runs(small), Ask{Match: &Match{Models: []string{"b"}}}, Nothing},
		{"only joining, by name", runs(small), Ask{Match: &Match{Models: []string{"x", "a"}}}, Join},
		{"only joining, the engine does not answer", runs(small), Ask{Match: &Match{}, Broken: true}, Nothing},
	} {
		c.ask.Client = us
		got := Decide(c.s, c.ask)
		if got.Move != c.want || len(got.Why) == 0 && got.Move != Join {
			t.Errorf("%s: %s %q, want %s", c.name, got.Move, got.Why, c.want)
		}
		if got.Move == Refuse && (len(got.Holders) == 0 || !strings.Contains(got.Why[0], "client")) {
			t.Errorf("%s: holders are not named: %+v", c.name, got)
		}
	}
}

func TestSameModel(t *testing.T) {
	for _, c := range []struct {
		a, b Spec
		want bool
	}{
		{Spec{Model: "x", Digest: "1"}, Spec{Model: "y", Digest: "1"}, true}, // two tags of one model
		{Spec{Model: "x", Digest: "1"}, Spec{Model: "x", Digest: "2"}, false},
		{Spec{Model: "x", Digest: "1"}, Spec{Model: "x"}, true},
		{Spec{Model: "x", Path: "/p"}, Spec{Model: "x", Path: "/q"}, false},
		{Spec{Engine: Ollama, Model: "x"}, Spec{Engine: LlamaServer, Model: "x"}, false},
	} {
		if got := c.a.SameModel(c.b); got != c.want {
			t.Errorf("%+v and %+v: %v", c.a, c.b, got)
		}
	}
}

func TestStepDown(t *testing.T) {
	q8 := small
	q8.KVType = "q8_0"
	choices := []Spec{large, large, small, q8, other}
	for _, c := range []struct {
		failed int
		cause  Cause
		next   int
		ok     bool
	}{
		{0, OutOfMemory, 2, true}, // the second is no smaller
		{2, OutOfMemory, 3, true}, {3, OutOfMemory, 4, true},
		{4, OutOfMemory, 0, false}, {0, Crashed, 0, false}, {9, OutOfMemory, 0, false}, {-1, OutOfMemory, 0, false},
	} {
		next, warning, ok := StepDown(choices, c.failed, c.cause)
		if next != c.next || ok != c.ok || ok != (warning != "") {
			t.Errorf("after %d of %s: %d %q %v", c.failed, c.cause, next, warning, ok)
		}
	}
}

func TestMemoryBack(t *testing.T) {
	const gib = 1 << 30
	at := func(a, b uint64) map[string]uint64 { return map[string]uint64{"a": a, "b": b} }
	before, loaded := at(20*gib, 8*gib), at(10*gib, 8*gib)
	for _, c := range []struct {
		name string
		now  map[string]uint64
		want bool
	}{
		{"all of it", at(20*gib, 8*gib), true},
		{"nearly", at(20*gib-500<<20, 8*gib), true},
		{"half of it", at(15*gib, 8*gib), false},
		{"another program took from a device that we did not use", at(20*gib, gib), true},
		{"the device is gone", map[string]uint64{}, false},
	} {
		if got := MemoryBack(before, loaded, c.now); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if got := Taken(before, loaded); got != 10*gib {
		t.Errorf("taken: %d", got)
	}
	if got := (Measured{EngineBytes: 4, GPUBytes: 3}).GPUFraction(); got != 0.75 {
		t.Errorf("fraction: %v", got)
	}
	if got := (Measured{}).GPUFraction(); got != 0 {
		t.Errorf("fraction of nothing: %v", got)
	}
}

func TestFailureKeepsItsCause(t *testing.T) {
	var start *StartError
	if err := (Status{LastError: "it burst", Cause: Crashed, Hints: []string{"h"}}).Failure(); !errors.As(err, &start) || start.Cause != Crashed || start.Error() != "it burst" || len(start.Hints) != 1 {
		t.Errorf("%+v", err)
	}
	if err := (Status{}).Failure(); err.Error() == "" {
		t.Error("a failure without a word")
	}
	inner := errors.New("inner")
	if !errors.Is(&StartError{Err: inner}, inner) {
		t.Error("the error underneath is lost")
	}
}
