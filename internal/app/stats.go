package app

import (
	"context"
	"path/filepath"
	"time"

	"localllm/internal/config"
	"localllm/internal/logfile"
	"localllm/internal/redact"
	"localllm/internal/request"
	"localllm/stats"
)

// Stats says what came of past delegations in one project.
func (a *App) Stats(ctx context.Context, in *request.Stats) (*stats.Summary, error) {
	since, err := sinceOf(in)
	if err != nil {
		return nil, err
	}
	by, err := stats.ParseBy(in.By)
	if err != nil {
		return nil, &request.Error{Action: "stats", Field: "by", Reason: err.Error()}
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

func sinceOf(in *request.Stats) (time.Time, error) {
	since, err := stats.ParseSince(in.Since, time.Now())
	if err != nil {
		return since, &request.Error{Action: "stats", Field: "since", Reason: err.Error()}
	}
	return since, nil
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
	Delegations  []LedgerEntry `json:"delegations"`
	Total        int           `json:"total"`
	Sums         LedgerSums    `json:"sums"` // of those listed
	SkippedLines int           `json:"skipped_lines"`
	Log          string        `json:"log"`
}

// LedgerEntry is one delegation and what it cost at the prices that its profile names now.
type LedgerEntry struct {
	stats.Record
	CostUSD *float64 `json:"cost_usd,omitempty"`
}

// LedgerSums are the counts of a page.
type LedgerSums struct {
	ByStatus        map[string]int `json:"by_status"`
	TokensPrompt    int            `json:"tokens_prompt"`
	TokensCached    int            `json:"tokens_cached"`
	TokensGenerated int            `json:"tokens_generated"`
	Seconds         float64        `json:"seconds"`
	CostUSD         float64        `json:"cost_usd"`
	Priced          int            `json:"priced"` // how many the cost is of
}

func (p *LedgerPage) add(r stats.Record, profiles map[string]config.Profile) {
	e := LedgerEntry{Record: r}
	s := &p.Sums
	if status := r.Outcome(); status != "" {
		s.ByStatus[status]++
	}
	s.TokensPrompt += r.TokensPrompt
	s.TokensCached += r.TokensCached
	s.TokensGenerated += r.TokensGenerated
	s.Seconds += r.TimeSeconds
	if profile, there := profiles[r.Profile]; there && r.Profile != "" {
		if cost, known := profile.Cost(r.TokensPrompt, r.TokensCached, r.TokensGenerated); known {
			e.CostUSD = &cost
			s.CostUSD += cost
			s.Priced++
		}
	}
	p.Delegations = append(p.Delegations, e)
}

// Ledger is single delegations of one project, oldest first, the last ones where there are more than last.
func (a *App) Ledger(ctx context.Context, in *request.Stats, last int) (*LedgerPage, error) {
	since, err := sinceOf(in)
	if err != nil {
		return nil, err
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
	p, err := stats.Last(ctx, r.Parts(), since, last)
	if err != nil {
		return nil, err
	}
	page := &LedgerPage{Delegations: []LedgerEntry{}, Total: p.Total, SkippedLines: p.Skipped, Log: log.Path(), Sums: LedgerSums{ByStatus: map[string]int{}}}
	for _, r := range p.Records {
		page.add(r, a.config.Profiles)
	}
	return page, nil
}
