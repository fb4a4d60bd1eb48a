package keeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"localllm/internal/hint"
	"localllm/lifecycle"
)

const (
	glance      = 15 * time.Millisecond // between two looks at the status while a session waits for its engine
	maxRespawns = 3
	sayAgain    = 5 * time.Second // progress is repeated this often, for clients give up on a call that is silent
)

// await waits until the wanted generation, or a later one that serves as well, is ready or has failed. A keeper that
// dies meanwhile is noticed by its lock, and another is started.
func (c *Client) await(ctx context.Context, r EnableRequest, generation int) (lifecycle.Status, error) {
	f := c.folder()
	var shown lifecycle.Progress
	var shownAt time.Time
	respawns := 0
	for {
		alive := f.keeperAlive()
		status, err := f.status()
		if err != nil {
			return status, err
		}
		if done, err := answered(status, generation, r); done && (alive || status.State != lifecycle.Ready) {
			return status, err
		}
		if !alive {
			if respawns++; respawns > maxRespawns {
				return status, hint.New("the keeper ended again and again before the engine was ready", "see what it says: localllm keeper --foreground")
			}
			if generation, err = c.revive(ctx, generation); err != nil {
				return status, err
			}
		}
		now := lifecycle.Progress{Phase: "waiting for the keeper"}
		if status.Generation == generation && status.Progress.Phase != "" {
			now = status.Progress
		}
		if now != shown || time.Since(shownAt) > sayAgain {
			shown, shownAt = now, time.Now()
			r.Report(now)
		}
		select {
		case <-ctx.Done():
			return status, fmt.Errorf("waiting for the engine: %w", context.Cause(ctx))
		case <-time.After(glance):
		}
	}
}

// answered reports whether the status is an answer to one who waits for generation, and which.
func answered(s lifecycle.Status, generation int, r EnableRequest) (bool, error) {
	if s.Generation < generation {
		return false, nil
	}
	switch s.State {
	case lifecycle.Ready, lifecycle.Busy:
		if s.Generation > generation && s.Spec != nil && !wouldDo(*s.Spec, r) {
			return true, fmt.Errorf("waiting for the engine: it was replaced by %s meanwhile", s.Spec.Model)
		}
		return true, nil
	case lifecycle.Failed:
		return true, s.Failure()
	case lifecycle.Off:
		if s.LastError != "" {
			return true, s.Failure()
		}
		return true, errors.New("waiting for the engine: it was stopped meanwhile")
	}
	return false, nil
}

func wouldDo(s lifecycle.Spec, r EnableRequest) bool {
	if r.Match != nil && r.Match.Accepts(s) {
		return true
	}
	for _, choice := range r.Choices {
		if s.SameModel(choice) {
			return true
		}
	}
	return false
}

// revive starts a keeper in the place of one that died, unless another client has done it already.
func (c *Client) revive(ctx context.Context, generation int) (int, error) {
	f := c.folder()
	lock, err := f.lock(ctx)
	if err != nil {
		return generation, err
	}
	defer lock.Release()
	s, err := f.situation()
	if err != nil || s.Keeper {
		return generation, err
	}
	if done, _ := answered(s.Status, generation, EnableRequest{Match: &lifecycle.Match{}}); done && s.Status.State != lifecycle.Ready {
		return generation, nil // it answered and ended
	}
	repairLocked(f)
	w := s.Wanted
	w.Generation = max(w.Generation, s.Status.Generation) + 1
	if err := f.writeWanted(w); err != nil {
		return generation, err
	}
	return w.Generation, c.spawn()
}
