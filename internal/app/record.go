package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"localllm/delegate"
	"localllm/internal/logfile"
	"localllm/internal/outcomes"
	"localllm/internal/paths"
	"localllm/internal/session"
	"localllm/scoring"
	"localllm/stats"
)

// entryLog writes a delegation's line and has the index take it in.
type entryLog struct {
	app   *App
	root  string // of the project
	dir   string // that paths are relative to
	log   *logfile.Log
	bound session.Binding
	to    *target
	src   *counted
	ctx   context.Context
}

func (a *App) entryLog(ctx context.Context, root, dir string, bound session.Binding, to *target, src *counted) delegate.Log {
	log, err := a.log(ctx, root)
	if err != nil {
		return nil
	}
	return entryLog{app: a, root: root, dir: dir, log: log, bound: bound, to: to, src: src, ctx: context.WithoutCancel(ctx)}
}

// Delegation writes one line. Its error becomes a warning of the result, which is returned all the same.
func (l entryLog) Delegation(e delegate.Entry) error {
	ctx, cancel := context.WithTimeout(l.ctx, 5*time.Second)
	defer cancel()
	if err := l.log.Append(ctx, l.record(e)); err != nil {
		return fmt.Errorf("the delegation log: %w", err)
	}
	if callOf(l.ctx).Trial {
		return nil
	}
	if err := outcomes.Open(l.app.layout.State).Sync(ctx, l.root); err != nil {
		return fmt.Errorf("the outcome index: %w", err)
	}
	return nil
}

func (l entryLog) record(e delegate.Entry) stats.Record {
	res := e.Result
	request, _ := json.Marshal(e.Task)
	result, _ := json.Marshal(res)
	written := int64(0)
	for _, f := range res.Files {
		if info, err := os.Stat(filepath.Join(l.dir, filepath.FromSlash(f.Path))); err == nil && res.OK && f.Change != "unchanged" {
			written += info.Size()
		}
	}
	r := stats.Record{
		Timestamp: time.Now(), Task: e.Task.Task, TaskType: cmp.Or(e.Task.TaskType, "generate"), Score: res.Score, Decision: "delegate",
		TokensGenerated: res.Tokens.Generated, TimeSeconds: res.Seconds,
		ID: e.ID, Status: res.Status, Model: res.Model, Engine: res.Engine, Profile: l.to.limits.Profile, Attempts: len(res.Attempts),
		TokensPrompt: res.Tokens.Prompt, TokensCached: res.Tokens.Cached, Files: outputPaths(e.Task.OutputFiles),
		VerifyExit: e.VerifyExit, BaselineExit: e.BaselineExit, Session: l.bound.Session, Version: l.app.version,
		Reason: res.Reason, TokensRead: scoring.EstimateTokens(l.src.bytes(e.Task)), TokensWritten: scoring.EstimateTokens(written),
		TokensRequest: scoring.EstimateTokens(int64(len(request))), TokensResult: scoring.EstimateTokens(int64(len(result))),
	}
	if res.TokensPerSecond > 0 {
		r.DecodeSeconds = float64(res.Tokens.Generated) / res.TokensPerSecond
	}
	if n := len(res.Attempts); n > 0 && !res.OK {
		r.Cause = res.Attempts[n-1].Outcome
	}
	switch {
	case e.VerifyExit == nil:
	case res.Status == delegate.Proven || res.Status == delegate.Unproven:
		r.VerificationPassed = ptr(true)
	default:
		r.VerificationPassed = ptr(false)
	}
	return r
}

func ptr[T any](v T) *T { return &v }

// textKeep is how long a text can be fetched that was too long to return: as long as a task's result.
const textKeep = 7 * 24 * time.Hour

// saveText keeps a text that is too long to return, and removes those that nobody has come for.
func (a *App) saveText(id, text string) (string, error) {
	dir := filepath.Join(a.layout.State, "texts")
	if err := paths.Private(dir); err != nil {
		return "", err
	}
	removeOlder(dir, textKeep)
	path := filepath.Join(dir, id+".md")
	return path, os.WriteFile(path, []byte(text), 0o600)
}
