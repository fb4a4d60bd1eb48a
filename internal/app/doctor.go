package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"localllm/capability"
	"localllm/internal/keeper"
	"localllm/internal/scratch"
	"localllm/internal/survey"
	"localllm/lifecycle"
)

// Check is one part that doctor looked at.
type Check struct {
	Part   string   `json:"part"`
	State  string   `json:"state"` // ok, warning, broken
	Detail string   `json:"detail"`
	Mend   []string `json:"mend,omitempty"`
}

// The states of a check.
const (
	CheckOK      = "ok"
	CheckWarning = "warning"
	CheckBroken  = "broken"
)

// Doctor looks at every part and says how to mend each. It starts nothing and changes nothing, but for repairing what
// a crash left.
func (a *App) Doctor(ctx context.Context) []Check {
	checks := []Check{a.checkConfig(), a.checkFolders(), a.checkLeftovers()}
	r, err := a.survey(ctx, survey.Options{})
	if err != nil {
		checks = append(checks, Check{"survey", CheckBroken, err.Error(), nil})
	} else {
		checks = append(checks, checkGPU(r))
		checks = append(checks, checkEngines(r)...)
		checks = append(checks, checkModel(ctx, r))
	}
	return append(checks, a.checkEngine(ctx), a.checkLog(ctx))
}

func (a *App) checkConfig() Check {
	if _, err := os.Stat(a.config.Path); errors.Is(err, fs.ErrNotExist) {
		return Check{"configuration", CheckOK, "none at " + a.config.Path + ": the defaults hold", nil}
	}
	set := make([]string, 0)
	for key, from := range a.config.Origins {
		if from != "default" {
			set = append(set, key)
		}
	}
	slices.Sort(set)
	if len(set) == 0 {
		set = append(set, "nothing")
	}
	return Check{"configuration", CheckOK, fmt.Sprintf("%s; profiles: %d; set: %s", a.config.Path, len(a.config.Profiles), strings.Join(set, ", ")), nil}
}

func (a *App) checkFolders() Check {
	for _, dir := range []string{a.layout.Run, a.layout.State} {
		info, err := os.Stat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return Check{"folders", CheckBroken, err.Error(), []string{"make " + dir + " readable for you"}}
		case info.Mode().Perm()&0o077 != 0:
			return Check{"folders", CheckWarning, dir + " can be read by others", []string{"chmod 700 " + dir}}
		}
	}
	if note := keeper.NetworkFolder(a.layout.Run); note != "" {
		return Check{"folders", CheckWarning, note, []string{"put " + a.layout.State + " on a local disk"}}
	}
	return Check{"folders", CheckOK, a.layout.State, nil}
}

func (a *App) checkLeftovers() Check {
	scratch.Sweep(a.layout)
	if err := keeper.Repair(a.layout); err != nil {
		return Check{"leftovers", CheckBroken, err.Error(), nil}
	}
	return Check{"leftovers", CheckOK, "nothing of a crashed run is left", nil}
}

func checkGPU(r *capability.Report) Check {
	if len(r.Hardware.GPUs) == 0 {
		return Check{"GPU", CheckWarning, "none was found: models run on the processor, slowly", r.Notes}
	}
	names := make([]string, 0, len(r.Hardware.GPUs))
	for _, g := range r.Hardware.GPUs {
		size := "memory not known"
		if g.TotalBytes != nil && g.FreeBytes != nil {
			size = fmt.Sprintf("%s of %s free", capability.GiB(*g.FreeBytes), capability.GiB(*g.TotalBytes))
		}
		names = append(names, fmt.Sprintf("%s (%s, by %s)", g.Name, size, g.Source))
	}
	return Check{"GPU", CheckOK, strings.Join(names, "; "), r.Notes}
}

func checkEngines(r *capability.Report) []Check {
	usable := false
	for _, e := range r.Engines {
		usable = usable || e.Usable()
	}
	checks := make([]Check, 0, len(r.Engines))
	for _, e := range r.Engines {
		found := slices.DeleteFunc([]string{string(e.State), e.Version, cmp.Or(e.Path, e.URL)}, func(s string) bool { return s == "" })
		c := Check{e.Name, CheckOK, strings.Join(found, " "), nil}
		switch {
		case e.State == capability.Unreachable:
			c.State, c.Detail = CheckWarning, "configured and does not answer: "+cmp.Or(e.Detail, e.URL)
		case !e.Usable() && usable:
			c.Detail = "not installed; the other engine will do"
		case !e.Usable():
			c.State, c.Mend = CheckBroken, []string{"localllm setup"}
		}
		checks = append(checks, c)
	}
	return checks
}

func checkModel(ctx context.Context, r *capability.Report) Check {
	if r.Recommended == nil {
		return Check{"model", CheckBroken, strings.Join(r.Reasons, "; "), r.Hints}
	}
	c := Check{"model", CheckOK, strings.Join(r.Recommended.Why, "; "), nil}
	if planned, ok := plannedBytes(ctx, *r.Recommended); ok {
		c.Detail += fmt.Sprintf("; our estimate %s, llama.cpp's own dry run %s", capability.GiB(r.Recommended.NeedBytes), capability.GiB(planned))
	}
	if !r.CanEnable || !r.Recommended.Installed {
		c.State, c.Mend = CheckWarning, r.Hints
	}
	return c
}

func (a *App) checkEngine(ctx context.Context) Check {
	st, err := a.client.Status(ctx)
	switch {
	case err != nil:
		return Check{"keeper", CheckBroken, err.Error(), nil}
	case st.State == lifecycle.Failed:
		return Check{"keeper", CheckWarning, "the last engine failed: " + st.LastError, st.Hints}
	case !st.KeeperAlive:
		return Check{"keeper", CheckOK, "nothing is enabled", nil}
	case st.Health != keeper.HealthOK && st.State == lifecycle.Ready:
		return Check{"keeper", CheckBroken, cmp.Or(st.LastError, "the engine does not answer"), []string{"localllm disable --force, then enable again"}}
	}
	return Check{"keeper", CheckOK, fmt.Sprintf("%s, pid %d, %d sessions, up %s", st.State, st.Keeper.PID, len(st.Leases), st.Uptime().Round(time.Second)), nil}
}

func (a *App) checkLog(ctx context.Context) Check {
	log, err := a.log(ctx, "")
	if err == nil {
		r, rerr := log.Read(ctx)
		if err = rerr; err == nil {
			defer r.Close()
			return Check{"delegation log", CheckOK, fmt.Sprintf("%s, %d KiB", log.Path(), r.Size()>>10), nil}
		}
	}
	return Check{"delegation log", CheckBroken, err.Error(), []string{"delegations still work, and are not counted"}}
}
