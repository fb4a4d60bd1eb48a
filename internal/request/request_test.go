package request

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"localllm/delegate"
	"localllm/internal/hint"
)

func TestDecodeFillsEveryAction(t *testing.T) {
	yes := true
	rows := []struct {
		action, raw string
		want        any
	}{
		{"capability", `{"action":"capability","model":"qwen3:8b","context":8192,"kv_type":"q8_0"}`, &Capability{Model: "qwen3:8b", Context: 8192, KVType: "q8_0"}},
		{"capability", ``, &Capability{}},
		{"enable", `{"llm":true,"slots":2.0,"warm_files":["a.go"]}`, &Enable{LLM: "true", Slots: 2, WarmFiles: []string{"a.go"}}},
		{"enable", `{"llm":"hf.co/x/y:Q4_K_M:persist","persist":null}`, &Enable{LLM: "hf.co/x/y:Q4_K_M:persist"}},
		{"disable", `{"stop_engine":true}`, &Disable{StopEngine: &yes}},
		{"disable", `{}`, &Disable{}},
		{"status", `{"task_id":"t1","wait_s":0}`, &Status{TaskID: "t1"}},
		{"analyze", `{"task":"x","output_files":["a.go",{"path":"b.go"}],"verify":"true"}`,
			&Analyze{Task: "x", OutputFiles: []delegate.OutputFile{{Path: "a.go"}, {Path: "b.go"}}, Verify: json.RawMessage(`"true"`)}},
		{"delegate", `{"task":"x","output_files":[{"path":"a","description":"d"}],"verify":["go","test"],"mode":"agent","max_turns":40}`,
			&delegate.Task{Task: "x", OutputFiles: []delegate.OutputFile{{Path: "a", Description: "d"}}, Verify: json.RawMessage(`["go","test"]`), Mode: "agent", MaxTurns: 40}},
		{"delegate", `{"tasks":[{"task":"a"},{"task":"b","attempts":1}],"background":true}`,
			&delegate.Task{Tasks: []delegate.Task{{Task: "a"}, {Task: "b", Attempts: 1}}, Background: true}},
		{"stats", `{"since":"7d","by":"day"}`, &Stats{Since: "7d", By: "day"}},
	}
	for _, r := range rows {
		got, err := Decode(r.action, json.RawMessage(r.raw))
		if err != nil {
			t.Errorf("%s %s: %v", r.action, r.raw, err)
		} else if !reflect.DeepEqual(got, r.want) {
			t.Errorf("%s %s: %+v, want %+v", r.action, r.raw, got, r.want)
		}
	}
}

