package statsview

import (
	"fmt"
	"math"
	"time"

	"localllm/stats"
)

// All charts are drawn 440 units wide: at that width their text is readable on a phone and not gross on a desk.
const chartWidth = 440

// rows is a chart of horizontal bars, each a share of the widest value.
type rows struct {
	Height int
	Bars   []hbar
	Legend []legend
}

type hbar struct {
	Y              int // top of its row
	TextY, BarY    int
	Label          string
	Full           string // the label uncut
	Track, Outer   float64
	Inner          float64
	Value          string
	OuterC, InnerC string
}

type legend struct{ Class, Text string }

const (
	rowHeight = 40
	trackW    = chartWidth
)

// rateRows shows succeeded and, inside it, proven.
func rateRows(groups []stats.Group) rows {
	c := rows{Legend: []legend{{"proven", "proven"}, {"good", "succeeded, not proven"}, {"track", "did not work out"}}}
	for i, g := range groups[:min(len(groups), mostRows)] {
		c.Bars = append(c.Bars, hbar{
			Y: i * rowHeight, TextY: i*rowHeight + 14, BarY: i*rowHeight + 20, Label: clipName(g.Key, 34), Full: printable(g.Key),
			Track: trackW, Outer: g.SuccessRate * trackW, Inner: g.ProvenRate * trackW, OuterC: "good", InnerC: "proven",
			Value: fmt.Sprintf("%s of %s", percent(g.SuccessRate), whole(g.Delegations)),
		})
	}
	c.Height = len(c.Bars) * rowHeight
	return c
}

// mostRows bounds a chart; the table below it has all.
const mostRows = 10

func countRows(labels []string, counts []int, classes []string) rows {
	var c rows
	top := 1
	for _, n := range counts {
		top = max(top, n)
	}
	for i, label := range labels[:min(len(labels), mostRows)] {
		c.Bars = append(c.Bars, hbar{
			Y: i * rowHeight, TextY: i*rowHeight + 14, BarY: i*rowHeight + 20, Label: clip(label, 44), Full: printable(label),
			Track: trackW, Outer: max(float64(counts[i])/float64(top)*trackW, 1), OuterC: classes[i], Value: whole(counts[i]),
		})
	}
	c.Height = len(c.Bars) * rowHeight
	return c
}

// columns is the chart of days.
type columns struct {
	Height, Base int
	Top          string
	Half         string
	HalfY        int
	Days         []column
	Labels       []label
}

type column struct {
	X, W, GoodY, GoodH, BadY, BadH float64
	Title                          string
}

type label struct {
	X      float64
	Text   string
	Anchor string
}

const chartDays = 60

func dayColumns(groups []stats.Group) columns {
	const height, top, left = 190, 12, 34
	const base = height - 24
	c := columns{Height: height, Base: base}
	days := lastDays(groups, chartDays)
	if len(days) == 0 {
		return c
	}
	most := 1
	for _, d := range days {
		most = max(most, d.Delegations)
	}
	most = roundUp(most)
	c.Top, c.Half, c.HalfY = short(most), short(most/2), (base+top)/2
	step := float64(chartWidth-left) / float64(len(days))
	scale := float64(base-top) / float64(most)
	for i, d := range days {
		// One day alone is a bar and no wall.
		w := min(step*0.8, 40)
		good, all := float64(d.Accomplished)*scale, float64(d.Delegations)*scale
		c.Days = append(c.Days, column{
			X: left + (float64(i)+0.5)*step - w/2, W: w, GoodY: base - good, GoodH: good, BadY: base - all, BadH: all - good,
			Title: fmt.Sprintf("%s: %s, %s succeeded", d.Key, plural(d.Delegations, "delegation"), whole(d.Accomplished)),
		})
	}
	for _, at := range marks(len(days)) {
		day, _ := time.Parse(time.DateOnly, days[at].Key)
		anchor := "middle"
		x := left + (float64(at)+0.5)*step
		switch {
		case at == 0 && len(days) > 6:
			anchor, x = "start", left
		case at == len(days)-1 && len(days) > 6:
			anchor, x = "end", chartWidth
		}
		c.Labels = append(c.Labels, label{X: x, Text: day.Format("2 Jan"), Anchor: anchor})
	}
	return c
}

// marks are the days that get a label: so many as fit.
func marks(n int) []int {
	switch {
	case n <= 5:
		at := make([]int, n)
		for i := range at {
			at[i] = i
		}
		return at
	case n <= 20:
		return []int{0, n / 2, n - 1}
	}
	return []int{0, n / 3, 2 * n / 3, n - 1}
}

// roundUp gives an even axis end: 2, 4, 6, 10, 20, 40 …
func roundUp(n int) int {
	for unit := 2; ; unit *= 10 {
		for _, m := range []int{1, 2, 3, 5} {
			if unit*m >= n {
				return unit * m
			}
		}
	}
}

// dots is the calibration: a dot on the diagonal is a score that came true.
type dots struct {
	Size, Left, Base int
	Dots             []dot
	Ticks            []tick
}

type dot struct {
	X, Y, R float64
	Title   string
}

type tick struct {
	X, Y int
	Text string
}

func calibrationDots(buckets []stats.Bucket) dots {
	const left, top, side = 60, 10, 300
	c := dots{Size: side, Left: left, Base: top + side}
	most := 1
	for _, b := range buckets {
		most = max(most, b.N)
	}
	for i := 0; i <= 4; i++ {
		c.Ticks = append(c.Ticks, tick{X: left + i*side/4, Y: top + side - i*side/4, Text: fmt.Sprintf("%d %%", i*25)})
	}
	for _, b := range buckets {
		c.Dots = append(c.Dots, dot{
			X: left + b.Predicted*side, Y: top + side - b.Observed*side, R: 4 + 12*math.Sqrt(float64(b.N)/float64(most)),
			Title: fmt.Sprintf("score %s: foretold %s, came %s, of %s", b.Bucket, percent(b.Predicted), percent(b.Observed), whole(b.N)),
		})
	}
	return c
}
