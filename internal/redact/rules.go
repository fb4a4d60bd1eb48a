package redact

import (
	_ "embed"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

//go:embed rules.tsv
var table string

// Our own rules, in the same form: what a scanner of repositories leaves out, and a prompt must not.
const ownRules = "url-password\t0\t1\t://\t[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\\s/:@'\"<>]{0,64}:([^\\s/@'\"<>$\\{]{3,256})@[a-zA-Z0-9]\n" +
	"bearer-header\t3\t1\tbearer\t(?i)authorization['\"]?\\s*[:=,]\\s*['\"]?bearer\\s+([a-z0-9._~+/=-]{16,})\n" +
	"private-key-lines\t0\t0\tprivate key\t(?s)-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----.{40,}?(?:-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----|\\z)\n"

// shortest is below the length of any secret that a rule finds.
const shortest = 8

// rule is one shape of secret. Its expression is compiled when one of its keywords first occurs: compiling all of
// them takes longer than a whole delegation may.
type rule struct {
	name     string
	entropy  float64
	group    int
	keywords []string
	compiled func() *regexp.Regexp
}

var rules = sync.OnceValue(func() []*rule {
	var out []*rule
	for line := range strings.Lines(table + ownRules) {
		part := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 5)
		if len(part) < 5 || strings.HasPrefix(line, "#") {
			continue
		}
		r := &rule{name: part[0], keywords: strings.Split(strings.ToLower(part[3]), ",")}
		r.entropy, _ = strconv.ParseFloat(part[1], 64)
		r.group, _ = strconv.Atoi(part[2])
		r.compiled = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(part[4]) })
		out = append(out, r)
	}
	return out
})

func (r *rule) occurs(lower string) bool {
	for _, k := range r.keywords {
		if strings.Contains(lower, k) {
			return true
		}
	}
	return false
}

func (r *rule) find(s string, all []finding) []finding {
	for _, m := range r.compiled().FindAllStringSubmatchIndex(s, -1) {
		start, end := m[0], m[1]
		if r.group > 0 && 2*r.group+1 < len(m) && m[2*r.group] >= 0 {
			start, end = m[2*r.group], m[2*r.group+1]
		} else {
			for g := 2; g+1 < len(m); g += 2 {
				if m[g] >= 0 && m[g+1] > m[g] {
					start, end = m[g], m[g+1]
					break
				}
			}
		}
		secret := s[start:end]
		if end-start < 3 || entropy(secret) < r.entropy || harmless.MatchString(secret) || r.name == "generic-api-key" && !looksRandom(secret) {
			continue
		}
		all = append(all, finding{start, end, r.name})
	}
	return all
}

// Placeholders, variables and paths are no secrets; a redacted text stays as it is.
var harmless = regexp.MustCompile(`^(?:(?i:true|false|null|none|nil)|\$\{?[A-Za-z_][A-Za-z0-9_.]*\}?|\$?\{\{.*\}\}|%[A-Za-z_]+%|<[^>]+>|[xX*.]+|.*EXAMPLE|(?i:pass(?:word)?|pwd|secret|token|user|changeme|test)|HIDDEN_[0-9A-F]{12}|\[redacted.*)$`)

// looksRandom keeps the broadest rule from taking names out of code: words have no digits among their letters.
func looksRandom(s string) bool {
	digits := 0
	for _, c := range s {
		if '0' <= c && c <= '9' {
			digits++
		}
	}
	return digits >= 2 && !strings.ContainsAny(s, "() ")
}

// entropy is Shannon's, in bits a byte.
func entropy(s string) float64 {
	if s == "" {
		return 0
	}
	var counts [256]int
	for i := range len(s) {
		counts[s[i]]++
	}
	sum := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(s))
			sum -= p * math.Log2(p)
		}
	}
	return sum
}