func TestErrorsNameTheFieldAndWhatItTakes(t *testing.T) {
	rows := []struct{ action, raw, field, reason, hint string }{
		{"delgate", `{}`, "action", `unknown action "delgate"`, `did you mean "delegate"?`},
		{"DELEGATE", `{}`, "action", `unknown action`, `"delegate"`},
		{"fly", `{}`, "action", "capability, enable, disable", ""},
		{"delegate", `{}`, "task", "task is missing: it takes a string", ""},
		{"delegate", `{"task":""}`, "task", "missing", ""},
		{"delegate", `{"tasks":[]}`, "task", "missing", ""},
		{"analyze", `{"task":" \n"}`, "task", "missing", ""},
		{"delegate", `{"task":"x","tasks":[{"task":"y"}]}`, "task", "can't both", ""},
		{"delegate", `{"tasks":[{"task":"y","tasks":[{"task":"z"}]}]}`, "tasks[0].tasks", "inside a batch", ""},
		{"delegate", `{"tasks":[{"task":"y"},{"task":"y"},{"task":"z","output_files":[{"description":"d"}]}]}`, "tasks[2].output_files[0].path", "is missing: it takes a string", ""},
		{"delegate", `{"tasks":[{"task":"y","verfy":"z"}]}`, "tasks[0].verfy", `unknown field "tasks[0].verfy"`, `did you mean "verify"? it takes a string for sh -c`},
		{"delegate", `{"tasks":[null]}`, "tasks[0]", "takes an object, not null", ""},
		{"delegate", `{"tasks":["do it"]}`, "tasks[0]", `takes an object, not "do it"`, ""},
		{"delegate", `{"task":7}`, "task", "task takes a string, not 7", ""},
		{"delegate", `{"Task":"x"}`, "Task", "unknown field", `did you mean "task"?`},
		{"delegate", `{"task":"x","taskType":"fix"}`, "taskType", "unknown field", `did you mean "task_type"?`},
		{"delegate", `{"task":"x","files":["a"]}`, "files", "delegate takes no such field", "files is a field of analyze"},
		{"delegate", `{"task":"x","zzz":1}`, "zzz", "unknown field", "delegate takes task, task_type"},
		{"delegate", `{"task":"x","context_files":"a"}`, "context_files", "takes a list of strings", ""},
		{"delegate", `{"task":"x","context_files":["a",null]}`, "context_files", "takes a list of strings", ""},
		{"delegate", `{"task":"x","output_files":{"path":"a"}}`, "output_files", `takes a list of {"path"`, ""},
		{"delegate", `{"task":"x","output_files":[{"path":"a","Path":"b"}]}`, "output_files[0].Path", "unknown field", `did you mean "path"?`},
		{"delegate", `{"task":"x","output_files":[""]}`, "output_files[0].path", "missing", ""},
		{"delegate", `{"task":"x","verify":[]}`, "verify", "sh -c", ""},
		{"delegate", `{"task":"x","verify":" "}`, "verify", "sh -c", ""},
		{"delegate", `{"task":"x","verify":{"a":1}}`, "verify", "sh -c", ""},
		{"delegate", `{"task":"x","max_turns":41}`, "max_turns", "a whole number from 1 to 40, not 41", ""},
		{"delegate", `{"task":"x","attempts":0}`, "attempts", "from 1 to 20, not 0", ""},
		{"delegate", `{"task":"x","attempts":"3"}`, "attempts", `not "3"`, ""},
		{"delegate", `{"task":"x","attempts":2.5}`, "attempts", "2.5", ""},
		{"delegate", `{"task":"x","timeout_s":1e300}`, "timeout_s", "1e300", ""},
		{"delegate", `{"task":"x","task_type":"tests"}`, "task_type", "one of generate, test,", `did you mean "test"?`},
		{"delegate", `{"task":"x","mode":"shell"}`, "mode", "one of files, text, agent", ""},
		{"delegate", `{"task":"x","allow_shell":"yes"}`, "allow_shell", "true or false", ""},
		{"enable", `{"llm":false}`, "llm", `true, "true:persist"`, ""},
		{"enable", `{"llm":3}`, "llm", "not 3", ""},
		{"enable", `{"llm":":persist"}`, "llm", "MODEL", ""},
		{"enable", `{"action":"disable"}`, "action", "action is enable here", ""},
		{"enable", `[1]`, "", "a JSON object, not [1]", ""},
		{"enable", `{"a":`, "", "not valid JSON", ""},
		{"status", `{"wait_s":-1}`, "wait_s", "from 0 to 3600", ""},
	}
	for _, r := range rows {
		_, err := Decode(r.action, json.RawMessage(r.raw))
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s %s: %v, want an *Error", r.action, r.raw, err)
			continue
		}
		if e.Field != r.field || !strings.Contains(e.Reason, r.reason) {
			t.Errorf("%s %s: field %q, %q; want %q, …%q…", r.action, r.raw, e.Field, e.Reason, r.field, r.reason)
		}
		if hints := strings.Join(hint.Of(err), "\n"); !strings.Contains(hints, r.hint) {
			t.Errorf("%s %s: hints %q lack %q", r.action, r.raw, hints, r.hint)
		}
		if len(err.Error()) > 400 {
			t.Errorf("%s: an error of %d bytes", r.action, len(err.Error()))
		}
	}
}

func TestParseNeedsTheAction(t *testing.T) {
	for raw, want := range map[string]string{`{}`: "action is missing", `{"action":3}`: "action takes one of", `"x"`: "a JSON object",
		`{"action":null}`: "missing", ``: "not valid JSON", `{"action":"enabel"}`: `unknown action "enabel"`} {
		if _, _, err := Parse(json.RawMessage(raw)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", raw, err, want)
		}
	}
	name, in, err := Parse(json.RawMessage(`{"action":"status","wait_s":5}`))
	if err != nil || name != "status" || in.(*Status).WaitS != 5 {
		t.Errorf("Parse = %q, %v, %v", name, in, err)
	}
}

func TestShortFormKeepsColonsOfAModel(t *testing.T) {
	for in, want := range map[LLM]struct {
		model   string
		persist bool
	}{"true": {"", false}, "True": {"", false}, "true:persist": {"", true}, "qwen3:8b": {"qwen3:8b", false},
		"hf.co/a/b:Q4_K_M:persist": {"hf.co/a/b:Q4_K_M", true}, "": {"", false}, "persist": {"persist", false}} {
		if model, persist := in.Split(); model != want.model || persist != want.persist {
			t.Errorf("%q: %q, %v", in, model, persist)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"action":"delegate","task":"x","tasks":[{"task":"y"}]}`, `{"action":"enable","llm":"a:b:persist"}`,
		`{"action":"analyze","task":"x","output_files":["a",{"path":"b"}],"verify":["a",null]}`, `{"action":"status","wait_s":1e9}`, `[]`, `{"action":`, `null`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, in, err := Parse(json.RawMessage(s))
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Reason == "" {
				t.Errorf("%q: %T %v is no usage error", s, err, err)
			}
			return
		}
		// What was understood means the same when it is written out and read again.
		raw, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Decode(name, raw)
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		if second, _ := json.Marshal(again); string(second) != string(raw) {
			t.Errorf("%s became %s", raw, second)
		}
	})
}
