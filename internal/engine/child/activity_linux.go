package child

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

var pageSize = int64(os.Getpagesize())

// activity sums resident memory and bytes read and written over pid and its descendants.
func activity(pid int) movement {
	var m movement
	visit(pid, 0, &m)
	return m
}

func visit(pid, depth int, m *movement) {
	if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid)); err == nil {
		if fields := bytes.Fields(b); len(fields) > 1 {
			pages, _ := strconv.ParseInt(string(fields[1]), 10, 64)
			m.resident += pages * pageSize
		}
	}
	if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid)); err == nil {
		// They count what read(2) and write(2) moved, also from and to the page cache, but not what sockets did.
		for _, name := range []string{"rchar: ", "wchar: "} {
			if _, after, ok := bytes.Cut(b, []byte(name)); ok {
				line, _, _ := bytes.Cut(after, []byte("\n"))
				n, _ := strconv.ParseInt(string(line), 10, 64)
				m.moved += n
			}
		}
	}
	if depth > 2 {
		return
	}
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, t := range tasks {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, t.Name()))
		if err != nil {
			continue
		}
		for _, f := range bytes.Fields(b) {
			if child, err := strconv.Atoi(string(f)); err == nil {
				visit(child, depth+1, m)
			}
		}
	}
}
