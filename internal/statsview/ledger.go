package statsview

import (
	"fmt"
	"io"
	"strings"

	"localllm/internal/replay"
	"localllm/internal/terminal"
	"localllm/scoring"
	"localllm/stats"
)

// Ledger lists single delegations, one a line.
func Ledger(w io.Writer, records []stats.Record, o Options) error {
	p := &page{w: w, o: o}
	if len(records) == 0 {
		p.line("Nothing was delegated here in that time.")
		return p.err
	}
	rest := o.width() - (17 + 12 + 10 + 8 + 8 + 2)
	model := 0
	if rest >= 48 {
		model = 20
		rest -= model
	}
	p.line("%s", p.paint(dim, pad("when (UTC)", 17)+pad("status", 12)+pad("type", 10)+pad("model", model)[:model]+lead("tokens", 8)+lead("time", 8)+"  "+clip("task", rest)))
	for _, r := range records {
		status := r.Outcome()
		color := red
		switch {
		case status == "":
			status, color = "advice", dim
		case stats.OK(status):
			color = green
		}
		text := r.Task
		if why := r.Cause; why != "" && color == red {
			text = why + ": " + text
		}
		p.line("%s%s%s%s%s%s  %s", pad(r.Timestamp.UTC().Format("2006-01-02 15:04"), 17), p.paint(color, pad(clip(status, 11), 12)),
			pad(clip(r.TaskType, 9), 10), pad(clipName(r.Model, model-1), model), lead(short(r.TokensGenerated), 8), lead(seconds(r.TimeSeconds), 8), clip(text, rest))
	}
	return p.err
}

// Advice writes what analyze found.
func Advice(w io.Writer, a scoring.Advice, o Options) error {
	p := &page{w: w, o: o}
	color := map[scoring.Recommendation]paint{scoring.Delegate: green, scoring.Consider: yellow, scoring.Keep: red}[a.Recommendation]
	p.line("%s  score %.2f (table %.2f, history %.2f of the weight)", p.paint(color, string(a.Recommendation)), a.Score, a.Prior, a.History.Weight)
	for _, r := range a.Reasons {
		impact := "     "
		if r.Impact != 0 || r.Signal == "history" {
			impact = strings.Replace(fmt.Sprintf("%+.2f", r.Impact), "-", "−", 1)
		}
		const name = 26
		for i, text := range terminal.Wrap(printable(r.Detail), max(o.width()-name-9, 20)) {
			if i > 0 {
				p.line("%s%s", pad("", name+9), text)
				continue
			}
			p.line("  %s  %s%s", impact, pad(r.Signal, name), text)
		}
	}
	return p.err
}

// Replay writes how the score would have done on a log.
func Replay(w io.Writer, r replay.Report, o Options) error {
	p := &page{w: w, o: o}
	p.line("%s", p.paint(bold, "The score, replayed on "+clip(r.Log, o.width()-24)))
	p.line("%s with a verdict, %s of them good", plural(r.Outcomes, "delegation"), whole(r.Successes))
	p.line("%s without a verdict, %s unreadable", plural(r.Unjudged, "line"), whole(r.Skipped))
	if r.Outcomes == 0 {
		return p.err
	}
	p.line("")
	p.line("%s", p.paint(dim, pad("", 12)+"   AUC   Brier"))
	p.line("  %s%6.3f%8.3f", pad("table", 10), r.Prior.AUC, r.Prior.Brier)
	p.line("  %s%6.3f%8.3f", pad("learned", 10), r.Learned.AUC, r.Learned.Brier)
	p.line("%s", p.paint(dim, "  AUC: 1 tells success from failure always, 0.5 is a coin. Brier: 0 is perfect."))
	p.heading("Table")
	p.buckets(r.Prior.Calibration)
	p.heading("Learned")
	p.buckets(r.Learned.Calibration)
	return p.err
}
