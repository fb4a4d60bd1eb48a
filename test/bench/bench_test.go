//go:build linux

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"localllm/internal/benchtasks"
	"localllm/internal/practice"
	"localllm/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }

func TestRowsAreJudgedByTheirMedian(t *testing.T) {
	for want, r := range map[string]row{
		"met":          {Samples: []float64{90, 1, 2}, Limit: 3},
		"not met":      {Samples: []float64{3, 3, 1}, Limit: 3},
		"not measured": {Problem: "no GPU", Limit: 3},
		"":             {Samples: []float64{1}},
	} {
		if got := r.met(); got != want {
			t.Errorf("%+v: %q, want %q", r, got, want)
		}
	}
	page := report{Rows: []row{{Name: "a", Unit: "ms", Samples: []float64{1, 2, 30}, Limit: 5}, {Name: "gpu", Problem: "no GPU | here"}}}.page()
	for _, want := range []string{"| a | 2 ms (1 to 30, 3 runs) | under 5 ms | met |", "| gpu | no GPU / here |  | not measured |"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing in\n%s", want, page)
		}
	}
}

// The whole of «bench --model» on the real engine: one task is solved after the check's own words, and the
// others get no usable answer.
func TestAModelIsTriedByTasks(t *testing.T) {
	say := func(path, code string) string { return path + "\n```sql\n" + code + "```\n" }
	right := "SELECT c.name, COUNT(o.id), COALESCE(SUM(o.amount), 0) AS total FROM customers c LEFT JOIN orders o ON o.customer_id = c.id AND o.paid = 1 GROUP BY c.id ORDER BY total DESC, c.name;\n"
	script := practice.Script{
		{When: []string{"Write report.sql"}, Say: say("report.sql", "SELECT name, 0, 0 FROM customers;\n")},

		{When: []string{"Write report.sql", "Ada|0|0"}, Say: say("report.sql", right)},
	}
	cmd := exec.Command(harness.Binary(t), "bench", "--model", harness.Model(t, script, practice.Options{}), "--tasks", "s*", "--context", "16384", "--json")
	home := harness.Home(t)
	cmd.Env, cmd.Dir = harness.Env(t, home), t.TempDir()
	var progress strings.Builder
	cmd.Stderr = &progress
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, progress.String())
	}
	var r benchtasks.Report
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if r.Tasks+r.NotRun != 4 || r.Engine != "llama-server" || r.Context != 16384 || r.Seconds <= 0 {
		t.Errorf("%+v", r)
	}
	for _, o := range r.Outcomes {
		switch {
		case o.Status == benchtasks.NotRun: // its tools are not on this machine
		case o.Name == "sql-report" && (!o.Solved || o.FirstTry || o.Attempts != 2 || o.TokensPerSecond <= 0):
			t.Errorf("%+v", o)
		case o.Name != "sql-report" && (o.Solved || o.Reason == ""):
			t.Errorf("%+v", o)
		}
	}
	if _, err := os.Stat(filepath.Join(home, "state", "outcomes.json")); !os.IsNotExist(err) {
		t.Errorf("the score learns from a trial: %v", err)
	}
	if !strings.Contains(progress.String(), "of 4, ") {
		t.Errorf("no progress in %q", progress.String())
	}
}

// The page names the tests that hold what a benchmark can't show: each of them has to be there.
func TestThePageNamesTestsThatExist(t *testing.T) {
	page, err := os.ReadFile("../../docs/results.md")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+)`").FindAllSubmatch(page, -1)
	if len(names) < 20 {
		t.Errorf("only %d tests are named", len(names))
	}
	for _, m := range names {
		cmd := exec.Command("grep", "-rqE", "--include=*_test.go", "^func "+string(m[1])+`\(`, "../..")
		if err := cmd.Run(); err != nil {
			t.Errorf("there is no %s", m[1])
		}
	}
}
