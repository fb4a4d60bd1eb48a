package keeper

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"localllm/internal/paths"
	"localllm/internal/proc"
)

// order is one line from the keeper to its warden.
type order struct {
	Layout paths.Layout `json:"layout"`
	Record *record      `json:"record,omitempty"` // what to end when the pipe breaks; nil: nothing
	Bye    bool         `json:"bye,omitempty"`
}

// Warden outlives a killed keeper: when the pipe on stdin breaks without a bye, it ends what the last record names,
// and clears the status. It returns an exit code. Its caller should have done next to nothing before: it sleeps for as long as
// an engine runs, and memory is what it costs.
func Warden(stdin io.Reader) int {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP) // it ends with its keeper, and never before
	debug.SetGCPercent(20)
	debug.FreeOSMemory()
	var last order
	lines := bufio.NewReaderSize(stdin, 4096)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var o order
		if json.Unmarshal(line, &o) != nil {
			continue
		}
		if o.Bye {
			return 0
		}
		last = o
	}
	if last.Record != nil {
		endRecorded(*last.Record)
	}
	if last.Layout.Run != "" {
		// The killed keeper's lock goes with it, but not always before its pipe.
		f := folder{last.Layout}
		for end := time.Now().Add(time.Second); f.keeperAlive() && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		if Repair(last.Layout) != nil {
			return 1
		}
	}
	return 0
}

func freeOSMemory() { debug.FreeOSMemory() }

// link is the keeper's end of the pipe. It starts another warden when one is killed.
type link struct {
	options Options
	folder  folder
	logf    func(string, ...any)
	changed func() // another warden is there

	mu      sync.Mutex
	pipe    *os.File
	process *proc.Process
	last    order
	ended   bool
}

func startWarden(o Options, f folder, logf func(string, ...any), changed func()) *link {
	l := &link{options: o, folder: f, logf: logf, changed: changed, last: order{Layout: f.layout}}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.start()
	return l
}

// start starts a warden and tells it what the one before knew. The caller holds mu. An engine without a warden is
// still ended by its parent-death signal, or by the next localllm.
func (l *link) start() {
	command := l.options.Warden
	if command == nil {
		exe, err := ownProgram()
		if err != nil {
			l.logf("starting the warden: %v", err)
			return
		}
		command = []string{exe, "keeper", "--warden"}
	}
	r, w, err := os.Pipe()
	if err != nil {
		l.logf("starting the warden: %v", err)
		return
	}
	p, err := proc.Start(proc.Command{Path: command[0], Args: command[1:], Stdin: r, Session: true, Dir: "/"})
	_ = r.Close()
	if err != nil {
		_ = w.Close()
		l.logf("%v", err)
		return
	}
	l.pipe, l.process = w, p
	l.send(l.last)
	go func() { // ends with the warden
		<-p.Done()
		l.replace(p)
	}()
}

const wardenPause = time.Second // so that one that can't live is not started in a busy loop

func (l *link) replace(dead *proc.Process) {
	l.mu.Lock()
	ended := l.ended || l.process != dead
	l.mu.Unlock()
	if ended {
		return
	}
	l.logf("the warden %d ended, starting another", dead.PID())
	time.Sleep(wardenPause)
	l.mu.Lock()
	if !l.ended {
		_ = l.pipe.Close()
		l.start()
	}
	l.mu.Unlock()
	l.changed()
}

func (l *link) send(o order) {
	data, err := json.Marshal(o)
	if err == nil && l.pipe != nil {
		_, err = l.pipe.Write(append(data, '\n'))
	}
	if err != nil {
		l.logf("telling the warden: %v", err)
	}
}

// tell gives the warden what to end after us.
func (l *link) tell(r record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last.Record = &r
	l.send(l.last)
}

func (l *link) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last.Record = nil
	l.send(l.last)
}

func (l *link) identity() proc.Identity {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.process == nil {
		return proc.Identity{}
	}
	return l.process.Identity()
}

// bye lets the warden go without ending anything, and waits for it until ctx ends.
func (l *link) bye(ctx context.Context) {
	l.mu.Lock()
	l.ended = true
	p := l.process
	if p != nil {
		l.send(order{Layout: l.folder.layout, Bye: true})
		_ = l.pipe.Close()
	}
	l.mu.Unlock()
	if p == nil {
		return
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		p.Kill()
	}
}
