package app

import (
	"errors"
	"strings"
	"testing"

	"localllm/delegate"
	"localllm/internal/tasks"
)

// A batch whose second endpoint can't be had once lost the results of the first, whose files were written.
func TestABatchTellsWhatWasDoneBeforeAnEndpointWasMissing(t *testing.T) {
	t.Setenv("APP_TEST_KEY", testKey)
	s := service(t, 200)
	a, ctx, _ := withConfig(t, `
[profiles.team]
kind = "openai"
base_url = "`+s.URL+`"
model = "m-1"
api_key_env = "APP_TEST_KEY"
`)
	there := delegate.Task{Task: "Say it.", TaskType: "ask", Profile: "team"}
	missing := delegate.Task{Task: "Say it.", TaskType: "ask", Profile: "none"}
	out, err := a.Delegate(ctx, &delegate.Task{Tasks: []delegate.Task{there, missing, there}}, func(Progress) {})
	if err != nil {
		t.Fatal(err)
	}
	res := out.(*delegate.BatchResult)
	if res.OK || res.Succeeded != 2 || res.Failed != 1 || res.Results[0].Status != delegate.Answered || res.Results[2].Status != delegate.Answered {
		t.Fatalf("%+v", res)
	}
	if r := res.Results[1]; r.Status != delegate.Refused || !strings.Contains(r.Reason, `no profile "none"`) || !strings.Contains(r.Hint, "team") || r.Files == nil {
		t.Errorf("%+v", r)
	}
	var invalid *InvalidError
	if _, err := a.Delegate(ctx, &delegate.Task{Tasks: []delegate.Task{missing, there}}, func(Progress) {}); !errors.As(err, &invalid) {
		t.Errorf("nothing was begun: %v", err)
	}
}

// What a runner found to be a bad request is one for whoever waits for it too.
func TestABrokenTaskKeepsItsExitCode(t *testing.T) {
	a := open(t)
	_, err := a.collected(tasks.State{ID: "t-1", State: tasks.Failed, Error: "an executor can't use that", Exit: 2})
	var broken *TaskError
	if !errors.As(err, &broken) || broken.Exit != 2 || !strings.Contains(err.Error(), "can't use that") {
		t.Errorf("%v", err)
	}
}
