package scoring

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// c, t, d, s: CRUD-like, test, design, security, as a text is expected to trigger them.
var marks = map[string]string{
	"c": "pattern-based generation", "t": "test generation", "d": "architecture decision", "s": "security-related",
}

var traps = []struct{ text, want string }{
	// Pattern-based generation.
	{"Generate Express CRUD routes for User model", "c"},
	{"generate crud handlers", "c"},
	{"CRUDs for all five tables", "c"},
	{"write the CRUD's service layer", "c"},
	{"a CrudController for orders", "c"},
	{"make a CRUD-style form", "c"},
	{"boilerplate for a new plugin", "c"},
	{"cut the boilerplates down", "c"},
	{"scaffold a React component", "c"},
	{"scaffolding for the new service", "c"},
	{"scaffolded views", "c"},
	{"parse the crude oil prices", ""},
	{"remove crud_old.sql", "c"},
	{"describe the boiler plate", ""},
	{"an escaffold typo", ""},
	{"no boilerplate, just the function", ""},
	{"without scaffolding", ""},
	// Tests.
	{"write tests for the parser", "t"},
	{"add a test", "t"},
	{"testing the retry loop", "t"},
	{"retest the endpoint after the fix", "t"},
	{"test-driven rewrite of the lexer", "t"},
	{"re-test the importer", "t"},
	{"cover the untested branches", "t"},
	{"fill in user.spec.ts", "t"},
	{"add specs for the model", "t"},
	{"update parser_test.go", "t"},
	{"make TestParser pass", "t"},
	{"JSONTest needs a row", "t"},
	{"unit-test the cache", "t"},
	{"unittests for dates", "t"},
	{"install the latest version", ""},
	{"rank the contest entries", ""},
	{"a specific error message", ""},
	{"follow the specification", ""},
	{"open the inspector panel", ""},
	{"inspect the queue", ""},
	{"special characters in names", ""},
	{"attest the build", ""},
	{"protest letters", ""},
	{"find the greatest value", ""},
	{"the fastest route", ""},
	{"testimonials page", ""},
	{"testament generator", ""},
	{"a spectrum chart", ""},
	{"aspect ratio of images", ""},
	{"species list", ""},
	{"specify the port", ""},
	{"detest", ""},
	{"bump latestVersion in contestId", ""},
	{"no tests needed", ""},
	{"no test", ""},
	{"write the helper, no need for any tests", ""},
	{"without tests", ""},
	{"don't write tests", ""},
	{"do not add tests", ""},
	{"Don’t add any specs", ""},
	{"skip the tests", ""},
	{"tests are not needed", ""},
	{"tests aren't required", ""},
	{"unit tests unnecessary", ""},
	{"types instead of tests", ""},
	{"docs rather than tests", ""},
	{"everything except tests", ""},
	{"don't forget the tests", "t"},
	{"do not skip the tests", "t"},
	{"not only tests but docs too", "t"},
	{"no docs, just tests", "t"},
	{"no comments. Write tests", "t"},
	{"no tests for A, but test B", "t"},
	{"the spec is not finished", "t"},
	{"this is not tested yet", "t"},
	// Architecture.
	{"design a plugin system", "d"},
	{"redesign the settings page", "d"},
	{"re-design the API", "d"},
	{"designs for the schema", "d"},
	{"architect the event flow", "d"},
	{"decide the architecture", "d"},
	{"an architectural overview", "d"},
	{"the designated port", ""},
	{"designate an owner", ""},
	{"resign from the list", ""},
	{"assign the ticket", ""},
	{"do not redesign, only rename", ""},
	{"no architecture changes", ""},
	// Security.
	{"add auth to the admin page", "s"},
	{"OAuth2 callback", "s"},
	{"an AuthService class", "s"},
	{"return 401 for unauthorized requests", "s"},
	{"authentication middleware", "s"},
	{"authorise the caller", "s"},
	{"security headers", "s"},
	{"a secure cookie", "s"},
	{"insecure defaults", "s"},
	{"encrypted columns", "s"},
	{"encryption at rest", "s"},
	{"passwords are not encrypted", "s"},
	{"un-authorized access", "s"},
	{"never leak the auth token", "s"},
	{"users can't log in, auth fails", "s"},
	{"sort by author", ""},
	{"authored posts", ""},
	{"the authoring tool", ""},
	{"coauthors of a paper", ""},
	{"the competent authority", ""},
	{"an authentic voice", ""},
	{"secretary of the board", ""},
	{"trade securities", ""},
	{"a crypt keeper", ""},
	{"don't touch auth", ""},
	{"excluding security", ""},
	// Several at once, and nothing at all.
	{"design the auth tests", "dst"},
	{"scaffold CRUD with specs", "ct"},
	{"boilerplate: login, no auth, no tests", "c"},
	{"architect secure CRUD tests", "cdst"},
	{"rename a variable", ""},
	{"", ""},
	{"日本語のテスト", ""},
	{"«test»", "t"},
	{"TESTS!", "t"},
}

