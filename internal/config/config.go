// Package config reads the user's configuration: defaults, then the file, then the environment. It knows for every
// value where it came from. It reads nothing from a project: a project's files can never name a program, a URL or a
// key. It holds no key itself, only the name of the variable that does.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"localllm/internal/hint"
)

// Config is the whole configuration.
type Config struct {
	AutoEnable   bool     `toml:"auto_enable" help:"delegate enables an engine by itself"`
	Models       string   `toml:"models" help:"model table to pick from: current or documented"`
	ModelDirs    []string `toml:"model_dirs" help:"more folders with GGUF files"`
	Context      int      `toml:"context" help:"tokens of context to enable with; 0: the largest useful one"`
	KVType       string   `toml:"kv_type" help:"f16, q8_0 or q4_0; empty: what fits"`
	IdleLimit    Duration `toml:"idle_limit" help:"a persisted engine ends after this time without use; 0: never"`
	AllowShell   bool     `toml:"allow_shell" help:"agent mode may run commands without being asked to"`
	AllowNetwork bool     `toml:"allow_network" help:"commands of agent mode may use the network"`
	Profile      string   `toml:"profile" help:"where delegations go when nothing is said; empty: the managed engine"`

	AnswerWithin Duration `toml:"answer_within" help:"a call that shows no progress to its client gets a task_id after this time"`

	Tiers    map[string]Target  `toml:"tiers"`    // default, fast, deep
	Profiles map[string]Profile `toml:"profiles"` // by name

	// Table adds rows to the model table or replaces those with the same name.
	Table []map[string]any `toml:"model"`

	// Path is the file that was read or would be; Origins maps a key to "default", the file or a variable's name.
	Path    string            `toml:"-"`
	Origins map[string]string `toml:"-"`
}

// Target is what a tier stands for: a profile, a model, or both; in the file "profile/model" or a table.
type Target struct {
	Profile string `toml:"profile"`
	Model   string `toml:"model"`
	Think   bool   `toml:"think"`

	text string // "profile/model", until it is known which profiles there are
}

// Profile is an endpoint that somebody else runs.
type Profile struct {
	Kind      string            `toml:"kind" json:"kind"` // openai, anthropic, ollama, llama-server; empty: by the model's name
	BaseURL   string            `toml:"base_url" json:"base_url"`
	Model     string            `toml:"model" json:"model,omitempty"`
	Models    []string          `toml:"models" json:"models,omitempty"`           // allow-list; empty: any
	APIKeyEnv string            `toml:"api_key_env" json:"api_key_env,omitempty"` // the variable's name, never the key
	Headers   map[string]string `toml:"headers" json:"headers,omitempty"`
	Slots     int               `toml:"slots" json:"slots,omitempty"`
	Context   int               `toml:"context" json:"context,omitempty"`
	MaxTokens int               `toml:"max_tokens" json:"max_tokens,omitempty"`
	Tiers     map[string]string `toml:"tiers" json:"tiers,omitempty"` // default, fast, deep → model

	// Prices in US dollars per million tokens, for the ledger.
	PriceInput  float64 `toml:"price_input" json:"price_input,omitempty"`
	PriceCached float64 `toml:"price_cached" json:"price_cached,omitempty"`
	PriceOutput float64 `toml:"price_output" json:"price_output,omitempty"`

	IdleTimeout Duration `toml:"idle_timeout" json:"idle_timeout,omitzero"` // a stream that says nothing for so long has stalled
	Timeout     Duration `toml:"timeout" json:"timeout,omitzero"`           // one answer takes no longer

	NoStream  bool           `toml:"no_stream" json:"no_stream,omitempty"`   // the server can't stream
	ExtraBody map[string]any `toml:"extra_body" json:"extra_body,omitempty"` // merged into each request
}

// Kinds of profile.
var Kinds = []string{"openai", "anthropic", "ollama", "llama-server"}

// TierNames in the order of effort.
var TierNames = []string{"default", "fast", "deep"}

// Duration is a time.Duration that TOML and the environment write as "10m".
type Duration time.Duration

// UnmarshalText reads "90s", "10m", or a number of seconds.
func (d *Duration) UnmarshalText(text []byte) error {
	s := string(text)
	if _, err := strconv.Atoi(s); err == nil {
		s += "s"
	}
	v, err := time.ParseDuration(s)
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a length of time like 90s or 10m", text)
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes the length as UnmarshalText reads it.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Load reads path over the defaults, and the environment over both. A missing file is no error.
func Load(path string) (Config, error) {
	c := defaults(path)
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return c, fmt.Errorf("reading the configuration: %w", err)
	default:
		if err := c.parse(data); err != nil {
			return c, hint.Add(fmt.Errorf("%s: %w", path, err), "mend that line, or move the file away: localllm runs without one")
		}
	}
	c.resolveTiers()
	if err := c.readEnvironment(os.LookupEnv); err != nil {
		return c, err
	}
	return c, c.validate()
}

