package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func file(t *testing.T, home, name, text string) {
	t.Helper()
	path := filepath.Join(home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func lookup(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

const secret = "sk-never-copy-me-123"

func TestTakeover(t *testing.T) {
	home := t.TempDir()
	file(t, home, ".claude.json", `{"mcpServers":{"delegate-local":{"command":"uv","env":{"DELEGATE_LOCAL_URL":"http://localhost:4000/v1/messages",
		"DELEGATE_LOCAL_KEY":"`+secret+`","DELEGATE_LOCAL_MODEL":"local-qwen","DELEGATE_LOCAL_CODING_MODEL":"ornith","DELEGATE_CONCURRENCY_LOCAL":"2"}}}}`)
	file(t, home, ".agent-delegate/profiles.toml", `default_profile = "haiku"
[profiles.haiku]
backend = "anthropic"
api_key_env = "ANTHROPIC_API_KEY"
default_model = "claude-haiku-4-5"
timeout = 90
[profiles.inline]
backend = "openai-compat"
base_url = "https://api.example.com/v1"
api_key = "`+secret+`"
default_model = "m"
extra_headers = {Authorization = "Bearer `+secret+`", X-Title = "t"}
[profiles.odd]
backend = "openai-compat"
base_url = "http://169.254.169.254/"
default_model = "m"
`)
	file(t, home, ".config/sub-agent-mcp/tiers.toml", `passthrough_env = ["OPENROUTER_API_KEY"]
extra_approved_models = ["openrouter/x/y"]
[tiers]
default = "openrouter/anthropic/claude-sonnet-4-6"
fast = "ollama/llama3.2:3b"
deep = "opencode/gpt-5.5-pro"
`)
	got := FindOthers(home, lookup("SUBAGENT_WRITE_ROOTS", "/tmp"))
	if len(got.Found) != 3 {
		t.Errorf("found %v", got.Found)
	}
	d := got.Profiles["delegate-local"]
	if d.Kind != "" || d.BaseURL != "http://localhost:4000/v1/messages" || d.Model != "local-qwen" || d.APIKeyEnv != "DELEGATE_LOCAL_KEY" || d.Slots != 2 || d.Tiers["deep"] != "ornith" {
		t.Errorf("%+v", d)
	}
	if h := got.Profiles["haiku"]; h.Kind != "anthropic" || h.BaseURL != "https://api.anthropic.com/v1" || time.Duration(h.Timeout) != 90*time.Second {
		t.Errorf("%+v", h)
	}
	if p := got.Profiles["inline"]; p.APIKeyEnv != "INLINE_API_KEY" || len(p.Headers) != 1 || p.Headers["X-Title"] != "t" {
		t.Errorf("%+v", p)
	}
	if _, there := got.Profiles["odd"]; there {
		t.Error("a link-local address was taken over")
	}
	if p := got.Profiles["openrouter"]; len(p.Models) != 2 || p.APIKeyEnv != "OPENROUTER_API_KEY" {
		t.Errorf("%+v", p)
	}
	if len(got.Tiers) != 2 || got.Tiers["default"] != "openrouter/anthropic/claude-sonnet-4-6" || got.Tiers["fast"] != "ollama/llama3.2:3b" {
		t.Errorf("tiers %v", got.Tiers)
	}
	notes := strings.Join(got.Notes, "\n")
	for _, want := range []string{"opencode", "169.254", "SUBAGENT_WRITE_ROOTS", "INLINE_API_KEY", "DELEGATE_LOCAL_KEY", "passthrough_env", "run_bash"} {
		if !strings.Contains(notes, want) {
			t.Errorf("no note of %s in:\n%s", want, notes)
		}
	}

	path := filepath.Join(home, "conf", "config.toml")
	a := Addition{Profiles: got.Profiles, Tiers: got.Tiers, Default: got.Default, Notes: got.Notes}
	added, err := Extend(path, a, false)
	if err != nil || !added.Created || len(added.Profiles) != 5 {
		t.Fatalf("%+v, %v", added, err)
	}
	text, _ := os.ReadFile(path)
	if strings.Contains(string(text)+notes, secret) {
		t.Errorf("a key was copied:\n%s", text)
	}
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if to := c.Tiers["default"]; to.Profile != "openrouter" || to.Model != "anthropic/claude-sonnet-4-6" {
		t.Errorf("%+v", to)
	}
	if c.Profile != "" {
		t.Errorf("the default became %q without being asked", c.Profile)
	}
	again, err := Extend(path, a, false)
	if err != nil || again.Created || len(again.Profiles) != 0 || len(again.Kept) != 5 {
		t.Errorf("again: %+v, %v", again, err)
	}
	if now, _ := os.ReadFile(path); string(now) != string(text) {
		t.Errorf("a second time changed the file:\n%s", now)
	}
}

func TestTakeoverOfTheEnvironment(t *testing.T) {
	got := FindOthers(t.TempDir(), lookup("DELEGATE_LOCAL_MODEL", "qwen-x", "DELEGATE_LOCAL_KEY", secret, "DELEGATE_TURN_TIMEOUT", "60", "DELEGATE_RUN_BASH", "0"))
	p := got.Profiles["delegate-local"]
	if p.BaseURL != "http://localhost:4000/v1/messages" || p.Model != "qwen-x" || p.APIKeyEnv != "DELEGATE_LOCAL_KEY" || time.Duration(p.Timeout) != time.Minute || len(got.Notes) != 0 {
		t.Errorf("%+v %v", p, got.Notes)
	}
	if none := FindOthers(t.TempDir(), lookup()); len(none.Found)+len(none.Profiles)+len(none.Notes) != 0 {
		t.Errorf("nothing was there: %+v", none)
	}
}

func TestTakeoverOfBrokenFiles(t *testing.T) {
	home := t.TempDir()
	file(t, home, ".claude.json", `{`)
	file(t, home, ".agent-delegate/profiles.toml", `api_key = "`+secret+` unclosed`)
	got := FindOthers(home, lookup())
	if len(got.Profiles) != 0 || len(got.Notes) != 1 || strings.Contains(got.Notes[0], secret) {
		t.Errorf("%+v", got)
	}
}

// What is taken over from a file of another tool can be written, and read again.
func FuzzTakeover(f *testing.F) {
	f.Add(`{"mcpServers":{"x":{"env":{"DELEGATE_LOCAL_URL":"http://localhost:4000/v1/messages","DELEGATE_LOCAL_MODEL":"m","DELEGATE_TURN_TIMEOUT":"60"}}}}`,
		"default_profile = \"a\"\n[profiles.a]\nbackend = \"anthropic\"\ndefault_model = \"m\"\ntimeout = 90\nextra_headers = {X-Title = \"t\"}",
		"extra_approved_models = [\"openrouter/x/y\"]\n[tiers]\ndefault = \"openrouter/a/b\"")
	f.Add(`{"env":{"DELEGATE_LOCAL_KEY":"k","DELEGATE_TURN_TIMEOUT":"9223372036854775807"}}`, "[profiles.\"a b\\n\"]\nbase_url = \"http://localhost:1\"\ndefault_model = \"\\u0001\"\ntimeout = 1e-12", "[tiers]\nx = \"/\"")
	f.Fuzz(func(t *testing.T, claude, profiles, tiers string) {
		home := t.TempDir()
		file(t, home, ".claude.json", claude)
		file(t, home, ".agent-delegate/profiles.toml", profiles)
		file(t, home, ".config/sub-agent-mcp/tiers.toml", tiers)
		found := FindOthers(home, lookup())
		for name, p := range found.Profiles {
			text := Section(name, p, found.Origin(name))
			c, err := Load(write(t, text))
			if err != nil {
				t.Errorf("%q can't be read: %v\n%s", name, err, text)
			} else if got, ok := c.Profiles[name]; !ok || got.Model != p.Model || got.BaseURL != p.BaseURL {
				t.Errorf("%q became %+v\n%s", name, c.Profiles, text)
			}
		}
	})
}

func TestExtendLeavesWhatIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	mine := "# mine\ncontext = 4096 # keep\n[profiles.vllm]\nbase_url = \"http://10.0.0.5:8000\"\n"
	if err := os.WriteFile(path, []byte(mine), 0o640); err != nil {
		t.Fatal(err)
	}
	all := map[string]Profile{}
	for _, p := range Presets {
		all[p.Name] = p.Profile
	}
	dry, err := Extend(path, Addition{Profiles: all}, true)
	if err != nil || !strings.HasPrefix(dry.Text, mine) || len(dry.Profiles) != len(Presets)-1 {
		t.Fatalf("%+v %v", dry, err)
	}
	if now, _ := os.ReadFile(path); string(now) != mine {
		t.Error("a dry run wrote")
	}
	if _, err := Extend(path, Addition{Profiles: all}, false); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path)
	if err != nil || c.Context != 4096 || c.Profiles["vllm"].BaseURL != "http://10.0.0.5:8000" || len(c.Profiles) != len(Presets) {
		t.Errorf("%+v %v", c, err)
	}
	for _, preset := range Presets {
		if preset.Name == "vllm" {
			continue
		}
		if got := c.Profiles[preset.Name]; got.Kind != preset.Profile.Kind || got.BaseURL != preset.Profile.BaseURL || got.Slots != preset.Profile.Slots {
			t.Errorf("%s came back as %+v", preset.Name, got)
		}
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v", info.Mode())
	}
	if err := os.WriteFile(path, []byte("context = \"x\""), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Extend(path, Addition{Profiles: all}, false); err == nil {
		t.Error("a broken file was extended")
	}
}

// The template sets nothing; with its marks taken off all of it is valid.
func TestTemplate(t *testing.T) {
	c, err := Load(write(t, Template()))
	if err != nil || len(c.Profiles) != 0 || c.AutoEnable {
		t.Errorf("%+v %v", c, err)
	}
	var on []string
	for line := range strings.SplitSeq(Template(), "\n") {
		if off, ok := strings.CutPrefix(line, "# "); ok && (strings.Contains(off, " = ") || strings.HasPrefix(off, "[")) {
			on = append(on, strings.ReplaceAll(off, "NAME\"          #", "vllm\" #"))
		}
	}
	text := strings.ReplaceAll(strings.Join(on, "\n"), "profiles.NAME", "profiles.vllm") + "\n[profiles.deepseek]\nbase_url = \"http://localhost\""
	c, err = Load(write(t, text))
	if err != nil || c.Profiles["vllm"].PriceCached != 0.05 || c.Tiers["default"].Profile != "vllm" || !c.Tiers["deep"].Think {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestTiers(t *testing.T) {
	profile := "[profiles.groq]\nbase_url = \"http://localhost:1\"\n"
	c, err := Load(write(t, profile+"[tiers]\nfast = \"groq/llama\"\ndefault = \"hf/model\"\ndeep = {profile = \"groq\", model = \"a/b\", think = true}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for tier, want := range map[string]Target{"fast": {Profile: "groq", Model: "llama"}, "default": {Model: "hf/model"}, "deep": {Profile: "groq", Model: "a/b", Think: true}} {
		if got := c.Tiers[tier]; got != want {
			t.Errorf("%s: %+v", tier, got)
		}
	}
	for text, want := range map[string]string{
		"[tiers]\nfast = 3": "tier", "[tiers]\nfast = {profile = 3}": "profile", "[tiers]\nfast = {speed = 1}": "speed", "[tiers]\nfast = {profile = \"x\"}": "no profile \"x\"",
		profile + "price_input = -1": "price", profile + "price_input = nan": "price", profile + "extra_body = {messages = 1}": "extra_body", profile + "headers = {X-Auth-Token = \"a\"}": "secret",
	} {
		if _, err := Load(write(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want it to say %q", text, err, want)
		}
	}
}

func TestFormatByName(t *testing.T) {
	for model, want := range map[string]string{
		"deepseek-chat": "openai", "openai-x": "openai", "gpt-5": "openai", "Qwen-3": "openai", "local-qwen-3": "anthropic", "claude-x": "anthropic", "qwen3:8b": "anthropic", "": "anthropic",
	} {
		if got := (Profile{}).KindFor(model); got != want {
			t.Errorf("%s: %s", model, got)
		}
	}
	if got := (Profile{Kind: "ollama"}).KindFor("gpt-5"); got != "ollama" {
		t.Errorf("the profile's own kind must win, got %s", got)
	}
}

func TestCost(t *testing.T) {
	p := Profile{PriceInput: 1, PriceCached: 0.1, PriceOutput: 2}
	if got, ok := p.Cost(1_000_000, 500_000, 100_000); !ok || got < 0.7499 || got > 0.7501 {
		t.Errorf("%v %v", got, ok)
	}
	if got, ok := (Profile{PriceInput: 1}).Cost(1_000_000, 500_000, 5); !ok || got != 1 {
		t.Errorf("cached tokens without a price: %v %v", got, ok)
	}
	if _, ok := (Profile{}).Cost(1, 1, 1); ok {
		t.Error("a cost without prices")
	}
	if got, _ := p.Cost(10, 50, -3); got != 10*0.1/1e6 {
		t.Errorf("odd counts: %v", got)
	}
}

func TestAllowedModels(t *testing.T) {
	p := Profile{Models: []string{"qwen-*", "meta/llama", "[odd"}, Model: "qwen-a", Tiers: map[string]string{"fast": "qwen-b"}}
	for model, want := range map[string]bool{"qwen-a": true, "qwen-": true, "qwen-a/b": false, "meta/llama": true, "meta/other": false, "": false, "[odd": true} {
		if got := p.Allows(model); got != want {
			t.Errorf("%q: %v", model, got)
		}
	}
	if !(Profile{}).Allows("any") || p.ModelFor("fast") != "qwen-b" || p.ModelFor("deep") != "qwen-a" || p.ModelFor("") != "qwen-a" {
		t.Error("models by tier")
	}
}