// triggered names the rows of the table that a text triggers.
func triggered(text string) []string {
	var names []string
	_, reasons := Prior(Task{Text: text})
	for _, r := range reasons[1:] { // the first is the base
		names = append(names, r.Signal)
	}
	return names
}

func TestTraps(t *testing.T) {
	if len(traps) < 100 {
		t.Fatalf("%d trap sentences, want at least 100", len(traps))
	}
	for _, c := range traps {
		var want []string
		for _, m := range c.want {
			want = append(want, marks[string(m)])
		}
		got := triggered(c.text)
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%q triggers %q, want %q", c.text, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	for _, c := range []struct {
		text    string
		outputs int
		want    float64
		advice  Recommendation
	}{
		{"Generate Express CRUD routes for User model", 0, 0.78, Delegate}, // the documented example
		{"rename a thing", 0, 0.48, Consider},
		{"rename a thing", 1, 0.68, Delegate},
		{"rename a thing", 2, 0.48, Consider},
		{"rename two things", 3, 0.18, Keep},
		{"write tests", 0, 0.68, Delegate},
		{"redesign", 0, 0.08, Keep},
		{"add auth", 0, 0.23, Keep},
		{"add auth", 1, 0.43, Consider},
		{"CRUD with tests", 1, 1, Delegate}, // 1.18, clamped
		{"design auth", 5, 0, Keep},         // −0.47, clamped
		{"scaffold secure tests", 3, 0.43, Consider},
		{"CRUD tests, redesigned", 1, 0.78, Delegate},
	} {
		a := Score(Task{Text: c.text, Outputs: c.outputs, Verify: true}, History{}, Window{Fits: true})
		if a.Score != c.want || a.Prior != c.want || a.Recommendation != c.advice {
			t.Errorf("%q with %d outputs: %v %v (prior %v), want %v %v", c.text, c.outputs, a.Score, a.Recommendation, a.Prior, c.want, c.advice)
		}
		sum := 0.0
		for _, r := range a.Reasons {
			sum += r.Impact
		}
		if clamped := min(max(sum, 0), 1); math.Abs(clamped-c.want) > 1e-9 {
			t.Errorf("%q: the reasons add up to %v, the score is %v", c.text, sum, c.want)
		}
	}
}

func TestThresholdsAreStrict(t *testing.T) {
	for score, want := range map[float64]Recommendation{
		0.6: Consider, 0.6001: Delegate, 0.5999: Consider, 0.4: Consider, 0.3999: Keep, 0: Keep, 1: Delegate,
	} {
		if got := recommend(score); got != want {
			t.Errorf("%v is %v, want %v", score, got, want)
		}
	}
}

func TestLongTextIsBounded(t *testing.T) {
	long := strings.Repeat("word ", 1<<20) + "CRUD"
	if got := triggered(long); len(got) != 0 {
		t.Errorf("a word after 5 MB was still read: %q", got)
	}
	if got := triggered("CRUD " + long); !slices.Equal(got, []string{"pattern-based generation"}) {
		t.Errorf("the beginning of a long text was not read: %q", got)
	}
}

func FuzzSignals(f *testing.F) {
	for _, c := range traps {
		f.Add(c.text)
	}
	f.Add("\xff\xfe'’''s.test")
	f.Fuzz(func(t *testing.T, text string) {
		score, reasons := Prior(Task{Text: text})
		if score < 0 || score > 1 || len(reasons) == 0 {
			t.Errorf("%q: %v, %d reasons", text, score, len(reasons))
		}
		if a, b := triggered(text), triggered(strings.ToUpper(text)); strings.IndexFunc(text, func(r rune) bool { return r > 126 }) < 0 && len(b) > len(a)+4 {
			t.Errorf("%q: %q, in capitals %q", text, a, b)
		}
	})
}
