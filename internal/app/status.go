package app

import (
	"context"
	"errors"
	"strings"
	"time"

	"localllm/internal/hint"
	"localllm/internal/keeper"
	"localllm/internal/request"
	"localllm/internal/slots"
	"localllm/internal/tasks"
	"localllm/lifecycle"
)

// Disabled is what disable returns; the JSON names are public.
type Disabled struct {
	Disabled       bool     `json:"disabled"`
	Stopped        bool     `json:"stopped"`
	Unloaded       bool     `json:"unloaded"`
	Reason         string   `json:"reason"`
	SessionsLeft   int      `json:"sessions_left"`
	MemoryReleased uint64   `json:"memory_released_bytes"`
	ReleaseMS      int64    `json:"release_ms"`
	HeldBy         []string `json:"held_by,omitempty"` // who holds the memory where it did not come back
}

// Disable lets go of the session's share, and stops what is ours when nobody else needs it.
func (a *App) Disable(ctx context.Context, in *request.Disable, report func(Progress)) (*Disabled, error) {
	bound, err := a.binding(ctx)
	if err != nil {
		return nil, err
	}
	d, err := a.client.Disable(ctx, keeper.DisableRequest{Session: bound, StopEngine: in.StopEngine, Force: in.Force, Report: report})
	if err != nil {
		return nil, err
	}
	return &Disabled{
		Disabled: d.Disabled, Stopped: d.Stopped, Unloaded: d.Unloaded, Reason: d.Reason, SessionsLeft: len(d.SessionsLeft),
		MemoryReleased: d.Released, ReleaseMS: d.ReleaseMS, HeldBy: d.HeldBy,
	}, nil
}

// Status is what status returns; the JSON names are public.
type Status struct {
	Enabled     bool            `json:"enabled"`
	State       lifecycle.State `json:"state"`
	Phase       string          `json:"phase,omitempty"`
	Engine      string          `json:"engine"`
	Model       string          `json:"model"`
	Context     int             `json:"context"`
	Endpoint    string          `json:"endpoint"`
	Owned       bool            `json:"owned"`
	Persist     bool            `json:"persist"`
	Since       *time.Time      `json:"since"`
	Sessions    []SessionInfo   `json:"sessions"`
	Slots       SlotInfo        `json:"slots"`
	GPUFraction float64         `json:"gpu_fraction"`
	Memory      Memory          `json:"memory"`
	Keeper      KeeperInfo      `json:"keeper"`
	Restarts    int             `json:"restarts"`
	LastError   string          `json:"last_error"`
	Hints       []string        `json:"hints,omitempty"`
	Tasks       []tasks.State   `json:"tasks"`
	Project     string          `json:"project"`
	Version     string          `json:"version"`
	Profile     *ProfileHealth  `json:"profile,omitempty"`
}

// SessionInfo is one session that needs the engine.
type SessionInfo struct {
	Who     string    `json:"who"`
	Session string    `json:"session,omitempty"`
	PID     int       `json:"pid"`
	Project string    `json:"project,omitempty"`
	Since   time.Time `json:"since"`
	Mine    bool      `json:"mine"`
}

// SlotInfo is how many requests the engine takes at once, and how many it has.
type SlotInfo struct {
	Total int `json:"total"`
	Busy  int `json:"busy"`
}

// KeeperInfo is the process that holds the engine.
type KeeperInfo struct {
	PID     int   `json:"pid"`
	UptimeS int64 `json:"uptime_s"`
}

// Status looks. It starts and changes nothing, but for repairing what a crash left.
func (a *App) Status(ctx context.Context, in *request.Status, report func(Progress)) (any, error) {
	if in.TaskID != "" {
		return a.taskStatus(ctx, in.TaskID, time.Duration(in.WaitS)*time.Second, report)
	}
	st, err := a.client.Status(ctx)
	if err != nil {
		return nil, err
	}
	call := callOf(ctx)
	project, err := call.project()
	if err != nil {
		return nil, err
	}
	out := &Status{
		State: st.State, Phase: st.Progress.Phase, Persist: st.Persist, Restarts: st.Restarts, LastError: st.LastError, Hints: st.Hints,
		GPUFraction: st.Memory.GPUFraction(), Memory: Memory{st.Memory.EstimatedBytes, st.Memory.MeasuredBytes},
		Sessions: []SessionInfo{}, Tasks: []tasks.State{}, Project: project, Version: a.version,
	}
	if out.State == "" {
		out.State = lifecycle.Off
	}
	if st.KeeperAlive {
		out.Keeper = KeeperInfo{st.Keeper.PID, int64(st.Uptime().Seconds())}
	}
	if !st.Since.IsZero() {
		out.Since = &st.Since
	}
	if st.Spec != nil {
		out.Engine, out.Model = st.Spec.Engine, st.Spec.Model
	}
	if e := st.Endpoint; e != nil && st.State == lifecycle.Ready {
		out.Context, out.Endpoint, out.Owned = e.Context, e.URL, e.Owned
		out.Slots = SlotInfo{Total: e.Slots, Busy: slots.Open(a.layout, e.URL, e.Slots).Busy()}
		if out.Slots.Busy > 0 {
			out.State = lifecycle.Busy
		}
	}
	a.addSessions(ctx, out, st.Leases)
	if all, err := a.tasks.List(); err == nil {
		out.Tasks = recent(all)
	}
	if in.Profile != "" {
		if out.Profile, err = a.profileHealth(ctx, in.Profile); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// endedShown is how many ended tasks a status lists: they are kept for a week, and a status has to stay small.
const endedShown = 10

// recent are the tasks under way and the newest of the others, without results: those are fetched by task_id.
func recent(all []tasks.State) []tasks.State {
	shown, ended := []tasks.State{}, 0
	for _, t := range all {
		if t.Ended() {
			if ended++; ended > endedShown {
				continue
			}
		}
		t.Result = nil
		shown = append(shown, t)
	}
	return shown
}

func (a *App) addSessions(ctx context.Context, s *Status, leases []lifecycle.Lease) {
	mine, err := a.binding(ctx)
	for _, l := range leases {
		own := err == nil && belongs(l, mine)
		s.Enabled = s.Enabled || own
		s.Sessions = append(s.Sessions, SessionInfo{Who: l.Who, Session: l.Session, PID: l.Client.PID, Project: l.Project, Since: l.Created, Mine: own})
	}
	// A persisted engine serves whoever comes.
	s.Enabled = (s.Enabled || s.Persist) && s.State.Active()
}

func (a *App) taskStatus(ctx context.Context, id string, wait time.Duration, report func(Progress)) (any, error) {
	if call := callOf(ctx); call.Held && !call.Patient {
		wait = min(wait, time.Duration(a.config.AnswerWithin)) // its client would give up
	}
	st, err := a.follow(ctx, id, wait, func(tasks.State) bool { return false }, report)
	if errors.Is(err, tasks.ErrUnknown) && strings.HasPrefix(id, "d-") {
		return nil, hint.Add(err, "ids with d- are of delegations whose result was returned at once; localllm ledger --json lists them")
	}
	if err != nil {
		return nil, err
	}
	return a.collected(st)
}
