package app

import (
	"context"
	"path/filepath"
	"time"

	"localllm/internal/logfile"
	"localllm/internal/redact"
	"localllm/internal/request"
	"localllm/stats"
)

// Stats says what came of past delegations in one project.
func (a *App) Stats(ctx context.Context, in *request.Stats) (*stats.Summary, error) {
	since, err := stats.ParseSince(in.Since, time.Now())
	if err != nil {
		return nil, &request.Error{Action: "stats", Field: "since", Reason: "since: " + err.Error()}
	}
	by, err := stats.ParseBy(in.By)
	if err != nil {
		return nil, &request.Error{Action: "stats", Field: "by", Reason: "by: " + err.Error()}
	}
	log, err := a.log(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	r, err := log.Read(ctx)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	s, err := stats.Summarize(ctx, r.Parts(), stats.Options{Since: since, By: by, Log: log.Path()})
	return &s, err
}

func (a *App) log(ctx context.Context, project string) (*logfile.Log, error) {
	call := callOf(ctx)
	if project != "" {
		call.Project = project
	}
	root, err := call.project()
	if err != nil {
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	return logfile.Open(root, redact.Text), nil
}

// LedgerPage is what ledger returns.
type LedgerPage struct {
	Delegations  []stats.Record `json:"delegations"`
	Total        int            `json:"total"`
	SkippedLines int            `json:"skipped_lines"`
	Log          string         `json:"log"`
}

// Ledger is single delegations of one project, oldest first, the last ones where there are more than last.
func (a *App) Ledger(ctx context.Context, in *request.Stats, last int) (*LedgerPage, error) {
	since, err := stats.ParseSince(in.Since, time.Now())
	if err != nil {
		return nil, &request.Error{Action: "stats", Field: "since", Reason: "since: " + err.Error()}
	}
	log, err := a.log(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	r, err := log.Read(ctx)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	p, err := stats.Last(ctx, r.Parts(), stats.Filter{Since: since}, last)
	if err != nil {
		return nil, err
	}
	page := &LedgerPage{Delegations: p.Records, Total: p.Total, SkippedLines: p.Skipped, Log: log.Path()}
	if page.Delegations == nil {
		page.Delegations = []stats.Record{}
	}
	return page, nil
}
