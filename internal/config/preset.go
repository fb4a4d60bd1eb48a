package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Preset is a profile that many people will want, as init writes it.
type Preset struct {
	Name    string
	About   string
	Profile Profile
}

// Presets are the known servers and services. Prices are not among them: they change.
var Presets = []Preset{
	{"ollama", "an Ollama that somebody else runs", Profile{Kind: "ollama", BaseURL: "http://127.0.0.1:11434"}},
	{"llama-server", "a llama-server that somebody else runs", Profile{Kind: "llama-server", BaseURL: "http://127.0.0.1:8080"}},
	{"lmstudio", "LM Studio's server", Profile{Kind: "openai", BaseURL: "http://127.0.0.1:1234/v1"}},
	{"vllm", "vLLM; with --api-key, name the key's variable in api_key_env", Profile{Kind: "openai", BaseURL: "http://127.0.0.1:8000/v1", Slots: 8}},
	{"litellm", "a LiteLLM proxy; the format follows the model's name", Profile{BaseURL: "http://127.0.0.1:4000/v1", APIKeyEnv: "LITELLM_API_KEY", Slots: 4}},
	{"openrouter", "OpenRouter", Profile{Kind: "openai", BaseURL: "https://openrouter.ai/api/v1", APIKeyEnv: "OPENROUTER_API_KEY", Slots: 4}},
	{"deepseek", "DeepSeek", Profile{Kind: "openai", BaseURL: "https://api.deepseek.com/v1", APIKeyEnv: "DEEPSEEK_API_KEY", Model: "deepseek-chat", Slots: 4}},
	{"anthropic", "Anthropic", Profile{Kind: "anthropic", BaseURL: "https://api.anthropic.com/v1", APIKeyEnv: "ANTHROPIC_API_KEY", Model: "claude-haiku-4-5", Slots: 4}},
	{"groq", "Groq", Profile{Kind: "openai", BaseURL: "https://api.groq.com/openai/v1", APIKeyEnv: "GROQ_API_KEY", Model: "llama-3.3-70b-versatile", Slots: 4}},
	{"cerebras", "Cerebras", Profile{Kind: "openai", BaseURL: "https://api.cerebras.ai/v1", APIKeyEnv: "CEREBRAS_API_KEY", Slots: 4}},
}

// PresetNames in their order.
func PresetNames() []string {
	names := make([]string, len(Presets))
	for i, p := range Presets {
		names[i] = p.Name
	}
	return names
}

// FindPreset looks a preset up.
func FindPreset(name string) (Preset, bool) {
	for _, p := range Presets {
		if p.Name == name {
			return p, true
		}
	}
	return Preset{}, false
}