func defaults(path string) Config {
	c := Config{Models: "current", AnswerWithin: Duration(45 * time.Second), Path: path, Origins: map[string]string{}}
	for _, key := range scalarKeys() {
		c.Origins[key] = "default"
	}
	return c
}

func (c *Config) parse(data []byte) error {
	meta, err := toml.Decode(string(data), c)
	if err != nil {
		var perr toml.ParseError
		if errors.As(err, &perr) {
			return fmt.Errorf("line %d: %s", perr.Position.Line, perr.Message)
		}
		return err
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		names := make([]string, 0, len(unknown))
		for _, k := range unknown {
			// The model table checks its own rows; what a server takes is not for us to know.
			if !strings.HasPrefix(k.String(), "model.") && !strings.Contains(k.String(), ".extra_body.") {
				names = append(names, k.String())
			}
		}
		if len(names) > 0 {
			sort.Strings(names)
			return fmt.Errorf("unknown key %s; known are %s", strings.Join(names, ", "), strings.Join(keysBeside(names[0]), ", "))
		}
	}
	for _, key := range scalarKeys() {
		if meta.IsDefined(key) {
			c.Origins[key] = c.Path
		}
	}
	return nil
}

// keysBeside are the keys that may stand where an unknown one does.
func keysBeside(unknown string) []string {
	if table, _, _ := strings.Cut(unknown, "."); table == "profiles" {
		var keys []string
		for f := range reflect.TypeFor[Profile]().Fields() {
			keys = append(keys, f.Tag.Get("toml"))
		}
		return keys
	}
	return append(scalarKeys(), "tiers", "profiles", "model")
}

// scalarKeys are the plain settings, those that a variable LOCALLLM_<KEY> can set as well.
func scalarKeys() []string {
	var keys []string
	for f := range reflect.TypeFor[Config]().Fields() {
		if key := f.Tag.Get("toml"); f.Tag.Get("help") != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// variable is the name of the variable that sets key.
func variable(key string) string { return "LOCALLLM_" + strings.ToUpper(key) }

func (c *Config) readEnvironment(lookup func(string) (string, bool)) error {
	v := reflect.ValueOf(c).Elem()
	for f := range v.Type().Fields() {
		key := f.Tag.Get("toml")
		if f.Tag.Get("help") == "" {
			continue
		}
		text, set := lookup(variable(key))
		if !set || text == "" {
			continue
		}
		if err := assign(v.FieldByIndex(f.Index), text); err != nil {
			return fmt.Errorf("%s=%q: %w", variable(key), text, err)
		}
		c.Origins[key] = variable(key)
	}
	return nil
}

func assign(field reflect.Value, text string) error {
	switch p := field.Addr().Interface().(type) {
	case *string:
		*p = text
	case *[]string:
		*p = strings.Split(text, string(os.PathListSeparator))
	case *bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("want true or false")
		}
		*p = b
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return errors.New("want a whole number")
		}
		*p = n
	case *Duration:
		return p.UnmarshalText([]byte(text))
	}
	return nil
}

func (c *Config) validate() error {
	var problems []error
	wrong := func(key, format string, args ...any) {
		problems = append(problems, fmt.Errorf("%s (from %s): %s", key, c.Origins[key], fmt.Sprintf(format, args...)))
	}
	if !slices.Contains([]string{"current", "documented"}, c.Models) {
		wrong("models", "%q is not a model table; want current or documented", c.Models)
	}
	if c.KVType != "" && !slices.Contains([]string{"f16", "q8_0", "q4_0"}, c.KVType) {
		wrong("kv_type", "%q is not a cache type; want f16, q8_0 or q4_0", c.KVType)
	}
	if c.AnswerWithin <= 0 {
		wrong("answer_within", "want a length of time, like 45s")
	}
	if c.Context != 0 && (c.Context < 256 || c.Context > 1<<24) {
		wrong("context", "%d tokens; want 256 to 16777216, or 0 for the largest useful one", c.Context)
	}
	if c.Profile != "" && !c.hasProfile(c.Profile) {
		wrong("profile", "there is no profile %q", c.Profile)
	}
	// What follows can stand in the file alone.
	for _, name := range slices.Sorted(maps.Keys(c.Tiers)) {
		if !slices.Contains(TierNames, name) {
			problems = append(problems, fmt.Errorf("%s: tiers.%s: want default, fast or deep", c.Path, name))
		}
		if to := c.Tiers[name]; to.Profile != "" && !c.hasProfile(to.Profile) {
			problems = append(problems, fmt.Errorf("%s: tiers.%s: there is no profile %q", c.Path, name, to.Profile))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Profiles)) {
		for _, problem := range c.Profiles[name].problems(name) {
			problems = append(problems, fmt.Errorf("%s: %w", c.Path, problem))
		}
	}
	return errors.Join(problems...)
}

func (c *Config) hasProfile(name string) bool {
	_, ok := c.Profiles[name]
	return ok
}
