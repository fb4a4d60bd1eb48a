package logfile

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

// rotated is a part of the log that was put aside: delegation-log.0001.jsonl is the oldest.
type rotated struct {
	name   string
	number int
}

func rotatedName(n int) string { return fmt.Sprintf("%s/delegation-log.%04d.jsonl", folder, n) }

// rotatedNames lists the parts that were put aside, oldest first.
func rotatedNames(root *os.Root) ([]rotated, error) {
	entries, err := fs.ReadDir(root.FS(), folder)
	if err != nil {
		return nil, err
	}
	var found []rotated
	for _, e := range entries {
		text, ok := strings.CutPrefix(e.Name(), "delegation-log.")
		if !ok {
			continue
		}
		if text, ok = strings.CutSuffix(text, ".jsonl"); !ok {
			continue
		}
		if n, err := strconv.Atoi(text); err == nil && n > 0 && rotatedName(n) == folder+"/"+e.Name() {
			found = append(found, rotated{folder + "/" + e.Name(), n})
		}
	}
	slices.SortFunc(found, func(a, b rotated) int { return cmp.Compare(a.number, b.number) })
	return found, nil
}
