package app

import (
	"strings"
	"testing"

	"localllm/delegate"
)

// A tier that nothing stands for is answered by the usual model, and that is said.
func TestATierThatIsNotConfigured(t *testing.T) {
	t.Setenv("APP_TEST_KEY", testKey)
	s := service(t, 200)
	a, ctx, _ := withConfig(t, `
profile = "team"
[profiles.team]
kind = "openai"
base_url = "`+s.URL+`"
model = "m-1"
api_key_env = "APP_TEST_KEY"
tiers = {fast = "m-2"}
[profiles.plain]
kind = "openai"
base_url = "`+s.URL+`"
model = "m-1"
api_key_env = "APP_TEST_KEY"
[tiers]
deep = "m-2"
`)
	for _, c := range []struct {
		task delegate.Task
		want string
	}{
		{delegate.Task{}, ""},
		{delegate.Task{Tier: "default"}, ""},
		{delegate.Task{Tier: "fast"}, ""},
		{delegate.Task{Tier: "deep"}, ""},
		{delegate.Task{Tier: "fast", Profile: "plain"}, "tier fast is not configured in profile plain"},
		{delegate.Task{Tier: "fast", Profile: "plain", Model: "m-1"}, ""},
	} {
		c.task.Task, c.task.TaskType = "Say it.", "ask"
		out, err := a.Delegate(ctx, &c.task, func(Progress) {})
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(out.(*delegate.Result).Warnings, "; ")
		if c.want == "" && strings.Contains(got, "tier") || !strings.Contains(got, c.want) {
			t.Errorf("tier %q of profile %q: warnings %q, want %q", c.task.Tier, c.task.Profile, got, c.want)
		}
	}
	if got := a.tierWarnings(&delegate.Task{Tier: "fast"}, ""); len(got) != 1 || !strings.Contains(got[0], "[tiers]") {
		t.Errorf("of the managed engine: %q", got)
	}
}
