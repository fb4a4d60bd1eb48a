package redact

import (
	"regexp"
	"strings"
	"testing"
)

// Secrets are put together here, so that no scanner takes this file for a leak.
var secrets = map[string]string{
	"AWS key":         "AKIA" + "IOSFODNN7QXZ2ABC",
	"GitHub token":    "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5",
	"Anthropic key":   "sk-ant-api03-" + strings.Repeat("aB3dE5fG7h", 9) + "xYz" + "AA",
	"Slack token":     "xoxb-" + "123456789012-1234567890123-aB3dE5fG7hJ9kL1mN3pQ5rS7",
	"URL password":    "postgres://app:" + "h8Gj2kLp9" + "@db.internal/x",
	"bearer":          "Authorization: Bearer " + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9v",
	"private key":     "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat("MIIEpAIBAAKCAQEA7", 8) + "\n-----END RSA PRIVATE KEY-----",
	"half a key":      "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("MIIEpAIBAAKCAQEA7", 8),
	"named by a word": `api_key = "` + "9f8e7d6c5b4a39281706" + `f5e4d3c2b1a0"`,
}

func TestSecretsAreFound(t *testing.T) {
	for name, secret := range secrets {
		s := "before\n" + secret + "\nafter"
		got := Text(s)
		if !strings.Contains(got, "[redacted:") || !strings.HasPrefix(got, "before\n") || strings.Contains(got, secret) {
			t.Errorf("%s: %q", name, got)
		}
		if Text(got) != got {
			t.Errorf("%s: redacted again: %q", name, Text(got))
		}
		if kind, found := Has(s); !found || kind == "" {
			t.Errorf("%s: not found", name)
		}
		hidden, reveal := Hide(s)
		if again, _ := Hide(s); again != hidden || hidden == s || reveal(hidden) != s {
			t.Errorf("%s: hidden as %q", name, hidden)
		}
		if twice, _ := Hide(hidden); twice != hidden {
			t.Errorf("%s: hidden again: %q", name, twice)
		}
	}
	if out := Text("key " + secrets["private key"] + "\ntext after"); !strings.HasSuffix(out, "text after") {
		t.Errorf("what follows a key is lost: %q", out)
	}
}

func TestCodeIsLeftAlone(t *testing.T) {
	for _, s := range []string{
		"func tokenize(secretName string) (apiKeyHeader, error)", `password := os.Getenv("DB_PASSWORD")`, "https://example.com/a:b@c", `token = "${GITHUB_TOKEN}"`, `api_key: "your-api-key-here"`,
		"Authorization: Bearer $TOKEN", "sha256:" + strings.Repeat("ab12", 16), "postgres://user:password@localhost/db", "AKIAIOSFODNN7EXAMPLE", "", "é" + strings.Repeat("İ", 20) + " key",
	} {
		if got := Text(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

func TestEveryRuleCompiles(t *testing.T) {
	names := map[string]bool{}
	for _, r := range rules() {
		if r.compiled() == nil || len(r.keywords) == 0 || r.keywords[0] == "" || names[r.name] {
			t.Errorf("rule %s: keywords %q", r.name, r.keywords)
		}
		names[r.name] = true
	}
	if len(names) < 200 {
		t.Errorf("%d rules", len(names))
	}
}

// A log line of an ordinary task must cost next to nothing, the first one too: it needs no rule's expression.
func TestOrdinaryTextIsCheap(t *testing.T) {
	asked := 0
	for _, r := range rules() {
		compiled := r.compiled
		r.compiled = func() *regexp.Regexp { asked++; return compiled() }
		t.Cleanup(func() { r.compiled = compiled })
	}
	Text(strings.Repeat("Write CRUD routes for the user model. ", 13))
	if asked > 0 {
		t.Errorf("%d expressions were asked for", asked)
	}
	if Text(secrets["GitHub token"]); asked == 0 {
		t.Error("no expression was asked for a token")
	}
}

func BenchmarkText(b *testing.B) {
	s := strings.Repeat("func add(a, b int) int { return a + b } // a line of code\n", 1700)
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		Text(s)
	}
}

func FuzzHide(f *testing.F) {
	for _, s := range secrets {
		f.Add("x " + s + " y")
	}
	f.Add("HIDDEN_0123456789AB https://a:bcd@e")
	f.Fuzz(func(t *testing.T, s string) {
		hidden, reveal := Hide(s)
		if !strings.Contains(s, "HIDDEN_") && reveal(hidden) != s {
			t.Errorf("%q → %q → %q", s, hidden, reveal(hidden))
		}
		Text(s)
	})
}
