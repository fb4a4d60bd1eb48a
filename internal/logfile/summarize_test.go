package logfile

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"localllm/stats"
)

// roleSummarize does what the stats command does, in a process of its own, so that its memory can be measured.
func roleSummarize() int {
	l := Open(os.Getenv("LOGFILE_ROOT"), same)
	r, err := l.Read(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer r.Close()
	s, err := stats.Summarize(context.Background(), r.Parts(), stats.Options{Log: l.Path()})
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
