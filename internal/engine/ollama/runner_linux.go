package ollama

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// runnerPort finds the llama-server that Ollama runs for a model file, by its command line. Only processes of this
// user count: any other user could dress one up to be sent our prompts.
func runnerPort(blob string) (string, bool) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return "", false
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		info, err := os.Stat("/proc/" + e.Name())
		if err != nil {
			continue
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != os.Getuid() {
			continue
		}
		line, err := os.ReadFile(fmt.Sprintf("/proc/%s/cmdline", e.Name()))
		if err != nil || !bytes.Contains(line, []byte(blob)) {
			continue
		}
		if port, ok := portOf(bytes.Split(line, []byte{0}), blob); ok {
			return port, true
		}
	}
	return "", false
}
