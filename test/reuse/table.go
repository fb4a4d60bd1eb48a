package main

import (
	"fmt"
	"os"
	"strings"

	"localllm/internal/atomicfile"
)

const (
	begin = "<!-- generated:reuse -->"
	end   = "<!-- /generated:reuse -->"
)

// table is the page's part.
func table(figures []figure, versions string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "A session of %d tasks over the same %d files of about %d tokens each; before task %d one of them changes, before task %d another comes in. Ideal: every piece of text that is new to the session is prefilled once; headings and reminders that are sent again are not counted into it. All counts are the engines' own (%s), each line on a freshly started engine with the practice model.\n\n",
		tasks, files, fileTokens, changedAt+1, addedAt+1, versions)
	b.WriteString("| engine | layout | prompt tokens | prefilled | of the ideal | from the cache |\n|---|---|---:|---:|---:|---:|\n")
	for _, f := range figures {
		name, ratio := string(f.Layout), fmt.Sprintf("%.2f×", f.ratio())
		if f.Tasks < tasks { // the ideal is the whole session's
			name, ratio = fmt.Sprintf("%s, the first %d tasks only", f.Layout, f.Tasks), "–"
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %s | %.1f %% |\n", f.Engine, name, f.Prompt, f.Prefilled, ratio, 100*float64(f.Cached)/float64(f.Prompt))
	}
	return b.String()
}

// write puts the table between its markers, at the end of the page where it has none yet.
func write(path, text string) error {
	page, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("reading the results: %w", err)
	}
	return atomicfile.Write(path, []byte(place(string(page), text)), 0o644)
}

func place(page, text string) string {
	part := begin + "\n" + text + end
	before, rest, ok := strings.Cut(page, begin)
	if ok {
		if _, after, ok := strings.Cut(rest, end); ok {
			return before + part + after
		}
	}
	if page == "" {
		page = "# Results\n"
	}
	return strings.TrimRight(page, "\n") + "\n\n## Reuse of the prompt\n\n" + part + "\n"
}
