package survey

import (
	"io/fs"
	"path/filepath"
	"sync"

	"localllm/capability"
	"localllm/internal/atomicfile"
	"localllm/internal/paths"
)

// cacheVersion changes with the rules that turn a header into a shape: what was worked out by older ones is forgotten.
const cacheVersion = 3

// cache remembers what headers and programs said, by path, size and time.
type cache struct {
	mu      sync.Mutex
	changed bool
	path    string
	content cacheFile
}

type cacheFile struct {
	Version  int                     `json:"version"`
	Headers  map[string]cachedHeader `json:"headers"`
	Programs map[string]cachedText   `json:"programs"`
}

type stamp struct {
	Size     int64 `json:"size"`
	Modified int64 `json:"modified"` // nanoseconds since 1970
}

type cachedHeader struct {
	stamp
	headerFacts
}

type cachedText struct {
	stamp
	Text string `json:"text"`
}

func stampOf(info fs.FileInfo) stamp { return stamp{info.Size(), info.ModTime().UnixNano()} }

// openCache reads the cache. One that is missing or broken is an empty one.
func openCache(state string) *cache {
	c := &cache{path: filepath.Join(state, "headers.json")}
	if err := atomicfile.ReadJSON(c.path, &c.content); err != nil || c.content.Version != cacheVersion {
		c.content = cacheFile{}
	}
	if c.content.Headers == nil {
		c.content.Headers = map[string]cachedHeader{}
	}
	if c.content.Programs == nil {
		c.content.Programs = map[string]cachedText{}
	}
	c.content.Version = cacheVersion
	return c
}

func (c *cache) header(path string, info fs.FileInfo) (headerFacts, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, ok := c.content.Headers[path]
	return h.headerFacts, ok && h.stamp == stampOf(info)
}

func (c *cache) setHeader(path string, info fs.FileInfo, facts headerFacts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.content.Headers[path] = cachedHeader{stampOf(info), facts}
	c.changed = true
}

func (c *cache) version(path string, info fs.FileInfo) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.content.Programs[path]
	return v.Text, ok && v.stamp == stampOf(info)
}

func (c *cache) setVersion(path string, info fs.FileInfo, text string) {
	if text == "" {
		return // it may only have been slow
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.content.Programs[path] = cachedText{stampOf(info), text}
	c.changed = true
}

// mostRemembered keeps the file small; beyond it, everything is forgotten and read anew.
const mostRemembered = 5000

// save writes what is new. Two savers at once lose one's news, which is read again the next time.
func (c *cache) save() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.changed {
		return nil
	}
	if len(c.content.Headers) > mostRemembered {
		c.content.Headers = map[string]cachedHeader{}
	}
	if err := paths.Private(filepath.Dir(c.path)); err != nil {
		return err
	}
	return atomicfile.WriteJSON(c.path, c.content)
}

// headerFacts is what is kept of a header.
type headerFacts struct {
	Shape   capability.Shape `json:"shape"`
	Files   []string         `json:"files,omitempty"` // all shards
	Bytes   int64            `json:"bytes"`           // of all shards
	Unfit   string           `json:"unfit,omitempty"`
	Problem string           `json:"problem,omitempty"`
}
