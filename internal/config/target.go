package config

import (
	"fmt"
	"path"
	"strings"
)

// UnmarshalTOML reads a tier as "profile/model", or as a table.
func (t *Target) UnmarshalTOML(value any) error {
	switch v := value.(type) {
	case string:
		t.text = v
		return nil
	case map[string]any:
		for key, field := range v {
			ok := true
			switch key {
			case "profile":
				t.Profile, ok = field.(string)
			case "model":
				t.Model, ok = field.(string)
			case "think":
				t.Think, ok = field.(bool)
			default:
				return fmt.Errorf("a tier has profile, model and think, not %q", key)
			}
			if !ok {
				return fmt.Errorf("a tier's %s is of another type than %T", key, field)
			}
		}
		return nil
	}
	return fmt.Errorf("a tier is \"profile/model\" or a table, not %T", value)
}

// resolveTiers takes "profile/model" apart. Models have slashes in their names too, so that only the name of a
// profile that there is counts as one.
func (c *Config) resolveTiers() {
	for name, t := range c.Tiers {
		if t.text == "" {
			continue
		}
		profile, model, _ := strings.Cut(t.text, "/")
		if c.hasProfile(profile) {
			t.Profile, t.Model = profile, model
		} else {
			t.Model = t.text
		}
		t.text = ""
		c.Tiers[name] = t
	}
}

// KindFor is the format that a model of this profile is spoken to in.
func (p Profile) KindFor(model string) string {
	if p.Kind != "" {
		return p.Kind
	}
	for _, prefix := range []string{"deepseek-", "openai-", "gpt-", "qwen-"} {
		if strings.HasPrefix(strings.ToLower(model), prefix) {
			return "openai"
		}
	}
	return "anthropic"
}

// Allows reports whether the profile may be asked for a model. A star in the list stands for any characters but a slash.
func (p Profile) Allows(model string) bool {
	for _, pattern := range p.Models {
		if ok, err := path.Match(pattern, model); pattern == model || (err == nil && ok) {
			return true
		}
	}
	return len(p.Models) == 0
}

// ModelFor is the model of a tier, or the profile's own.
func (p Profile) ModelFor(tier string) string {
	if m := p.Tiers[tier]; tier != "" && m != "" {
		return m
	}
	if p.Model != "" {
		return p.Model
	}
	return p.Tiers["default"]
}

// Cost is what tokens cost at the profile's prices in US dollars, and whether it names any. Cached tokens without a
// price of their own cost what others do.
func (p Profile) Cost(prompt, cached, generated int) (float64, bool) {
	if p.PriceInput == 0 && p.PriceOutput == 0 {
		return 0, false
	}
	reused := p.PriceCached
	if reused == 0 {
		reused = p.PriceInput
	}
	cached = min(max(cached, 0), max(prompt, 0))
	return (float64(max(prompt, 0)-cached)*p.PriceInput + float64(cached)*reused + float64(max(generated, 0))*p.PriceOutput) / 1e6, true
}
