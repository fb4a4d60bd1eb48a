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
	asked := newAsked(generation)
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
			asked = newAsked(generation)
		} else if err := asked.unheard(status); err != nil {
			return status, err
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

// Stopping another engine first takes seconds; a keeper that has not taken up its order by then never will.
const (
	hearing = time.Minute
	lookAt  = time.Second // how often the keeper's process is looked at, while somebody waits for it
)

// asked is an order that a living keeper was given.
type asked struct {
	generation int
	at, looked time.Time
	suspended  bool // at the last look
}

func newAsked(generation int) *asked {
	now := time.Now()
	return &asked{generation: generation, at: now, looked: now}
}

// unheard is the error of one who waits for a keeper that does not answer: it stands still, or it can't write.
func (a *asked) unheard(s lifecycle.Status) error {
	if time.Since(a.looked) < lookAt {
		return nil
	}
	before := a.suspended
	a.looked, a.suspended = time.Now(), identity(s.Keeper).Suspended()
	if a.suspended && before {
		return hint.New(fmt.Sprintf("waiting for the keeper: it (pid %d) is suspended", s.Keeper.PID),
			fmt.Sprintf("let it go on: kill -CONT %d; or end it, and its engine with it: kill -KILL %[1]d", s.Keeper.PID))
	}
	if s.Generation < a.generation && time.Since(a.at) > hearing {
		return hint.New(fmt.Sprintf("waiting for the keeper: it (pid %d) has not answered for %v", s.Keeper.PID, hearing),
			fmt.Sprintf("see its log, engine.log.keeper; end it, and its engine with it: kill -KILL %d", s.Keeper.PID))
	}
	return nil
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
