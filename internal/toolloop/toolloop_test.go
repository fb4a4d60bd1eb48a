//go:build unix

package toolloop

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"localllm/delegate"
)

func TestReadsWritesAndIsProven(t *testing.T) {
	r := newRig(t,
		calls("list_files", args{}, "read_file", args{"path": "a.txt"}),
		calls("write_file", args{"path": "new/b.txt", "content": "b"}),
		calls("edit_file", args{"path": "a.txt", "old": "two", "new": "2"}),
		says("Wrote b.txt and changed a.txt."),
	).write(map[string]string{"a.txt": "one\ntwo\nthree\n"})
	res := r.run(delegate.Task{Verify: sh("grep -q 2 a.txt && test -f new/b.txt")})
	if res.Status != delegate.Proven || res.Turns != 4 || res.ToolCalls != 4 || res.MalformedCalls != 0 || res.StopReason != "end" || res.HitTurnLimit || res.Containment != "" || len(res.Files) != 2 {
		t.Errorf("%+v", res)
	}
	if r.read("a.txt") != "one\n2\nthree\n" || r.read("new/b.txt") != "b\n" || res.Text != "Wrote b.txt and changed a.txt." {
		t.Errorf("%q %q %q", r.read("a.txt"), r.read("new/b.txt"), res.Text)
	}
	told := r.model.told(0)
	if !strings.Contains(told, "a.txt (4 lines)") || !strings.Contains(told, "lines 1 to 3 of 3:\none\ntwo\nthree") || !strings.Contains(told, "[14 of 15 turns left; ") {
		t.Errorf("told %s", told)
	}
	if n := strings.Count(told, "turns left"); n != 1 {
		t.Errorf("the budget is told %d times in a turn", n)
	}
	for _, tool := range r.model.asked[0].Tools {
		if tool.Name == shellTool {
			t.Error("a shell that nobody allowed")
		}
	}
}

// Limits must not be in the prompt's beginning: there they would void all of the cache behind them.
func TestTheBeginningIsTheSameForAllBudgets(t *testing.T) {
	var first string
	for _, task := range []delegate.Task{{MaxTurns: 3, TimeoutS: 100}, {MaxTurns: 40, TimeoutS: 5000}} {
		r := newRig(t, says("There is nothing to be done here."))
		r.run(task)
		got := fmt.Sprint(r.model.asked[0].Messages, r.model.asked[0].Tools)
		if first == "" {
			first = got
		}
		if got != first || strings.Contains(got, r.dir) {
			t.Errorf("%s", got)
		}
	}
}

func TestRepairsGoOnInTheSameConversation(t *testing.T) {
	r := newRig(t,
		calls("write_file", args{"path": "a.txt", "content": "wrong"}), says("Wrote a.txt."),
		calls("write_file", args{"path": "a.txt", "content": "right"}), says("Wrote it again."))
	res := r.run(delegate.Task{Verify: sh("grep right a.txt || { echo a.txt:1: bad; exit 1; }")})
	if res.Status != delegate.Proven || len(res.Attempts) != 2 || res.Turns != 4 {
		t.Errorf("%+v", res)
	}
	if told := r.model.told(1); !strings.Contains(told, "a.txt:1: bad") || !strings.Contains(told, "13 of 15 turns left") {
		t.Errorf("told %s", told)
	}
}

