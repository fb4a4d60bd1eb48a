package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"localllm/capability"
	"localllm/delegate"
	"localllm/internal/app"
	"localllm/internal/capabilityview"
	"localllm/internal/mcpserver"
	"localllm/internal/statsview"
	"localllm/internal/tasks"
	"localllm/internal/terminal"
	"localllm/lifecycle"
	"localllm/scoring"
	"localllm/stats"
)

// render prints a result for people.
func render(w io.Writer, out any) error {
	var b strings.Builder
	switch r := out.(type) {
	case *capability.Report:
		return capabilityview.Write(w, *r, capabilityview.StyleFor(os.Stdout))
	case *app.Enabled:
		renderEnabled(&b, r)
	case *app.Disabled:
		renderDisabled(&b, r)
	case *app.Status:
		renderStatus(&b, r)
	case *scoring.Advice:
		return statsview.Advice(w, *r, view())
	case *delegate.Result:
		renderResult(&b, r)
	case *delegate.BatchResult:
		renderBatch(&b, r)
	case *stats.Summary:
		return statsview.Page(w, *r, view())
	case tasks.State:
		renderTask(&b, r)
	case *app.TaskStatus:
		renderTask(&b, r.State)
		if !r.Ended() {
			fmt.Fprintf(&b, "  hint      localllm tasks wait %s\n", r.ID)
		}
	case map[string]any:
		if all, ok := r["tasks"].([]tasks.State); ok {
			return renderTasks(w, all)
		}
		b.WriteString(mcpserver.Text(out))
	default:
		b.WriteString(mcpserver.Text(out))
	}
	text := b.String()
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// view is how pages look on this standard output.
func view() statsview.Options {
	return statsview.Options{Width: terminal.Width(os.Stdout), Color: terminal.Colour(os.Stdout)}
}

func renderEnabled(b *strings.Builder, r *app.Enabled) {
	how := map[string]string{"cold": "started", "joined": "joined", "adopted": "adopted the running server"}[r.Started]
	fmt.Fprintf(b, "%s on %s: %s\n", r.Model, r.Engine, how)
	if r.Context > 0 {
		fmt.Fprintf(b, "  context   %d tokens", r.Context)
	} else {
		b.WriteString("  context   not known: its endpoint does not say")
	}
	if r.Slots > 1 {
		fmt.Fprintf(b, " in each of %d slots", r.Slots)
	}
	fmt.Fprintf(b, "\n  endpoint  %s\n", r.Endpoint)
	if r.Started != "joined" && r.Profile == "" {
		fmt.Fprintf(b, "  ready in  %.1f s", float64(r.LoadMS)/1000)
		if r.WarmTokens > 0 {
			fmt.Fprintf(b, ", %d tokens warmed in %.1f s", r.WarmTokens, float64(r.WarmMS)/1000)
		}
		b.WriteString("\n")
	}
	if r.Memory.EstimatedBytes > 0 {
		fmt.Fprintf(b, "  memory    %s estimated", terminal.Bytes(int64(r.Memory.EstimatedBytes)))
		if r.Memory.MeasuredBytes > 0 {
			fmt.Fprintf(b, ", %s measured", terminal.Bytes(int64(r.Memory.MeasuredBytes)))
		}
		b.WriteString("\n")
	}
	if r.Profile == "" { // nothing of a profile's is held
		until := "until " + r.Session + " ends"
		if r.Persist {
			until = "until «localllm disable»"
		}
		fmt.Fprintf(b, "  stays     %s", until)
		if r.Sessions > 1 {
			fmt.Fprintf(b, "; %d sessions share it", r.Sessions)
		}
		b.WriteString("\n")
	}
	bullets(b, "why", r.Why)
	bullets(b, "warning", r.Warnings)
}

// renderTask shows how far a task is, or what came of it as if it had been waited for.
func renderTask(b *strings.Builder, st tasks.State) {
	fmt.Fprintf(b, "%s %s, %.0f s: %s\n", st.ID, st.State, st.Seconds, st.Title)
	if st.Phase != "" {
		fmt.Fprintf(b, "  phase     %s\n", st.Phase)
	}
	if st.Error != "" {
		fmt.Fprintf(b, "  error     %s\n", st.Error)
		bullets(b, "hint", st.Hints)
	}
	if st.Result == nil {
		return
	}
	out, err := app.ResultOf(st)
	if err != nil {
		fmt.Fprintf(b, "  error     %v\n", err)
		return
	}
	b.WriteString("\n")
	switch r := out.(type) {
	case *app.Enabled:
		renderEnabled(b, r)
	case *delegate.Result:
		renderResult(b, r)
	case *delegate.BatchResult:
		renderBatch(b, r)
	}
}

func bullets(b *strings.Builder, label string, lines []string) {
	for _, l := range lines {
		fmt.Fprintf(b, "  %-9s %s\n", label, l)
	}
}

func renderDisabled(b *strings.Builder, r *app.Disabled) {
	b.WriteString(r.Reason + "\n")
	if r.MemoryReleased > 0 {
		fmt.Fprintf(b, "  %s came back in %.1f s\n", terminal.Bytes(int64(r.MemoryReleased)), float64(r.ReleaseMS)/1000)
	}
	bullets(b, "held by", r.HeldBy)
}

func renderStatus(b *strings.Builder, r *app.Status) {
	fmt.Fprintf(b, "%s", r.State)
	if r.Model != "" && r.State != lifecycle.Off {
		fmt.Fprintf(b, ": %s on %s, %d tokens of context", r.Model, r.Engine, r.Context)
	}
	b.WriteString("\n")
	if r.Endpoint != "" {
		fmt.Fprintf(b, "  endpoint  %s, %d of %d slots busy\n", r.Endpoint, r.Slots.Busy, r.Slots.Total)
	}
	if r.Phase != "" && r.State.Active() && r.State != lifecycle.Ready && r.State != lifecycle.Busy {
		fmt.Fprintf(b, "  phase     %s\n", r.Phase)
	}
	if r.Keeper.PID > 0 {
		fmt.Fprintf(b, "  keeper    pid %d, up %d s, %d restarts\n", r.Keeper.PID, r.Keeper.UptimeS, r.Restarts)
	}
	if r.Persist {
		b.WriteString("  persists  until «localllm disable»\n")
	}
	for _, s := range r.Sessions {
		mine := ""
		if s.Mine {
			mine = " (this one)"
		}
		fmt.Fprintf(b, "  session   %s%s %s\n", s.Who, mine, s.Project)
	}
	for _, t := range r.Tasks {
		fmt.Fprintf(b, "  task      %s %s %.0f s %s %s\n", t.ID, t.State, t.Seconds, t.Phase, t.Title)
	}
	if r.LastError != "" {
		fmt.Fprintf(b, "  error     %s\n", r.LastError)
	}
	bullets(b, "hint", r.Hints)
	fmt.Fprintf(b, "  project   %s\n", r.Project)
	if r.Profile != nil {
		b.WriteString("  profile   ")
		renderHealth(b, r.Profile)
	}
}

// verified reports whether an attempt got as far as verify: these outcomes come before it.
func verified(a delegate.Attempt) bool {
	return !slices.Contains([]string{"rejected", "conflict", "engine failed"}, a.Outcome)
}

func renderResult(b *strings.Builder, r *delegate.Result) {
	fmt.Fprintf(b, "%s", r.Status)
	if r.Reason != "" {
		fmt.Fprintf(b, ": %s", r.Reason)
	}
	b.WriteString("\n")
	for _, f := range r.Files {
		fmt.Fprintf(b, "  %-9s %s  +%d −%d\n", f.Change, f.Path, f.Added, f.Removed)
	}
	if r.Verify != nil {
		after := fmt.Sprintf("%d after", r.Verify.Exit)
		if !slices.ContainsFunc(r.Attempts, verified) {
			after = "not run after"
		}
		fmt.Fprintf(b, "  verify    %s: exit %d before, %s (%.1f s)\n", r.Verify.Command, r.Verify.BaselineExit, after, r.Verify.Seconds)
	}
	for i, a := range r.Attempts {
		fmt.Fprintf(b, "  attempt %d %s, %.1f s", i+1, a.Outcome, a.Seconds)
		if a.Reason != "" {
			b.WriteString(" (" + a.Reason + ")")
		}
		b.WriteString("\n")
	}
	if r.Tokens.Prompt > 0 {
		fmt.Fprintf(b, "  tokens    %d prompt, %d of them cached, %d generated (%.1f/s)\n", r.Tokens.Prompt, r.Tokens.Cached, r.Tokens.Generated, r.TokensPerSecond)
	}
	bullets(b, "conflict", r.Conflicts)
	bullets(b, "changed", r.ChangedByVerify)
	bullets(b, "warning", r.Warnings)
	if r.Plan != nil {
		fmt.Fprintf(b, "  plan      %s: %d prompt tokens (exact: %v), %d for the answer, window %d, fits: %v\n", r.Plan.Mode, r.Plan.PromptTokens, r.Plan.Exact, r.Plan.OutputTokens, r.Plan.Context, r.Plan.Fits)
	}
	if r.Verify != nil && !r.OK && r.Verify.Tail != "" {
		fmt.Fprintf(b, "\n%s\n", r.Verify.Tail)
	}
	if r.Text != "" {
		fmt.Fprintf(b, "\n%s\n", r.Text)
	}
	if r.TextFile != "" {
		fmt.Fprintf(b, "  all of it %s\n", r.TextFile)
	}
	if r.Hint != "" {
		fmt.Fprintf(b, "  hint      %s\n", r.Hint)
	}
	if r.Diff != "" {
		fmt.Fprintf(b, "\n%s", r.Diff)
	}
}

func renderBatch(b *strings.Builder, r *delegate.BatchResult) {
	fmt.Fprintf(b, "%d of %d accomplished in %.1f s\n", r.Succeeded, len(r.Results), r.Seconds)
	for i := range r.Results {
		fmt.Fprintf(b, "\n[%d] ", i+1)
		renderResult(b, &r.Results[i])
	}
}
