package keeper

import (
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"localllm/internal/filelock"
	"localllm/internal/proc"
	"localllm/lifecycle"
)

// watcher wakes the keeper when the folder or a lease changes. Nothing in it polls where the system can tell: locks
// are waited for by a blocked thread each, processes by a pidfd, files by inotify.
type watcher struct {
	wake chan<- struct{}
	fs   *fsnotify.Watcher
	stop chan struct{}
	wg   sync.WaitGroup

	mu      sync.Mutex
	waiting map[string]bool // what a goroutine waits for
}

// Without notifications, as when all of the user's inotify instances are taken, the folder is looked at this often.
const lookWithoutNotice = time.Second

func newWatcher(f folder, wake chan<- struct{}) *watcher {
	w := &watcher{wake: wake, stop: make(chan struct{}), waiting: map[string]bool{}}
	fs, err := fsnotify.NewWatcher()
	if err == nil {
		if err = fs.Add(f.layout.Run); err == nil {
			err = fs.Add(f.leases())
		}
		if err != nil {
			_ = fs.Close()
		}
	}
	if err != nil || networkSystem(f.layout.Run) != "" {
		w.wg.Go(w.tick)
	}
	if err == nil {
		w.fs = fs
		w.wg.Go(w.follow)
	}
	return w
}

// tick ends with close.
func (w *watcher) tick() {
	t := time.NewTicker(lookWithoutNotice)
	defer t.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-t.C:
			w.poke()
		}
	}
}

// follow ends with close. A lost event (queue overflow) comes as an error: then everything is looked at.
func (w *watcher) follow() {
	for {
		select {
		case ev, ok := <-w.fs.Events:
			if !ok {
				return
			}
			if relevant(ev.Name) {
				w.poke()
			}
		case _, ok := <-w.fs.Errors:
			if !ok {
				return
			}
			w.poke()
		}
	}
}

// relevant leaves out what the keeper writes itself, and what is not finished yet.
func relevant(path string) bool {
	name := filepath.Base(path)
	return name == "wanted.json" || !strings.HasPrefix(name, ".") && filepath.Base(filepath.Dir(path)) == "leases"
}

func (w *watcher) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// lease watches what keeps a lease alive, once: its lock while that is held, else its client.
func (w *watcher) lease(f folder, o lifecycle.Observed) {
	if o.Locked {
		path := f.leasePath(o.ID)
		w.once("lock "+o.ID, func() { _ = filelock.Wait(path) })
		return
	}
	client := identity(o.Client)
	w.once("client "+o.ID, func() { _ = proc.AwaitExit(client) })
}

// once runs wait, unless it runs already, and wakes the keeper after it. The goroutine ends when the lock is let go
// of or the process ends, at the latest with the keeper's own process.
func (w *watcher) once(key string, wait func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting[key] {
		return
	}
	w.waiting[key] = true
	go func() {
		begin := time.Now()
		wait()
		if time.Since(begin) < time.Millisecond {
			time.Sleep(time.Millisecond) // a wait that fails at once must not become a busy loop
		}
		w.mu.Lock()
		delete(w.waiting, key)
		w.mu.Unlock()
		w.poke()
	}()
}

func (w *watcher) close() {
	close(w.stop)
	if w.fs != nil {
		_ = w.fs.Close()
	}
	w.wg.Wait()
}