func TestWhatEndsARound(t *testing.T) {
	look := calls("read_file", args{"path": "gone.txt"})
	write := calls("write_file", args{"path": "b.txt", "content": "x"})
	check := calls("run_bash", args{"command": "exit 1"})
	cut := delegate.Completion{Text: "Here it", Finish: delegate.FinishLength}
	red := sh("test -f never")
	rows := []struct {
		name           string
		say            []delegate.Completion
		task           delegate.Task
		window         int
		status, stop   string
		limit          bool
		reason, nudged string
		calls, bad     int
	}{
		{name: "an intention, twice", say: []delegate.Completion{says("I will now write the file."), says("Let me write it now.")}, status: delegate.Rejected, stop: stopIdle, reason: "announces", nudged: "You called no tool"},
		{name: "an intention, then the work", say: []delegate.Completion{says("I'll write the file."), write, says("Wrote b.txt.")}, status: delegate.Unverified, stop: stopEnd, calls: 1, nudged: "You called no tool"},
		{name: "empty, twice", say: []delegate.Completion{{Finish: delegate.FinishStop, Tokens: delegate.Tokens{Generated: 1}}, {Text: " \n", Finish: delegate.FinishStop, Tokens: delegate.Tokens{Generated: 1}}}, status: delegate.Rejected, stop: stopIdle, reason: "empty"},
		{name: "a verify and no change", say: []delegate.Completion{says("All is well already."), says("All is well already.")}, task: delegate.Task{Verify: red}, status: delegate.Rejected, stop: stopIdle, reason: "without changing any file", nudged: "changed no file"},
		{name: "an output left out", say: []delegate.Completion{says("All is done."), says("All is done.")}, task: delegate.Task{OutputFiles: []delegate.OutputFile{{Path: "out.txt"}}}, status: delegate.Rejected, stop: stopIdle, reason: "without writing out.txt", nudged: "not written out.txt"},
		{name: "an answer, with nothing to write", say: []delegate.Completion{says("It holds three functions.")}, status: delegate.Unverified, stop: stopEnd},
		{name: "the same failing call", say: []delegate.Completion{look, look, look}, status: delegate.Rejected, stop: stopRepeated, reason: "same failing call of read_file 3 times", calls: 3},
		{name: "the same failing command, after a change each time", say: []delegate.Completion{check, write, check, calls("write_file", args{"path": "b.txt", "content": "y"}), check, says("It still fails.")}, task: delegate.Task{AllowShell: true}, status: delegate.Unverified, stop: stopEnd, calls: 5},
		{name: "turns used up", say: []delegate.Completion{write, calls("read_file", args{"path": "b.txt"})}, task: delegate.Task{MaxTurns: 2}, status: delegate.Rejected, stop: stopTurns, limit: true, reason: "all 2 turns", calls: 2},
		{name: "turns used up, and verify is green", say: []delegate.Completion{write, calls("list_files", args{})}, task: delegate.Task{MaxTurns: 2, Verify: sh("test -f b.txt")}, status: delegate.Proven, stop: stopTurns, limit: true, calls: 2},
		{name: "turns used up, and verify is red", say: []delegate.Completion{write, calls("list_files", args{})}, task: delegate.Task{MaxTurns: 2, Verify: red}, status: delegate.Failed, stop: stopTurns, limit: true, calls: 2},
		{name: "cut off, twice", say: []delegate.Completion{cut, cut}, status: delegate.Rejected, stop: stopCut, reason: "cut off", nudged: "smaller steps"},
		{name: "cut off, once", say: []delegate.Completion{cut, write, says("Wrote b.txt.")}, status: delegate.Unverified, stop: stopEnd, calls: 1},
		{name: "calls that can't be read", say: []delegate.Completion{says("<tool_call>{"), says("<tool_call>{"), says("<tool_call>{"), says("<tool_call>{")}, status: delegate.Rejected, stop: stopGarbled, bad: 4, nudged: "valid JSON"},
		{name: "a full window", say: []delegate.Completion{calls("write_file", args{"path": "b.txt", "content": strings.Repeat("x\n", 3000)})}, window: 2600, status: delegate.Rejected, stop: stopWindow, reason: "window is full", calls: 1},
		{name: "no room to begin", window: 500, status: delegate.Refused, reason: "does not fit"},
	}
	for _, row := range rows {
		r := newRig(t, row.say...)
		r.model.window = row.window
		res := r.run(row.task)
		if res.Status != row.status || res.StopReason != row.stop || res.HitTurnLimit != row.limit || res.ToolCalls != row.calls || res.MalformedCalls != row.bad {
			t.Errorf("%s: %+v", row.name, res)
		}
		why := res.Reason
		if !strings.Contains(why, row.reason) || row.nudged != "" && !strings.Contains(r.model.told(0), row.nudged) {
			t.Errorf("%s: %q, told %q", row.name, why, r.model.told(0))
		}
		if !res.OK && r.read("b.txt") != "ABSENT" {
			t.Errorf("%s: b.txt is left", row.name)
		}
		if len(r.model.asked) != len(row.say) {
			t.Errorf("%s: %d of %d answers were asked for", row.name, len(r.model.asked), len(row.say))
		}
	}
}

func TestMalformedCallsAreCorrected(t *testing.T) {
	rows := []struct {
		name string
		turn delegate.Completion
		told string
		good bool
	}{
		{"broken JSON", calls("read_file", `{"path": "a.txt"`), "not valid JSON", false},
		{"no object", calls("read_file", `["a.txt"]`), "wrong type", false},
		{"a wrong type", calls("read_file", `{"path": 3}`), "wrong type", false},
		{"a missing argument", calls("read_file", `{"file": "a.txt"}`), "the argument path is missing", false},
		{"no arguments", calls("read_file", ``), "the argument path is missing", false},
		{"an unknown tool", calls("rm -rf /", `{}`), `there is no tool "rm -rf /" here; there are read_file, list_files`, false},
		{"a shell that is not allowed", calls("run_bash", `{"command":"id"}`), `there is no tool "run_bash"`, false},
		{"numbers as words", calls("read_file", `{"path":"a.txt","offset":"2","limit":1.0}`), "lines 2 to 2 of 2:\nb", true},
		{"more than asked", calls("read_file", `{"path":"a.txt","why":"x"}`), "lines 1 to 2", true},
		{"a call in the text", says("Now:\n<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a.txt\"}}\n</tool_call>"), "lines 1 to 2", true},
	}
	for _, row := range rows {
		r := newRig(t, row.turn, says("It has two lines.")).write(map[string]string{"a.txt": "a\nb\n"})
		res := r.run(delegate.Task{})
		if told := r.model.told(0); !strings.Contains(told, row.told) || (res.MalformedCalls == 0) != row.good || res.Status != delegate.Unverified {
			t.Errorf("%s: %+v, told %s", row.name, res, told)
		}
		for _, m := range r.model.asked[1].Messages {
			for _, c := range m.Calls {
				if !plainName.MatchString(c.Name) || !strings.HasPrefix(c.Arguments, "{") || c.ID == "" {
					t.Errorf("%s: in the history stands %+v", row.name, c)
				}
			}
		}
	}
}

