package child

import (
	"os"
	"sync"

	"localllm/internal/proc"
)

// maxLog bounds one run's log file, in bytes: an engine that prints for weeks must not fill the disk.
const maxLog = 32 << 20

// output takes what the child prints: to the log file, to a tail, and line by line to whoever follows the load. It
// never returns an error, for then exec would stop reading and the child would block or die of SIGPIPE.
type output struct {
	tail    proc.Tail
	written counter

	mu    sync.Mutex
	file  *os.File
	size  int64
	err   error
	lines lines
}

func newOutput(path string, each func(string)) *output {
	o := &output{lines: lines{each: each}}
	if path == "" {
		return o
	}
	// Only a plain file is set aside: a log may be pointed at a device.
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
		_ = os.Rename(path, path+".1")
	}
	o.file, o.err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if o.err != nil {
		o.file = nil
	}
	return o
}

func (o *output) Write(p []byte) (int, error) {
	o.written.Add(int64(len(p)))
	_, _ = o.tail.Write(p)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file != nil && o.size < maxLog {
		n, err := o.file.Write(p)
		o.size += int64(n)
		if err != nil {
			o.err = err
			_ = o.file.Close()
			o.file = nil
		}
	}
	o.lines.write(p)
	return len(p), nil
}

func (o *output) trouble() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines.flush()
	if o.file != nil {
		_ = o.file.Close()
		o.file = nil
	}
}
