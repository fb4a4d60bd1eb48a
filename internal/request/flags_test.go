package request

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"localllm/delegate"
)

func TestFlagsAndJSONMeanTheSame(t *testing.T) {
	rows := []struct {
		action string
		args   []string
		raw    string
	}{
		{"delegate", []string{"--task", "do = it", "--task-type=test", "--context-files", "a,b", "--context-files", "c", "--output-files", "x.go=the code, all", "--output-files", "y.go",
			"--verify", "go test ./... && true", "--attempts", "2", "--allow-shell", "--tier", "deep"},
			`{"task":"do = it","task_type":"test","context_files":["a,b","c"],"output_files":[{"path":"x.go","description":"the code, all"},{"path":"y.go"}],
			"verify":"go test ./... && true","attempts":2,"allow_shell":true,"tier":"deep"}`},
		{"enable", []string{"--llm", "true:persist", "--slots=4", "--pull=false"}, `{"llm":"true:persist","slots":4}`},
		{"disable", []string{"--stop-engine=false"}, `{"stop_engine":false}`},
		{"stats", nil, `{}`},
	}
	for _, r := range rows {
		got := New(r.action)
		fs := pflag.NewFlagSet(r.action, pflag.ContinueOnError)
		Flags(fs, got)
		if err := fs.Parse(r.args); err != nil {
			t.Errorf("%v: %v", r.args, err)
			continue
		}
		want, err := Decode(r.action, json.RawMessage(r.raw))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) || Check(got) != nil {
			t.Errorf("%v: %+v, want %+v", r.args, got, want)
		}
	}
}

func TestFlagsAreCheckedAtOnce(t *testing.T) {
	for arg, want := range map[string]string{"--task-type=tests": "one of generate", "--max-turns=41": "from 1 to 40", "--attempts=x": "whole number",
		"--allow-shell=maybe": "true or false", "--output-files==x": "PATH[=description]", "--verify=": "sh -c", "--tasks=x": "unknown flag"} {
		fs := pflag.NewFlagSet("delegate", pflag.ContinueOnError)
		fs.SetOutput(&strings.Builder{})
		Flags(fs, new(delegate.Task))
		if err := fs.Parse([]string{arg}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", arg, err, want)
		}
	}
	if err := Check(new(delegate.Task)); err == nil || !strings.Contains(err.Error(), "task is missing") {
		t.Errorf("an empty task: %v", err)
	}
}

func TestHelpShowsDefaultsWithoutSettingThem(t *testing.T) {
	fs := pflag.NewFlagSet("delegate", pflag.ContinueOnError)
	task := new(delegate.Task)
	Flags(fs, task)
	usage := fs.FlagUsages()
	for _, want := range []string{"(default 3)", "--output-files PATH[=description]", "(rollback|keep)", "--allow-shell "} {
		if !strings.Contains(usage, want) {
			t.Errorf("the help lacks %q:\n%s", want, usage)
		}
	}
	if !reflect.DeepEqual(task, new(delegate.Task)) {
		t.Errorf("showing help set %+v", task)
	}
}
