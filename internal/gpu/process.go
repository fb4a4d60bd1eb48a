package gpu

import (
	"fmt"
	"math"
	"os"
	"strings"

	"localllm/capability"
)

// initialPIDNamespace is the number that Linux gives the first PID namespace.
const initialPIDNamespace = "pid:[4026531836]"

// process describes a holder of GPU memory. A driver counts PIDs as the host does: inside a container the same number
// is somebody else, so no name is looked up there.
func process(pid int, used uint64) capability.Process {
	p := capability.Process{PID: pid}
	// Windows and WSL don't say how much a process holds; the driver writes all ones then.
	if used != math.MaxUint64 && used <= math.MaxInt64 {
		p.UsedBytes = capability.Bytes(int64(used))
	}
	if namespace, err := os.Readlink("/proc/self/ns/pid"); err != nil || namespace != initialPIDNamespace {
		return p
	}
	if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil {
		p.Name = strings.TrimSpace(string(name))
	}
	return p
}
