package harness

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Process is a living process; a zombie counts as gone.
type Process struct {
	PID     int
	Command string
	entry   string
}

func (p Process) String() string { return fmt.Sprintf("pid %d: %.200s", p.PID, p.Command) }

// Processes lists the living processes whose environment has exactly this entry (NAME=VALUE). Only Linux shows
// environments; elsewhere the list is empty.
func Processes(entry string) []Process {
	return marked(func(have string) bool { return have == entry })
}

func marked(match func(entry string) bool) []Process {
	folders, _ := filepath.Glob("/proc/[0-9]*")
	var found []Process
	for _, folder := range folders {
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile(filepath.Join(folder, "environ"))
		if err != nil {
			continue
		}
		for have := range bytes.SplitSeq(env, []byte{0}) {
			if !match(string(have)) {
				continue
			}
			if command, living := living(pid); living {
				found = append(found, Process{PID: pid, Command: command, entry: string(have)})
			}
			break
		}
	}
	return found
}

func living(pid int) (command string, ok bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", false
	}
	after := strings.TrimSpace(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if after == "" || after[0] == 'Z' || after[0] == 'X' {
		return "", false
	}
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " ")), true
}

// kill ends the process if it still is the one that was found.
func (p Process) kill() {
	for _, now := range Processes(p.entry) {
		if now.PID == p.PID {
			if process, err := os.FindProcess(p.PID); err == nil {
				_ = process.Kill()
			}
		}
	}
}
