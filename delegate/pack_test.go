package delegate_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"localllm/delegate"
)

func TestPackKeepsTheFirstErrorAndTheEnd(t *testing.T) {
	noise := strings.Repeat("compiling something harmless\nand another thing\n", 400)
	rows := map[string]string{
		"Go":         "./calc.go:3:9: undefined: x",
		"gcc":        "main.c:10:5: error: expected ';'",
		"Rust":       "error[E0425]: cannot find value `x`",
		"TypeScript": "src/a.ts(3,1): error TS2304: Cannot find name",
		"Python":     "Traceback (most recent call last):",
		"pytest":     "E       assert 1 == 2",
		"Go test":    "--- FAIL: TestAdd (0.00s)",
		"jest":       "  ● adds › two numbers",
		"panic":      "panic: runtime error: index out of range",
	}
	for name, line := range rows {
		packed := delegate.Pack(noise + line + "\n  its second line\n\n" + noise + "FAILED at last\n")
		if len(packed) > 3200 || !strings.HasPrefix(packed, strings.ReplaceAll(line, "(0.00s)", "(…s)")+"\n  its second line\n[…]\n") || !strings.HasSuffix(packed, "FAILED at last") {
			t.Errorf("%s: %d bytes:\n%.200s …", name, len(packed), packed)
		}
	}
}

func TestPackIsTheSameForTheSameError(t *testing.T) {
	one := "\x1b[31ma_test.go:1: got 0xc000123456\x1b[0m\r\n--- FAIL: TestX (0.03s)\nFAIL\tm/x\t0.412s\ngoroutine 17 [running]:\n3 failed in 0.31s\n"
	two := "a_test.go:1: got 0xc0009999ab\n--- FAIL: TestX (1.20s)\nFAIL\tm/x\t1.007s\ngoroutine 4 [running]:\n3 failed in 1.2s\n"
	if a, b := delegate.Pack(one), delegate.Pack(two); a != b || !strings.Contains(a, "a_test.go:1: got 0x…\n") {
		t.Errorf("%q\n%q", a, b)
	}
}

func TestPackOddOutput(t *testing.T) {
	if got := delegate.Pack("\n\nshort\n"); got != "short" {
		t.Errorf("%q", got)
	}
	if got := delegate.Pack(strings.Repeat("again\n", 1000) + "x"); got != "again\n[the same line again and again]\nx" {
		t.Errorf("%q", got)
	}
	for name, s := range map[string]string{"one endless line": strings.Repeat("é", 9000), "an endless error": "error: " + strings.Repeat("é", 9000) + "\nend", "no error": strings.Repeat("ab\ncd\n", 2000), "not UTF-8": strings.Repeat("\xff\xfe", 5000)} {
		if got := delegate.Pack(s); len(got) > 3200 || !utf8.ValidString(got) || got == "" {
			t.Errorf("%s: %d bytes", name, len(got))
		}
	}
}

func FuzzPack(f *testing.F) {
	f.Add("a.go:1:2: bad\n\nrest")
	f.Add(strings.Repeat("error: x\n", 900))
	f.Fuzz(func(t *testing.T, s string) {
		got := delegate.Pack(s)
		if len(got) > 3200 || !utf8.ValidString(got) || got != delegate.Pack(s) {
			t.Errorf("%d bytes of %q", len(got), s)
		}
	})
}

func TestGreenByLeaving(t *testing.T) {
	for body, want := range map[string]string{
		"package m\n\nfunc init() {\n\tos.Exit(0)\n}\n":              delegate.Unproven,
		"package m\n\nfunc main() {\n\tos.Exit(0)\n}\n":              delegate.Proven,
		"import os\nos._exit(0)\n":                                   delegate.Unproven,
		"package m\n\nfunc init() {\n}\n\nfunc x() { os.Exit(0) }\n": delegate.Proven,
	} {
		b := newBench(outcomes(red(""), green("")), block("a.txt", body))
		if res := b.run(t, writeA); res.Status != want {
			t.Errorf("%q: %s, want %s", body, res.Status, want)
		}
	}
	b := newBench(outcomes(red(""), green("")), block("conftest.py", "import sys\nsys.exit(0)\n"))
	task := writeA
	task.OutputFiles = []delegate.OutputFile{{Path: "conftest.py"}}
	if res := b.run(t, task); res.Status != delegate.Unproven || len(res.Warnings) == 0 {
		t.Errorf("%+v", res)
	}
}

func TestIsTest(t *testing.T) {
	for path, want := range map[string]bool{"a_test.go": true, "x/test_a.py": true, "conftest.py": true, "a.spec.ts": true, "a.test.js": true, "tests/x.txt": true, "src/__tests__/a.js": true, "AddTests.java": true, "AddTest.java": true, "spec/a_spec.rb": true, "testdata/x": true,
		"latest.go": false, "contest.py": false, "test.go/x.go": false, "attestation.go": false, "main.go": false} {
		if got := delegate.IsTest(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
