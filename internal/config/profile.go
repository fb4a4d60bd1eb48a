package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// problems lists what is wrong with a profile, each naming its key.
func (p Profile) problems(name string) []error {
	var found []error
	wrong := func(key, format string, args ...any) {
		found = append(found, fmt.Errorf("profiles.%s.%s: %s", name, key, fmt.Sprintf(format, args...)))
	}
	if p.Kind != "" && !slices.Contains(Kinds, p.Kind) {
		wrong("kind", "%q; want %s", p.Kind, strings.Join(Kinds, ", "))
	}
	if err := checkURL(p.BaseURL); err != nil {
		wrong("base_url", "%v", err)
	}
	if strings.ContainsAny(p.APIKeyEnv, " -.:/") || strings.HasPrefix(p.APIKeyEnv, "sk") {
		wrong("api_key_env", "want the name of a variable, never the key itself")
	}
	for h := range p.Headers {
		if secretHeader(h) {
			wrong("headers", "%s is a secret: name its variable in api_key_env instead", h)
		}
	}
	for _, price := range []float64{p.PriceInput, p.PriceCached, p.PriceOutput} {
		if !(price >= 0) || price > 1e6 {
			wrong("price_input, price_cached, price_output", "want US dollars per million tokens")
			break
		}
	}
	for _, field := range []string{"model", "messages", "stream", "tools", "system"} {
		if _, has := p.ExtraBody[field]; has {
			wrong("extra_body", "%s is not for the configuration to say", field)
		}
	}
	if p.Slots < 0 || p.Context < 0 || p.MaxTokens < 0 {
		wrong("slots, context, max_tokens", "want 0 or more")
	}
	for tier := range p.Tiers {
		if !slices.Contains(TierNames, tier) {
			wrong("tiers", "%q; want default, fast or deep", tier)
		}
	}
	return found
}

func secretHeader(name string) bool {
	name = strings.ToLower(name)
	return slices.Contains([]string{"authorization", "x-api-key", "api-key", "proxy-authorization", "cookie"}, name) ||
		strings.HasSuffix(name, "-token") || strings.HasSuffix(name, "-secret") || strings.HasSuffix(name, "-key")
}

func checkURL(base string) error {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return fmt.Errorf("%q; want http(s)://host[:port][/path]", base)
	}
	if u.User != nil {
		return fmt.Errorf("it holds a name or password: name a variable in api_key_env instead")
	}
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil && (addr.Unmap().IsLinkLocalUnicast() || addr.IsUnspecified()) {
		return fmt.Errorf("%s is link-local or no address: refused", addr)
	}
	return nil
}

// Loopback reports whether nothing sent to this profile leaves the machine.
func (p Profile) Loopback() bool {
	u, err := url.Parse(p.BaseURL)
	if err != nil {
		return false
	}
	if u.Hostname() == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(u.Hostname())
	return err == nil && addr.IsLoopback()
}
