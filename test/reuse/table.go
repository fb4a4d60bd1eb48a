package main

import (
	"fmt"
	"strings"
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
