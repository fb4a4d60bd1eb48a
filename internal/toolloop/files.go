package toolloop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"localllm/delegate"
	"localllm/internal/contextfiles"
	"localllm/internal/workspace"
)

// What one look at the files may come to.
const (
	maxFile     = 4 << 20
	maxLooked   = 20_000
	maxLookedAt = 64 << 20 // bytes
	pageLines   = 200
	maxListed   = 300
	maxMatches  = 60
	maxLine     = 240 // bytes of a matching line
)

func clean(p string) string { return path.Clean(filepath.ToSlash(strings.TrimSpace(p))) }

// relative is a path as the tools take it: models like to write the whole of it.
func (c *conversation) relative(p string) string {
	p = strings.TrimSpace(p)
	if filepath.IsAbs(p) {
		for _, dir := range []string{c.Dir, c.copied()} {
			if rel, err := filepath.Rel(dir, filepath.Clean(p)); dir != "" && err == nil && filepath.IsLocal(rel) {
				return filepath.ToSlash(rel)
			}
		}
		return p
	}
	return clean(p)
}

// page is how many bytes one answer may have: an eighth of the window, where that is known.
func (c *conversation) page() int {
	window := c.Completer.Limits().Context
	if window == 0 {
		return 16 << 10
	}
	return min(max(window/8*3, 1<<10), 24<<10)
}

func (c *conversation) look(ctx context.Context, pattern string) (contextfiles.Set, error) {
	roots := make([]string, 0, len(c.order.Task.ReadRoots))
	for _, r := range c.order.Task.ReadRoots {
		if !filepath.IsAbs(r) {
			r = filepath.Join(c.Dir, r)
		}
		roots = append(roots, r)
	}
	o := contextfiles.Options{Root: c.Dir, ReadRoots: roots, MaxFiles: maxLooked, MaxFileBytes: maxFile, MaxBytes: maxLookedAt}
	return contextfiles.Expand(ctx, o, []string{pattern})
}

