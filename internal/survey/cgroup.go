package survey

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// controlGroup reads the memory limit of this container, and what it uses without the page cache that can be dropped.
func controlGroup(root string) (limit, used int64, ok bool) {
	limit, ok = readNumber(filepath.Join(root, "memory.max"))
	if !ok {
		return 0, 0, false // no limit reads "max"
	}
	current, ok := readNumber(filepath.Join(root, "memory.current"))
	if !ok {
		return 0, 0, false
	}
	return limit, max(0, current-inactiveFile(filepath.Join(root, "memory.stat"))), true
}

func inactiveFile(path string) int64 {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for _, line := range strings.Split(string(data), "\n") {
		if value, ok := strings.CutPrefix(line, "inactive_file "); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			if err != nil {
				return 0
			}
			return n
		}
	}
	return 0
}

func readNumber(path string) (int64, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return n, err == nil && n >= 0
}
