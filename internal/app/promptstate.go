package app

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"localllm/delegate"
	"localllm/internal/atomicfile"
	"localllm/internal/paths"
	"localllm/internal/session"
	"localllm/internal/slots"
)

// promptState keeps what a session's slot was sent, so that the next prompt begins with the same bytes. It is a
// cache: losing it costs prefill, never correctness. It holds file bodies, and is for this user alone.
type promptState struct{ dir, key string }

const (
	promptStateVersion = 1
	promptStateKeep    = 3 * 24 * time.Hour
)

type promptStateFile struct {
	Version int              `json:"version"`
	Session delegate.Session `json:"session"`
}

func (a *App) promptState(b session.Binding, project, endpoint string) promptState {
	who := b.Session
	if who == "" {
		who = fmt.Sprintf("%d-%d", b.Client.PID, b.Client.Start)
	}
	sum := sha256.Sum256([]byte(who + "\x00" + project + "\x00" + endpoint))
	return promptState{filepath.Join(a.layout.State, "sessions"), hex.EncodeToString(sum[:10])}
}

// Load is the slot's session, the zero one where nothing is known. Whoever holds the slot's lock may call it.
func (s promptState) Load(slot int) delegate.Session {
	var f promptStateFile
	if err := atomicfile.ReadJSON(s.path(slot), &f); err != nil || f.Version != promptStateVersion {
		return delegate.Session{}
	}
	return f.Session
}

// Store keeps what a slot was sent. It may fail without a word: then the next prompt is read anew.
func (s promptState) Store(slot int, now delegate.Session) {
	if paths.Private(s.dir) == nil {
		_ = atomicfile.WriteJSON(s.path(slot), promptStateFile{promptStateVersion, now})
	}
}

func (s promptState) path(slot int) string {
	return filepath.Join(s.dir, s.key+"-"+strconv.Itoa(max(slot, 0))+".json")
}

// preferred is the slot that this session used last, 0 where it is new.
func (s promptState) preferred() int {
	best, newest := 0, time.Time{}
	matches, _ := filepath.Glob(filepath.Join(s.dir, s.key+"-*.json"))
	for _, m := range matches {
		info, err := os.Stat(m)
		if err != nil || !info.ModTime().After(newest) {
			continue
		}
		base := filepath.Base(m)
		if n, err := strconv.Atoi(base[len(s.key)+1 : len(base)-len(".json")]); err == nil {
			best, newest = n, info.ModTime()
		}
	}
	return best
}

// cleanPromptStates removes what no session will ask for again, and the places of engines that are gone.
func (a *App) cleanPromptStates() {
	slots.Clean(a.layout, promptStateKeep)
	removeOlder(filepath.Join(a.layout.State, "sessions"), promptStateKeep)
}

// removeOlder removes the files of a folder that nobody has written for so long.
func removeOlder(dir string, than time.Duration) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > than {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
