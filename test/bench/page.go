//go:build linux

package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// row is one figure: the median of its samples, and what was promised.
type row struct {
	Part    string    `json:"part"`
	Name    string    `json:"name"`
	Unit    string    `json:"unit,omitempty"`
	Samples []float64 `json:"samples,omitempty"`
	Limit   float64   `json:"limit,omitempty"`   // of the median; 0: nothing was promised
	Promise string    `json:"promise,omitempty"` // the limit in words, where it is not just a number
	Note    string    `json:"note,omitempty"`
	Problem string    `json:"problem,omitempty"` // why it was not measured
}

type report struct {
	Date       time.Time `json:"date"`
	Machine    string    `json:"machine"`
	Versions   string    `json:"versions"`
	LoadBefore string    `json:"load_before"`
	LoadAfter  string    `json:"load_after"`
	Seconds    float64   `json:"seconds"`
	Rows       []row     `json:"rows"`
}

func (r row) median() float64 {
	s := slices.Sorted(slices.Values(r.Samples))
	if len(s) == 0 {
		return 0
	}
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

func (r row) met() string {
	switch {
	case r.Problem != "":
		return "not measured"
	case r.Limit == 0:
		return ""
	case r.median() < r.Limit:
		return "met"
	}
	return "not met"
}

func (r row) measured() string {
	if r.Problem != "" {
		return r.Problem
	}
	if len(r.Samples) == 1 {
		return number(r.Samples[0]) + " " + r.Unit
	}
	return fmt.Sprintf("%s %s (%s to %s, %d runs)", number(r.median()), r.Unit, number(slices.Min(r.Samples)), number(slices.Max(r.Samples)), len(r.Samples))
}

func (r row) promised() string {
	switch {
	case r.Promise != "":
		return r.Promise
	case r.Limit == 0:
		return ""
	}
	return fmt.Sprintf("under %s %s", number(r.Limit), r.Unit)
}

func (r row) String() string {
	return strings.Join([]string{r.Name, r.measured(), r.promised(), r.met(), r.Note}, " | ")
}

func number(f float64) string {
	switch {
	case f >= 100 || f == float64(int64(f)):
		return fmt.Sprintf("%.0f", f)
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.2f", f)
}

// page is the generated part of the document.
func (r report) page() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s. %s. Load average %s before and %s after; the whole took %.0f s. Each figure is the median of its runs, with the least and the most.\n\n",
		r.Date.Format("2006-01-02 15:04 MST"), r.Machine, r.Versions, r.LoadBefore, r.LoadAfter, r.Seconds)
	b.WriteString("| figure | measured | promised | |\n|---|---|---|---|\n")
	for _, row := range r.Rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", join(row.Name, row.Note), strings.ReplaceAll(row.measured(), "|", "/"), row.promised(), row.met())
	}
	return b.String()
}

func join(name, note string) string {
	if note == "" {
		return name
	}
	return name + "; " + note
}

func machine() string {
	name := runtime.GOARCH
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, after, ok := strings.Cut(string(text), "model name"); ok {
			line, _, _ := strings.Cut(after, "\n")
			name = strings.Join(strings.Fields(strings.TrimLeft(line, "\t :")), " ")
		}
	}
	memory := ""
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		var kib int
		if _, err := fmt.Sscanf(string(text), "MemTotal: %d", &kib); err == nil {
			memory = fmt.Sprintf(", %d GiB", (kib+1<<19)>>20)
		}
	}
	return fmt.Sprintf("%s/%s, %d cores (%s)%s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), name, memory)
}

func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
