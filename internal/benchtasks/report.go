package benchtasks

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"localllm/delegate"
)

// Outcome is how one task went; the JSON names are public.
type Outcome struct {
	Name            string  `json:"name"`
	Language        string  `json:"language"`
	Status          string  `json:"status"` // a delegation's status, or not_run
	Solved          bool    `json:"solved"`
	FirstTry        bool    `json:"first_try"`
	Attempts        int     `json:"attempts"`
	Seconds         float64 `json:"seconds"`
	TokensGenerated int     `json:"tokens_generated"`
	TokensPerSecond float64 `json:"tokens_per_second"`
	Reason          string  `json:"reason,omitempty"`
}

// NotRun is the status of a task whose tools are missing here.
const NotRun = "not_run"

// Skipped is the outcome of a task that can't be verified on this machine.
func (t Task) Skipped(missing []string) Outcome {
	return Outcome{Name: t.Name, Language: t.Language, Status: NotRun, Reason: "not installed: " + strings.Join(missing, ", ")}
}

// Outcome sums up a delegation of the task. Only what was red before and is green now counts as solved.
func (t Task) Outcome(r *delegate.Result) Outcome {
	o := Outcome{
		Name: t.Name, Language: t.Language, Status: r.Status, Solved: r.Status == delegate.Proven, Attempts: len(r.Attempts),
		Seconds: r.Seconds, TokensGenerated: r.Tokens.Generated, TokensPerSecond: r.TokensPerSecond, Reason: r.Reason,
	}
	o.FirstTry = o.Solved && o.Attempts == 1
	return o
}

// Report is how a model did; the JSON names are public.
type Report struct {
	Model           string    `json:"model"`
	Engine          string    `json:"engine"`
	Context         int       `json:"context"`
	Tasks           int       `json:"tasks"` // that were run
	NotRun          int       `json:"not_run"`
	Solved          int       `json:"solved"`
	FirstTry        int       `json:"first_try"`
	Seconds         float64   `json:"seconds"`
	SecondsMedian   float64   `json:"seconds_median"`
	TokensPerSecond float64   `json:"tokens_per_second"` // median over the tasks
	Outcomes        []Outcome `json:"outcomes"`
}

// Add takes one outcome into the sums.
func (r *Report) Add(o Outcome) {
	r.Outcomes = append(r.Outcomes, o)
	if o.Status == NotRun {
		r.NotRun++
		return
	}
	r.Tasks++
	r.Seconds += o.Seconds
	if o.Solved {
		r.Solved++
	}
	if o.FirstTry {
		r.FirstTry++
	}
	r.SecondsMedian = r.median(func(o Outcome) float64 { return o.Seconds })
	r.TokensPerSecond = r.median(func(o Outcome) float64 { return o.TokensPerSecond })
}

func (r *Report) median(of func(Outcome) float64) float64 {
	var values []float64
	for _, o := range r.Outcomes {
		if o.Status != NotRun {
			values = append(values, of(o))
		}
	}
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// Write prints the table for people.
func (r *Report) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "TASK\tLANGUAGE\tRESULT\tTRIES\tSECONDS\tTOKENS/S\t\n")
	for _, o := range r.Outcomes {
		if o.Status == NotRun {
			fmt.Fprintf(t, "%s\t%s\tnot run\t\t\t\t%s\n", o.Name, o.Language, o.Reason)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%.1f\t%.1f\t\n", o.Name, o.Language, o.Status, o.Attempts, o.Seconds, o.TokensPerSecond)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s on %s, a window of %d tokens: solved %d of %d, %d at the first try; %.1f s in all, median %.1f s a task, %.1f tokens/s%s\n",
		r.Model, r.Engine, r.Context, r.Solved, r.Tasks, r.FirstTry, r.Seconds, r.SecondsMedian, r.TokensPerSecond, notRun(r.NotRun))
	return err
}

func notRun(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %d not run", n)
}
