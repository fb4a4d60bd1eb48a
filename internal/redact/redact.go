// Package redact finds secrets in text and takes them out: toward endpoints that are not on this machine, and from
// what is logged and returned. It knows the shapes of common keys and tokens; it never promises to know all.
package redact

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
)

// Text replaces each secret in s by the name of the rule that found it.
func Text(s string) string {
	if len(s) < shortest {
		return s
	}
	found := find(s)
	if len(found) == 0 {
		return s
	}
	var out strings.Builder
	at := 0
	for _, f := range found {
		out.WriteString(s[at:f.start])
		out.WriteString("[redacted:" + f.rule + "]")
		at = f.end
	}
	out.WriteString(s[at:])
	return out.String()
}

// Hide replaces each secret in s by a word of its own, the same for the same secret while this process lives. reveal
// puts the secrets back into a text in which those words occur.
func Hide(s string) (hidden string, reveal func(string) string) {
	found := find(s)
	if len(found) == 0 {
		return s, func(t string) string { return t }
	}
	var out strings.Builder
	var pairs []string
	at := 0
	for _, f := range found {
		word := word(s[f.start:f.end])
		out.WriteString(s[at:f.start])
		out.WriteString(word)
		pairs = append(pairs, word, s[f.start:f.end])
		at = f.end
	}
	out.WriteString(s[at:])
	return out.String(), strings.NewReplacer(pairs...).Replace
}

// The key makes the words say nothing about the secrets, short ones included.
var wordKey = sync.OnceValue(func() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails, by crypto/rand's promise
	return key
})

func word(secret string) string {
	mac := hmac.New(sha256.New, wordKey())
	mac.Write([]byte(secret))
	return "HIDDEN_" + strings.ToUpper(hex.EncodeToString(mac.Sum(nil)[:6]))
}

// Has reports whether there is a secret in s, and which kind.
func Has(s string) (kind string, found bool) {
	if f := find(s); len(f) > 0 {
		return f[0].rule, true
	}
	return "", false
}

type finding struct {
	start, end int
	rule       string
}

// find lists the secrets in s in their order, overlapping ones as one.
func find(s string) []finding {
	lower := strings.ToLower(s)
	if len(lower) != len(s) {
		lower = asciiLower(s) // some letters change their length: positions must stay
	}
	var all []finding
	for _, r := range rules() {
		if r.occurs(lower) {
			all = r.find(s, all)
		}
	}
	slices.SortFunc(all, func(a, b finding) int {
		if a.start != b.start {
			return a.start - b.start
		}
		return b.end - a.end
	})
	var out []finding
	for _, f := range all {
		if n := len(out); n > 0 && f.start < out[n-1].end {
			out[n-1].end = max(out[n-1].end, f.end)
			continue
		}
		out = append(out, f)
	}
	return out
}

func asciiLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
