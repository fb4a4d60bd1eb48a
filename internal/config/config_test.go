package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEachValueKnowsItsOrigin(t *testing.T) {
	path := write(t, `
auto_enable = true
idle_limit = "10m"
model_dirs = ["/models"]

[tiers.deep]
profile = "team"
model = "big"

[profiles.team]
kind = "openai"
base_url = "http://10.0.0.5:8000/v1"
api_key_env = "TEAM_KEY"
slots = 4
`)
	t.Setenv("LOCALLLM_KV_TYPE", "q8_0")
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if !c.AutoEnable || time.Duration(c.IdleLimit) != 10*time.Minute || c.KVType != "q8_0" || c.Models != "current" {
		t.Errorf("values: %+v", c)
	}
	if c.Profiles["team"].Slots != 4 || c.Tiers["deep"].Model != "big" {
		t.Errorf("tables: %+v %+v", c.Profiles, c.Tiers)
	}
	for key, want := range map[string]string{"auto_enable": path, "kv_type": "LOCALLLM_KV_TYPE", "models": "default"} {
		if got := c.Origins[key]; got != want {
			t.Errorf("%s came from %q, want %q", key, got, want)
		}
	}
}

func TestMissingFileIsTheDefaults(t *testing.T) {
	c, err := Load(filepath.Join(t.TempDir(), "none.toml"))
	if err != nil || c.Models != "current" || c.AutoEnable {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestWrongConfigurationNamesItsKey(t *testing.T) {
	profile := "[profiles.p]\nbase_url = \"http://localhost:1\"\n"
	for text, want := range map[string]string{
		"auto_enable = 3":                     "auto_enable",
		"auto_enabled = true":                 "unknown key auto_enabled",
		"models = \"newest\"":                 "want current or documented",
		"kv_type = \"q5\"":                    "want f16, q8_0 or q4_0",
		"context = -1":                        "want 256 to",
		"context = 3":                         "want 256 to",
		profile + "url = \"x\"":               "known are kind, base_url, model",
		"[tiers.fast]\nmodle = \"x\"":         "a tier has profile, model and think",
		"= =":                                 "line 1",
		"idle_limit = \"soon\"":               "length of time",
		"idle_limit = -5":                     "length of time",
		"profile = \"x\"":                     "there is no profile",
		"[tiers.huge]\nmodel = \"m\"":         "tiers.huge",
		profile + "kind = \"grpc\"":           "profiles.p.kind",
		profile + "api_key_env = \"sk-1234\"": "never the key itself",
		profile + "[profiles.p.headers]\nAuthorization = \"Bearer x\"":            "is a secret",
		"[profiles.p]\nbase_url = \"ftp://x\"":                                    "profiles.p.base_url",
		"[profiles.p]\nbase_url = \"http://169.254.169.254/v1\"":                  "link-local",
		"[profiles.p]\nbase_url = \"http://me:secret@example.com/v1\"":            "api_key_env instead",
		"[profiles.p]\nbase_url = \"http://localhost:1\"\ntiers = {huge = \"m\"}": "profiles.p.tiers",
	} {
		_, err := Load(write(t, text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want it to say %q", text, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), "config.toml") {
			t.Errorf("%q: %v does not name the file", text, err)
		}
	}
}

// What «profiles show» prints is the whole profile: it once left out prices, time limits and extra fields.
func TestASectionIsTheWholeProfile(t *testing.T) {
	all := Profile{
		Kind: "openai", BaseURL: "http://127.0.0.1:8000/v1", Model: "m", Models: []string{"m", "n-*"}, APIKeyEnv: "TEAM_KEY",
		Headers: map[string]string{"X Team": "web \"a\""}, Slots: 4, Context: 32768, MaxTokens: 8192, Tiers: map[string]string{"fast": "n-1"},
		PriceInput: 2, PriceCached: 0.05, PriceOutput: 1.5, IdleTimeout: Duration(90 * time.Second), Timeout: Duration(time.Hour), NoStream: true,
		ExtraBody: map[string]any{
			"provider": map[string]any{"sort": "price", "order": []any{"a", "b"}}, "top_k": int64(40), "temperature": 1.0, "min_p": 0.05, "echo": false,
			"stops": []any{map[string]any{"text": "\u007f"}},
		},
	}
	set := reflect.ValueOf(all)
	for i := range set.NumField() {
		if set.Field(i).IsZero() {
			t.Errorf("%s is not tried here", set.Type().Field(i).Name)
		}
	}
	text := Section("team", all, "two\nlines")
	c, err := Load(write(t, text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if got := c.Profiles["team"]; !reflect.DeepEqual(got, all) {
		t.Errorf("got  %+v\nwant %+v\nof %s", got, all, text)
	}
	if got := tomlValue([]map[string]any{{"a": int64(1)}}); got != "[{a = 1}]" {
		t.Errorf("a list of tables is %s", got)
	}
}

func TestLoopback(t *testing.T) {
	for base, want := range map[string]bool{
		"http://localhost:1": true, "http://127.0.0.9:1/v1": true, "http://[::1]:1": true,
		"http://localhost.example.com": false, "http://10.0.0.1": false, "https://api.example.com": false,
	} {
		if got := (Profile{BaseURL: base}).Loopback(); got != want {
			t.Errorf("%s: %v", base, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("auto_enable = true\n[profiles.p]\nbase_url = \"http://localhost:1\""))
	f.Add([]byte("[[model]]\nname = 1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := Config{Origins: map[string]string{}}
		if c.parse(data) == nil {
			_ = c.validate()
		}
	})
}
