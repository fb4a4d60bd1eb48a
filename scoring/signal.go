package scoring

import (
	"fmt"
	"strings"
)

// base is where every task starts, in hundredths: with it «Generate Express CRUD routes for User model» has 0.78.
const base = 48

// signal is a row of the table that is found in words.
type signal struct {
	name   string
	impact int // hundredths
	forms  map[string]bool
}

// The forms are written out: a stem with a wildcard takes «author» for «auth» and «latest» for «test».
// Prefixes that are split off by a hyphen (re-test, un-authorized) need no row.
var signals = []signal{
	{"pattern-based generation", 30, words(`
		crud cruds boilerplate boilerplates boilerplating boilerplated
		scaffold scaffolds scaffolded scaffolding scaffoldings scaffolder scaffolders`)},
	{"test generation", 20, words(`
		test tests tested testing retest retests retested retesting untested pretest pretests
		unittest unittests subtest subtests testcase testcases testsuite testsuites
		spec specs specced speccing`)},
	{"architecture decision", -40, words(`
		design designs designed designing redesign redesigns redesigned redesigning
		architect architects architected architecting architecture architectures architectural architecturally
		rearchitect rearchitects rearchitected rearchitecting`)},
	{"security-related", -25, words(`
		auth auths authn authz oauth authed
		authenticate authenticates authenticated authenticating authentication authentications
		authenticator authenticators unauthenticated reauthenticate reauthenticates reauthenticated
		reauthenticating reauthentication
		authorize authorizes authorized authorizing authorization authorizations authorizer authorizers
		authorise authorises authorised authorising authorisation authorisations
		unauthorized unauthorised preauthorize preauthorized deauthorize deauthorized reauthorize reauthorized
		secure secures secured securing securely securer unsecured insecure insecurely security insecurity
		cybersecurity
		encrypt encrypts encrypted encrypting encryption encryptions encrypter encryptor unencrypted
		reencrypt reencrypts reencrypted reencrypting reencryption`)},
}

func words(list string) map[string]bool {
	m := make(map[string]bool)
	for _, w := range strings.Fields(list) {
		m[w] = true
	}
	return m
}

// Prior is the documented table for a task: base and signals, clamped to 0…1, with a reason for each part.
func Prior(t Task) (float64, []Reason) {
	sum := base
	reasons := []Reason{{Signal: "base", Impact: hundredths(base), Detail: "where every task starts"}}
	add := func(name string, impact int, detail string) {
		sum += impact
		reasons = append(reasons, Reason{Signal: name, Impact: hundredths(impact), Detail: detail})
	}
	text := read(t.Text)
	for _, s := range signals {
		if word := text.find(s.forms); word != "" {
			add(s.name, s.impact, fmt.Sprintf("the task says «%s»", word))
		}
	}
	switch {
	case t.Outputs == 1:
		add("single output file", 20, "exactly one output file")
	case t.Outputs > 2:
		add("multi-file coordination", -30, fmt.Sprintf("%d output files have to agree", t.Outputs))
	}
	return hundredths(min(max(sum, 0), 100)), reasons
}

func hundredths(n int) float64 { return float64(n) / 100 }
