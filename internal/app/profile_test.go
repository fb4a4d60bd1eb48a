package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"localllm/capability"
	"localllm/delegate"
	"localllm/internal/engine/protocoltest"
	"localllm/internal/hint"
	"localllm/internal/practice"
	"localllm/internal/request"
	"localllm/test/harness"
)

const testKey = "sk-app-test-0123456789"

// withConfig opens an App in a home of its own with that configuration, and a project to work in.
func withConfig(t *testing.T, text string) (*App, context.Context, string) {
	t.Helper()
	home, project := t.TempDir(), t.TempDir()
	t.Setenv("LOCALLLM_HOME", home)
	t.Setenv("CLAUDE_PROJECT_DIR", project)
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := Open(Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a, WithCall(t.Context(), &Call{Project: project}), home
}

// service is a scripted server with models and one answer.
func service(t *testing.T, status int) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if status != 200 || r.Header.Get("Authorization") != "Bearer "+testKey {
			w.WriteHeader(max(status, 401))
			fmt.Fprintf(w, `{"error":{"message":"wrong key %s"}}`, r.Header.Get("Authorization"))
			return
		}
		if strings.HasSuffix(r.URL.Path, "/models") {
			fmt.Fprint(w, `{"data":[{"id":"m-1"},{"id":"m-2"},{"id":"other"}]}`)
			return
		}
		fmt.Fprint(w, `{"model":"m-1","choices":[{"message":{"content":"It says: `+testKey+`"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":100}}`)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestADelegationToAProfile(t *testing.T) {
	t.Setenv("APP_TEST_KEY", testKey)
	s := service(t, 200)
	a, ctx, home := withConfig(t, `
[profiles.team]
kind = "openai"
base_url = "`+s.URL+`"
model = "m-1"
models = ["m-*"]
api_key_env = "APP_TEST_KEY"
price_input = 2.0
price_output = 10.0
tiers = {fast = "m-2"}
[tiers]
deep = "team/m-2"
`)
	out, err := a.Delegate(ctx, &delegate.Task{Task: "Say it.", TaskType: "ask", Profile: "team"}, func(Progress) {})
	if err != nil {
		t.Fatal(err)
	}
	res := out.(*delegate.Result)
	if res.Status != delegate.Answered || res.Model != "m-1" || res.CostUSD == nil || *res.CostUSD < 0.0029 || *res.CostUSD > 0.0031 {
		t.Errorf("%+v cost %v", res, res.CostUSD)
	}
	page, err := a.Ledger(ctx, &request.Stats{}, 0)
	if err != nil || len(page.Delegations) != 1 || page.Sums.Priced != 1 || page.Sums.CostUSD < 0.0029 || page.Delegations[0].Profile != "team" || page.Sums.ByStatus["answered"] != 1 {
		t.Errorf("%+v %v", page, err)
	}
	// Not a byte of the key in the result, nor in any file that was written.
	if strings.Contains(fmt.Sprintf("%+v", *res), testKey) {
		t.Error("the key is in the result")
	}
	for _, dir := range []string{home, os.Getenv("CLAUDE_PROJECT_DIR")} {
		_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, _ error) error {
			if data, err := os.ReadFile(path); err == nil && strings.Contains(string(data), testKey) {
				t.Errorf("the key is in %s", path)
			}
			return nil
		})
	}
	for tier, want := range map[string]string{"fast": "m-2", "default": "m-1"} {
		to, err := a.target(ctx, &delegate.Task{Profile: "team", Tier: tier}, func(Progress) {})
		if err != nil || to.limits.Model != want {
			t.Errorf("tier %s: %+v %v", tier, to, err)
		}
	}
	if to, err := a.target(ctx, &delegate.Task{Tier: "deep"}, func(Progress) {}); err != nil || to.limits.Profile != "team" || to.limits.Model != "m-2" {
		t.Errorf("tiers.deep: %+v %v", to, err)
	}
	var invalid *InvalidError
	if _, err := a.target(ctx, &delegate.Task{Profile: "team", Model: "other"}, func(Progress) {}); !errors.As(err, &invalid) || !strings.Contains(err.Error(), "may not be asked") {
		t.Errorf("a model that is not on the list: %v", err)
	}
	if _, err := a.target(ctx, &delegate.Task{Profile: "none"}, func(Progress) {}); !errors.As(err, &invalid) || len(hint.Of(err)) == 0 {
		t.Errorf("a profile that is not there: %v", err)
	}
}

