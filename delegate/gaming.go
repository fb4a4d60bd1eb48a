package delegate

import (
	"path"
	"regexp"
	"strings"
)

// By case, «latest» and «contest» are no tests, and AddTest is.
var testName = regexp.MustCompile(`^(?i:tests?|test_.*|.*_tests?|conftest|.*[._-](?:test|spec))\.[a-z]+$|[a-z0-9]Tests?\.[a-z]+$`)

// IsTest reports whether a path is a test by the habits of the common languages: its own name, or a folder of tests.
func IsTest(p string) bool {
	dir, name := path.Split(p)
	if testName.MatchString(name) {
		return true
	}
	for part := range strings.SplitSeq(strings.ToLower(dir), "/") {
		switch part {
		case "test", "tests", "__tests__", "spec", "specs", "testdata", "__snapshots__":
			return true
		}
	}
	return false
}

var (
	onlyLists = regexp.MustCompile(`--collect-only\b|--co\b|--listTests\b|--dry-run\b|\bgo\s+test\b.*\s-list\b|--list-tests\b|--no-run\b`)
	noTests   = regexp.MustCompile(`(?m)no tests to run|no tests ran|^collected 0 items|\bRan 0 tests\b|^running 0 tests|\b0 passing\b|No tests found|\[no test files\]`)
	someTests = regexp.MustCompile(`(?m)^ok\s+\S+\s+(\(cached\)|[\d.]+s)\s*(coverage:.*)?$|\b[1-9]\d* pass(ed|ing)\b|\bRan [1-9]\d* tests?\b|^running [1-9]\d* tests?|^--- PASS|^PASS: `)
)

// idle says why a green verify that ran nothing proves nothing.
func idle(c Command, output string) string {
	if onlyLists.MatchString(c.String()) {
		return "verify only lists or compiles the tests, it runs none"
	}
	if noTests.MatchString(output) && !someTests.MatchString(output) {
		return "verify was green without running a test"
	}
	return ""
}

var (
	exitInInit = regexp.MustCompile(`(?s)func init\(\)\s*\{.*?\n?\}`)
	exitZero   = regexp.MustCompile(`\bos\.Exit\(0\)|\bsyscall\.Exit\(0\)|\bos\._exit\(0\)|\bsys\.exit\((0|None)?\)|\bprocess\.exit\(0?\)|\bpytest\.exit\(|\bexit\(EXIT_SUCCESS\)|\bstd::process::exit\(0\)|\bSystem\.exit\(0\)`)
	exitHard   = regexp.MustCompile(`\bos\._exit\(0\)`)
)

// exitsGreen reports whether a file ends its program with success where tests would run: in a test, when the package
// is loaded, or past all that a test runner could notice.
func exitsGreen(p, body string) bool {
	if exitHard.MatchString(body) || IsTest(p) && exitZero.MatchString(body) {
		return true
	}
	for _, block := range exitInInit.FindAllString(body, -1) {
		if exitZero.MatchString(block) {
			return true
		}
	}
	return false
}