// readFile gives a page that depends on the file and the arguments alone.
func (c *conversation) readFile(ctx context.Context, a arguments) result {
	name := c.relative(text(a.Path))
	set, err := c.look(ctx, name)
	if err != nil {
		return failure("%v", err)
	}
	if len(set.Files) != 1 || path.Base(set.Files[0].Path) != path.Base(filepath.ToSlash(name)) {
		return failure("%s is a folder or a pattern; list_files shows what is in it", name)
	}
	body := set.Files[0].Body
	if body == "" {
		return result{text: name + " is empty"}
	}
	lines := strings.SplitAfter(body, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	from, count := max(int(a.Offset), 1), int(a.Limit)
	if count == 0 {
		count = pageLines
	}
	if from > len(lines) {
		return failure("%s has only %d lines", name, len(lines))
	}
	var w strings.Builder
	to := from
	for ; to <= len(lines) && to < from+count; to++ {
		line := lines[to-1]
		if w.Len()+len(line) > c.page() {
			if to > from {
				break
			}
			w.WriteString(clip(line, c.page()) + fmt.Sprintf(" [this line is %d bytes long]\n", len(line)))
			continue
		}
		w.WriteString(line)
	}
	head := fmt.Sprintf("%s, lines %d to %d of %d", name, from, to-1, len(lines))
	if to <= len(lines) {
		head += fmt.Sprintf("; go on with offset %d", to)
	}
	return result{text: head + ":\n" + strings.TrimSuffix(w.String(), "\n")}
}

func (c *conversation) listFiles(ctx context.Context, a arguments) result {
	name := c.relative(text(a.Path))
	set, err := c.look(ctx, name)
	if err != nil {
		return failure("%v", err)
	}
	names := make([]string, 0, len(set.Files))
	for _, f := range set.Files {
		names = append(names, fmt.Sprintf("%s (%d lines)", f.Path, strings.Count(f.Body, "\n")+1))
	}
	for _, s := range set.Skipped {
		names = append(names, fmt.Sprintf("%s (%s)", s.Path, s.Reason))
	}
	slices.Sort(names)
	more := ""
	if len(names) > maxListed {
		more = fmt.Sprintf("\n%d more: name a folder further down", len(names)-maxListed)
		names = names[:maxListed]
	}
	return result{text: c.cut(strings.Join(names, "\n")) + more}
}

func (c *conversation) search(ctx context.Context, a arguments) result {
	expression := text(a.Pattern)
	if a.IgnoreCase {
		expression = "(?i)" + expression
	}
	re, err := regexp.Compile(expression)
	if err != nil {
		return failure("the pattern is no RE2 expression: %v", err)
	}
	set, err := c.look(ctx, c.relative(text(a.Path)))
	if err != nil {
		return failure("%v", err)
	}
	var found []string
	n := 0
	for _, f := range set.Files {
		for i, line := range strings.Split(f.Body, "\n") {
			if !re.MatchString(line) {
				continue
			}
			if n++; n <= maxMatches {
				found = append(found, fmt.Sprintf("%s:%d: %s", f.Path, i+1, clip(line, maxLine)))
			}
		}
		if ctx.Err() != nil {
			return failure("%v", ctx.Err())
		}
	}
	if n == 0 {
		return result{text: "nothing found"}
	}
	if n > maxMatches {
		found = append(found, fmt.Sprintf("%d more: make the pattern narrower", n-maxMatches))
	}
	return result{text: c.cut(strings.Join(found, "\n"))}
}

func (c *conversation) cut(s string) string {
	if over := len(s) - c.page(); over > 0 {
		return clip(s, c.page()) + fmt.Sprintf("\n[%d bytes more]", over)
	}
	return s
}

// writeRoots are the folders below the working folder that may be written in beside the declared outputs.
func (c *conversation) writeRoots(roots []string) ([]string, error) {
	var out []string
	for _, r := range roots {
		rel := c.relative(r)
		if !filepath.IsLocal(filepath.FromSlash(rel)) {
			return nil, &delegate.Refusal{Reason: "write_roots: " + r + " is outside of the working folder, where nothing is written", Hint: "name folders in it, or call with another workdir"}
		}
		out = append(out, rel)
	}
	return out, nil
}

// mayWrite says why a path is not to be written; the change has its own checks beside these.
func (c *conversation) mayWrite(rel string) string {
	task := c.order.Task
	declared := slices.ContainsFunc(task.OutputFiles, func(o delegate.OutputFile) bool { return clean(o.Path) == rel })
	if narrowed := len(task.OutputFiles)+len(c.allowed) > 0; narrowed && !declared && !within(rel, c.allowed) {
		return "only these may be written: " + c.writable()
	}
	for _, p := range task.Protect {
		if ok, _ := doublestar.Match(clean(p), rel); ok || within(rel, []string{clean(p)}) {
			return "it is protected and must not change"
		}
	}
	if workspace.Secret(rel) && !slices.Contains(task.AllowPaths, rel) {
		return "it is by its name a file of secrets"
	}
	return ""
}

// writable names what the caller narrows writing to.
func (c *conversation) writable() string {
	var names []string
	for _, o := range c.order.Task.OutputFiles {
		names = append(names, clean(o.Path))
	}
	for _, dir := range c.allowed {
		names = append(names, strings.TrimSuffix(dir, "/")+"/")
	}
	return strings.Join(names, ", ")
}

func within(rel string, roots []string) bool {
	return slices.ContainsFunc(roots, func(r string) bool { return r == "." || rel == r || strings.HasPrefix(rel, r+"/") })
}

// put writes one file through the change. note is for the model; why is set where nothing was written.
func (c *conversation) put(rel, body string, old *string, shrinks bool) (note, why string) {
	if why := c.mayWrite(rel); why != "" {
		return "", why
	}
	note, why = c.judge(rel, body, old, shrinks)
	if why != "" {
		return "", why
	}
	err := c.order.Change.Write([]delegate.File{{Path: rel, Body: body}})
	var refusal *delegate.Refusal
	switch {
	case errors.As(err, &refusal):
		return "", strings.TrimRight(refusal.Reason+"; "+refusal.Hint, "; ")
	case err != nil:
		return "", err.Error()
	}
	c.wrote[rel] = true
	c.failures = map[string]int{} // what failed before may work now
	return note, ""
}

// judge holds a file against what a whole answer is held against.
func (c *conversation) judge(rel, body string, old *string, shrinks bool) (note, why string) {
	if c.Parses != nil {
		if err := c.Parses(rel, []byte(body)); err != nil {
			note = "; but it does not parse: " + clip(err.Error(), 300)
		}
	}
	output := delegate.Output{Path: rel, Exists: old != nil, Body: text(old)}
	gate := delegate.Gate{Outputs: []delegate.Output{output}, AllowShrink: shrinks || c.order.Task.AllowShrink}
	fence := fenceFor(body)
	_, err := gate.Files(delegate.Completion{Text: "### File: " + rel + "\n" + fence + "\n" + strings.TrimSuffix(body, "\n") + "\n" + fence + "\n", Finish: delegate.FinishStop})
	var r *delegate.Rejection
	if errors.As(err, &r) && (r.Kind == delegate.RejectElision || r.Kind == delegate.RejectShrink) {
		return "", r.Reason + "; give the whole of it"
	}
	return note, ""
}

// now is a file that may be written, as it is.
func (c *conversation) now(rel string) (body *string, why string) {
	if why := c.mayWrite(rel); why != "" {
		return nil, why
	}
	got, exists, err := contextfiles.Read(c.Dir, rel)
	if err != nil {
		return nil, err.Error()
	}
	if !exists {
		return nil, ""
	}
	return &got, ""
}

func (c *conversation) writeFile(_ context.Context, a arguments) result {
	rel, body := c.relative(text(a.Path)), text(a.Content)
	old, why := c.now(rel)
	if why != "" {
		return failure("%s was not written: %s", rel, why)
	}
	if body != "" && !strings.HasSuffix(body, "\n") {
		body += "\n"
	}
	if old != nil && strings.Contains(*old, "\r\n") && !strings.Contains(body, "\r\n") {
		body = strings.ReplaceAll(body, "\n", "\r\n")
	}
	note, why := c.put(rel, body, old, false)
	if why != "" {
		return failure("%s was not written: %s", rel, why)
	}
	return result{text: fmt.Sprintf("wrote %s, %d lines%s", rel, strings.Count(body, "\n"), note)}
}

func (c *conversation) editFile(_ context.Context, a arguments) result {
	rel, from, to := c.relative(text(a.Path)), text(a.Old), text(a.New)
	old, why := c.now(rel)
	switch {
	case why != "":
		return failure("%s was not changed: %s", rel, why)
	case old == nil:
		return failure("%s does not exist; write_file makes it", rel)
	case from == "":
		return failure("old is empty: copy the text to replace from the file, or use write_file for the whole")
	case from == to:
		return failure("old and new are the same")
	case bytes.IndexByte([]byte(*old), 0) >= 0:
		return failure("%s is binary", rel)
	}
	if strings.Contains(*old, "\r\n") && !strings.Contains(from, "\r\n") { // read_file shows plain line ends
		from, to = strings.ReplaceAll(from, "\n", "\r\n"), strings.ReplaceAll(strings.ReplaceAll(to, "\r\n", "\n"), "\n", "\r\n")
	}
	n := strings.Count(*old, from)
	switch {
	case n == 0:
		return failure("the text in old does not occur in %s; read_file it again and copy it exactly, with its spaces", rel)
	case n > 1 && !a.All:
		return failure("the text in old occurs %d times in %s; take more lines with it, or set all", n, rel)
	}
	note, why := c.put(rel, strings.ReplaceAll(*old, from, to), old, true)
	if why != "" {
		return failure("%s was not changed: %s", rel, why)
	}
	return result{text: fmt.Sprintf("changed %s in %d places%s", rel, n, note)}
}