func TestHealthOfAProfile(t *testing.T) {
	t.Setenv("APP_TEST_KEY", testKey)
	t.Setenv("APP_NO_KEY", "")
	good, bad := service(t, 200), service(t, 401)
	a, ctx, _ := withConfig(t, `
[profiles.good]
base_url = "`+good.URL+`"
kind = "openai"
api_key_env = "APP_TEST_KEY"
models = ["m-*"]
model = "m-9"
[profiles.bad]
base_url = "`+bad.URL+`"
kind = "openai"
api_key_env = "APP_TEST_KEY"
[profiles.keyless]
base_url = "`+good.URL+`"
kind = "anthropic"
model = "m"
api_key_env = "APP_NO_KEY"
[profiles.far]
base_url = "https://api.example.com"
model = "m"
[profiles.gone]
base_url = "http://127.0.0.1:1"
model = "m"
`)
	for name, want := range map[string]string{"good": "", "bad": "key refused", "keyless": "APP_NO_KEY", "gone": "nothing listens"} {
		h, err := a.profileHealth(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		if h.OK != (want == "") || !strings.Contains(h.Error, want) || strings.Contains(h.Error, testKey) {
			t.Errorf("%s: %+v", name, h)
		}
	}
	if h, _ := a.profileHealth(ctx, "good"); strings.Join(h.Models, " ") != "m-1 m-2" || !strings.Contains(h.Note, "m-9") {
		t.Errorf("%+v", h)
	}
	if h, err := a.TestProfile(ctx, "good", "m-1", true); err != nil || !h.OK || !strings.Contains(h.Answer, "[the key]") {
		t.Errorf("%+v %v", h, err)
	}
	r := &capability.Report{Engines: []capability.EngineInfo{{Name: "ollama"}}}
	start := time.Now()
	if err := a.addProfiles(ctx, r, ""); err != nil || len(r.Engines) != 6 {
		t.Fatalf("%+v %v", r.Engines, err)
	}
	if took := time.Since(start); took > 4*time.Second { // one that is asked for by name is waited for 5 s
		t.Errorf("a look at the machine waited %s for profiles", took)
	}
	states := map[string]capability.EngineState{}
	for _, e := range r.Engines {
		states[e.Name] = e.State
	}
	for name, want := range map[string]capability.EngineState{"good": capability.Running, "bad": capability.Unreachable, "keyless": capability.Unreachable, "far": capability.Installed, "gone": capability.Unreachable} {
		if states[name] != want {
			t.Errorf("%s is %q, want %q", name, states[name], want)
		}
	}
	if err := a.addProfiles(ctx, r, "good"); err != nil || len(r.Engines) != 1 || r.Engines[0].Models != 2 {
		t.Errorf("%+v %v", r.Engines, err)
	}
	// Who asks about a profile is told of its endpoint, and not of what this machine could run.
	r = &capability.Report{CanEnable: true, Recommended: &capability.Choice{}, Models: []capability.ModelReport{{}}}
	if err := a.addProfiles(ctx, r, "good"); err != nil || !r.CanEnable || r.Recommended != nil || len(r.Models) != 0 {
		t.Errorf("%+v %v", r, err)
	}
	if err := a.addProfiles(ctx, r, "gone"); err != nil || r.CanEnable || len(r.Reasons) != 1 || !strings.Contains(r.Reasons[0], "nothing listens") || strings.Count(r.Reasons[0], "gone") != 1 {
		t.Errorf("%+v %v", r, err)
	}
	if err := a.addProfiles(ctx, r, "none"); err == nil {
		t.Error("an unknown profile was no error")
	}
	out, err := a.Enable(ctx, &request.Enable{Profile: "good", Model: "m-1", Context: 4096}, func(Progress) {})
	if err != nil {
		t.Fatal(err)
	}
	if e := out.(*Enabled); !e.Enabled || e.Profile != "good" || e.Owned || e.Model != "m-1" || len(e.Warnings) == 0 {
		t.Errorf("%+v", e)
	}
	if _, err := a.Enable(ctx, &request.Enable{Profile: "gone"}, func(Progress) {}); err == nil {
		t.Error("an endpoint that does not answer was enabled")
	}
}

// Both engines as somebody else's servers, in every kind that fits.
func TestProfilesOfRealEngines(t *testing.T) {
	ollama := harness.Start(t, harness.Ollama, protocoltest.Script, practice.Options{Tools: true})
	llama := harness.Start(t, harness.LlamaServer, protocoltest.Script, practice.Options{Tools: true})
	var text strings.Builder
	for name, kind := range map[string]string{"o-native": "ollama", "o-openai": "openai", "o-anthropic": "anthropic"} {
		fmt.Fprintf(&text, "[profiles.%s]\nkind = %q\nbase_url = %q\nmodel = %q\ncontext = 8192\n", name, kind, ollama.URL, ollama.Model)
	}
	for name, kind := range map[string]string{"l-native": "llama-server", "l-openai": "openai", "l-anthropic": "anthropic"} {
		fmt.Fprintf(&text, "[profiles.%s]\nkind = %q\nbase_url = %q\n", name, kind, llama.URL)
	}
	a, ctx, _ := withConfig(t, text.String())
	for _, name := range a.profileNames() {
		t.Run(name, func(t *testing.T) {
			to, err := a.profileTarget(name, "", "", false)
			if err != nil {
				t.Fatal(err)
			}
			defer to.close()
			if name == "l-native" && to.limits.Context < 8192 {
				t.Errorf("the window was not asked for: %+v", to.limits)
			}
			if to.limits.Profile != name || !to.limits.Loopback {
				t.Errorf("%+v", to.limits)
			}
			out, err := a.Delegate(ctx, &delegate.Task{Task: "WHO-ARE-YOU", TaskType: "ask", Profile: name}, func(Progress) {})
			if err != nil {
				t.Fatal(err)
			}
			if res := out.(*delegate.Result); res.Status != delegate.Answered || res.Text != protocoltest.Script[0].Say || res.Tokens.Prompt == 0 {
				t.Errorf("%+v", res)
			}
			if h, err := a.profileHealth(ctx, name); err != nil || !h.OK || len(h.Models) == 0 {
				t.Errorf("%+v %v", h, err)
			}
		})
	}
}

// The places of a profile are shared by all that use it: with one slot, two delegations never meet at its server.
func TestSlotsOfAProfileAreShared(t *testing.T) {
	var now, most atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for {
			if old := most.Load(); n <= old || most.CompareAndSwap(old, n) {
				break
			}
		}
		<-time.After(50 * time.Millisecond) // as long as an answer takes
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}]}`)
	}))
	defer s.Close()
	for slots, want := range map[int]int32{1: 1, 2: 2} {
		most.Store(0)
		a, ctx, _ := withConfig(t, fmt.Sprintf("[profiles.p]\nkind = \"openai\"\nbase_url = %q\nmodel = \"m\"\nslots = %d\n", s.URL, slots))
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if _, err := a.Delegate(ctx, &delegate.Task{Task: "Say it.", TaskType: "ask", Profile: "p"}, func(Progress) {}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if got := most.Load(); got != want {
			t.Errorf("%d slots: %d requests at once", slots, got)
		}
	}
}
