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
	page := &LedgerPage{Delegations: []stats.Record{}, Log: log.Path()}
	keep := func(rec stats.Record) error {
		if rec.Outcome() == "" || rec.Timestamp.Before(since) {
			return nil
		}
		page.Total++
		page.Delegations = append(page.Delegations, rec)
		if last > 0 && len(page.Delegations) > 2*last { // bounded, however long the log is
			page.Delegations = append(page.Delegations[:0], page.Delegations[len(page.Delegations)-last:]...)
		}
		return nil
	}
	for _, part := range r.Parts() {
		n, err := stats.Read(ctx, part, keep)
		if page.SkippedLines += n; err != nil {
			return nil, err
		}
	}
	if n := len(page.Delegations); last > 0 && n > last {
		page.Delegations = page.Delegations[n-last:]
	}
	return page, nil
}