// Ollama answers with nothing at all where it can't read its model's call, or does not know the tool.
func TestAnEngineThatLeavesTheCallOut(t *testing.T) {
	r := newRig(t, delegate.Completion{Finish: delegate.FinishStop}, calls("write_file", args{"path": "b.txt", "content": "x"}), says("Wrote b.txt."))
	if res := r.run(delegate.Task{}); res.Status != delegate.Unverified || res.MalformedCalls != 1 || !strings.Contains(r.model.told(0), "The tools are read_file, list_files") {
		t.Errorf("%+v, told %s", res, r.model.told(0))
	}
}

// llama-server answers with an error where its parser can't follow its own model.
func TestAnEngineThatCannotReadTheCall(t *testing.T) {
	r := newRig(t, delegate.Completion{}, calls("write_file", args{"path": "b.txt", "content": "x"}), says("Wrote b.txt."))
	r.model.errs[0] = errors.New("asking the model: The model produced output that does not match the expected peg-native format")
	if res := r.run(delegate.Task{}); res.Status != delegate.Unverified || res.MalformedCalls != 1 || res.Turns != 3 {
		t.Errorf("%+v", res)
	}
	r = newRig(t)
	r.model.errs[0] = errors.New("connection refused")
	res, err := r.runner.Run(t.Context(), delegate.Job{Task: delegate.Task{Task: "t", Mode: delegate.ModeAgent}})
	var engine *delegate.EngineError
	if !errors.As(err, &engine) || res.OK {
		t.Errorf("%+v %v", res, err)
	}
}

func TestManyCallsAtOnce(t *testing.T) {
	var pairs []any
	for range mostCalls + 3 {
		pairs = append(pairs, "list_files", args{})
	}
	r := newRig(t, calls(pairs...), says("There is one file.")).write(map[string]string{"a.txt": "a\n"})
	if res := r.run(delegate.Task{}); res.ToolCalls != mostCalls || !strings.Contains(r.model.told(0), "3 more calls of this turn were not carried out") {
		t.Errorf("%+v %s", res, r.model.told(0))
	}
}

func TestAnAgentsDefinition(t *testing.T) {
	r := newRig(t, calls("write_file", args{"path": "b.txt", "content": "x"}), says("There is nothing to write.")).write(map[string]string{".claude/agents/reader.md": "---\ntools: Read, Grep\n---\nSpeak like a pirate.\n"})
	res := r.run(delegate.Task{Agent: "reader"})
	if !strings.HasSuffix(res.AgentSource, ".claude/agents/reader.md") || !strings.Contains(r.model.asked[0].Messages[0].Content, "Speak like a pirate.") || r.read("b.txt") != "ABSENT" {
		t.Errorf("%+v", res)
	}
	var offered []string
	for _, tool := range r.model.asked[0].Tools {
		offered = append(offered, tool.Name)
	}
	if strings.Join(offered, " ") != "read_file list_files search" {
		t.Errorf("offered %q", offered)
	}
	if res := newRig(t).run(delegate.Task{Agent: "nobody"}); res.Status != delegate.Refused || !strings.Contains(res.Reason, "nobody") {
		t.Errorf("%+v", res)
	}
}

func TestADryRunAsksNobody(t *testing.T) {
	r := newRig(t)
	if res := r.run(delegate.Task{DryRun: true}); res.Status != delegate.Planned || len(r.model.asked) != 0 {
		t.Errorf("%+v", res)
	}
}

// What is shown reads as words where the count of tokens follows.
func TestPhasesOfATurn(t *testing.T) {
	var got []string
	c := &conversation{Loop: &Loop{}, order: delegate.WorkOrder{Task: delegate.Task{MaxTurns: 9}, Progress: func(u delegate.Update) { got = append(got, u.Phase) }}}
	c.say("", delegate.Generating{})
	c.say("", delegate.Generating{Phase: "generating", OutputTokens: 7})
	c.turns = 1
	c.say("read_file", delegate.Generating{})
	if want := []string{"turn 1 of 9", "turn 1 of 9: generating", "turn 1 of 9: read_file"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