// Template is a configuration file that sets nothing and shows all there is.
func Template() string {
	return `# localllm's configuration. Nothing here is needed: every line that begins with a mark is off.
# Keys never stand in this file: api_key_env names the variable that holds one.

# auto_enable = true        # delegate enables an engine by itself
# context = 32768           # tokens of window to enable with
# kv_type = "q8_0"          # f16, q8_0 or q4_0
# model_dirs = ["/models"]  # more folders with GGUF files
# idle_limit = "30m"        # a persisted engine ends after this time without use
# allow_shell = false       # agent mode may run commands without being asked to
# profile = "NAME"          # where delegations go when nothing is said; without it: the managed engine

# Tiers: what delegate's tier stands for, as "profile/model".
# [tiers]
# default = "vllm/qwen-coder"
# fast = "groq/llama-3.3-70b-versatile"
# deep = {profile = "deepseek", model = "deepseek-reasoner", think = true}

# A profile and all that it may say.
# [profiles.NAME]
# kind = "openai"           # openai, anthropic, ollama, llama-server; without it the model's name decides
# base_url = "http://127.0.0.1:8000/v1"
# model = "qwen-coder"
# models = ["qwen-*"]       # no other may be asked for
# api_key_env = "NAME_API_KEY"
# headers = {X-Team = "web"}
# slots = 4                 # requests at once, over all processes
# context = 32768           # tokens of window, where the server does not say
# max_tokens = 8192         # of one answer
# price_input = 0.50        # US dollars per million tokens, for the ledger
# price_cached = 0.05
# price_output = 1.50
# idle_timeout = "2m"       # a stream that says nothing for so long has stalled
# timeout = "30m"           # one answer takes no longer
# no_stream = true          # the server can't stream
# extra_body = {provider = {sort = "price"}}  # merged into each request
# tiers = {fast = "qwen-small", deep = "qwen-large"}
`
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// Section is a profile as text of the file.
func Section(name string, p Profile, comments ...string) string {
	var b strings.Builder
	for _, c := range comments {
		fmt.Fprintf(&b, "# %s\n", strings.ReplaceAll(c, "\n", " "))
	}
	fmt.Fprintf(&b, "[profiles.%s]\n", tomlKey(name))
	text := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s = %s\n", key, quote(value))
		}
	}
	number := func(key string, value int) {
		if value != 0 {
			fmt.Fprintf(&b, "%s = %d\n", key, value)
		}
	}
	price := func(key string, value float64) {
		if value != 0 {
			fmt.Fprintf(&b, "%s = %s\n", key, decimal(value))
		}
	}
	span := func(key string, value Duration) {
		if value != 0 {
			text(key, time.Duration(value).String())
		}
	}
	text("kind", p.Kind)
	text("base_url", p.BaseURL)
	text("model", p.Model)
	if len(p.Models) > 0 {
		all := make([]string, len(p.Models))
		for i, m := range p.Models {
			all[i] = quote(m)
		}
		fmt.Fprintf(&b, "models = [%s]\n", strings.Join(all, ", "))
	}
	text("api_key_env", p.APIKeyEnv)
	table(&b, "headers", p.Headers)
	number("slots", p.Slots)
	number("context", p.Context)
	number("max_tokens", p.MaxTokens)
	price("price_input", p.PriceInput)
	price("price_cached", p.PriceCached)
	price("price_output", p.PriceOutput)
	span("idle_timeout", p.IdleTimeout)
	span("timeout", p.Timeout)
	if p.NoStream {
		b.WriteString("no_stream = true\n")
	}
	table(&b, "extra_body", p.ExtraBody)
	table(&b, "tiers", p.Tiers)
	return b.String()
}

func table[T any](b *strings.Builder, key string, values map[string]T) {
	if len(values) > 0 {
		fmt.Fprintf(b, "%s = %s\n", key, inline(values))
	}
}

func inline[T any](values map[string]T) string {
	pairs := make([]string, 0, len(values))
	for _, k := range slices.Sorted(maps.Keys(values)) {
		pairs = append(pairs, tomlKey(k)+" = "+tomlValue(values[k]))
	}
	return "{" + strings.Join(pairs, ", ") + "}"
}

// tomlValue writes a value of a kind that TOML is read into.
func tomlValue(value any) string {
	switch v := value.(type) {
	case string:
		return quote(v)
	case map[string]any:
		return inline(v)
	case []map[string]any:
		items := make([]string, len(v))
		for i := range v {
			items[i] = inline(v[i])
		}
		return "[" + strings.Join(items, ", ") + "]"
	case []any:
		items := make([]string, len(v))
		for i := range v {
			items[i] = tomlValue(v[i])
		}
		return "[" + strings.Join(items, ", ") + "]"
	case float64:
		return decimal(v)
	case time.Time:
		return v.Format(time.RFC3339Nano)
	}
	return fmt.Sprint(value)
}

// decimal keeps the point: without one, TOML reads a whole number.
func decimal(v float64) string {
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if v == math.Trunc(v) {
		s += ".0"
	}
	return s
}

func tomlKey(k string) string {
	if bareKey.MatchString(k) {
		return k
	}
	return quote(k)
}

// quote writes a TOML string; JSON's escapes are among TOML's.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(strings.ToValidUTF8(s, "?"))
	return strings.ReplaceAll(strings.TrimSpace(b.String()), "\u007f", `\u007f`)
}
