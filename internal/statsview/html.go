package statsview

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strconv"

	"localllm/stats"
)

//go:embed page.html
var pageSource string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"percent": percent, "whole": whole, "short": short, "seconds": seconds, "plural": plural, "why": why,
	"printable": printable, "exact": exact, "px": func(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) },
	"add": func(a, b int) int { return a + b },
}).Parse(pageSource))

// exact writes a number as the JSON has it, for whoever reads the page with a program.
func exact(x any) string {
	switch n := x.(type) {
	case float64:
		return strconv.FormatFloat(n, 'f', -1, 64)
	case int:
		return strconv.Itoa(n)
	}
	return fmt.Sprint(x)
}

// figure is one of the big numbers.
type figure struct {
	ID, Name, Shown, Note string
	Value                 any
}

type view struct {
	stats.Summary
	Span     string
	Figures  []figure
	Formula  string
	Grouping []grouping
	Days     columns
	DayRows  []stats.Group
	Status   rows
	Statuses []stats.Failure
	Dots     dots
	Failing  rows
}

type grouping struct {
	ID, Title, Key string
	Chart          rows
	Groups         []stats.Group
}

// HTML writes one page that has all it needs in itself: no script, no request.
func HTML(w io.Writer, s stats.Summary) error {
	v := view{
		Summary: s, Span: span(s), Figures: figures(s), Formula: stats.KeptOutFormula,
		Days: dayColumns(s.Days), DayRows: s.Days, Dots: calibrationDots(s.Calibration),
		Grouping: []grouping{
			{"task_type", "By type of task", "type", rateRows(s.Types), s.Types},
			{"model", "By model", "model", rateRows(s.Models), s.Models},
		},
	}
	v.Status, v.Statuses = statusRows(s.ByStatus)
	v.Failing = failureRows(s.Failures)
	if err := pageTemplate.Execute(w, v); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

func figures(s stats.Summary) []figure {
	kept := figure{"kept_out_of_context", "kept out of the caller's context", "–", "not counted: no line has the numbers", s.Tokens.KeptOut}
	if s.Tokens.CountedOn > 0 {
		kept.Shown = short(s.Tokens.KeptOut)
		kept.Note = fmt.Sprintf("tokens, counted on %s of %s", whole(s.Tokens.CountedOn), plural(s.Delegations, "delegation"))
	}
	return []figure{
		{"success_rate", "succeeded", percentOf(s.SuccessRate, s.Delegations), "of " + plural(s.Delegations, "delegation"), s.SuccessRate},
		{"proven_rate", "proven", percentOf(s.ProvenRate, s.Delegations), "verify red before, green after", s.ProvenRate},
		{"first_try_rate", "first try", percentOf(s.FirstTryRate, s.Delegations), "succeeded in one attempt", s.FirstTryRate},
		{"cache_hit_rate", "cache hits", percentOf(s.CacheHitRate, s.Tokens.Prompt), fmt.Sprintf("of %s prompt tokens", short(s.Tokens.Prompt)), s.CacheHitRate},
		{"seconds_p50", "time, median", seconds(s.Seconds.P50), "nine of ten within " + seconds(s.Seconds.P90), s.Seconds.P50},
		{"tokens_generated", "tokens generated", short(s.Tokens.Generated), exact(s.TokensPerSecond) + " a second", s.Tokens.Generated},
		kept,
	}
}

func statusRows(by map[string]int) (rows, []stats.Failure) {
	keys := slices.SortedFunc(maps.Keys(by), func(a, b string) int { return cmp.Or(by[b]-by[a], cmp.Compare(a, b)) })
	var counts []int
	var classes []string
	var table []stats.Failure
	for _, k := range keys {
		counts = append(counts, by[k])
		class := "bad"
		switch {
		case k == "proven":
			class = "proven"
		case stats.OK(k):
			class = "good"
		}
		classes = append(classes, class)
		table = append(table, stats.Failure{Status: k, N: by[k]})
	}
	return countRows(keys, counts, classes), table
}

func failureRows(failures []stats.Failure) rows {
	var labels, classes []string
	var counts []int
	for _, f := range failures {
		labels = append(labels, f.Status+": "+why(f))
		counts = append(counts, f.N)
		classes = append(classes, "bad")
	}
	return countRows(labels, counts, classes)
}
