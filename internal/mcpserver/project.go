package mcpserver

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// Folder is the project that a call is about, and who said so.
type Folder struct {
	Dir  string
	From string // "CLAUDE_PROJECT_DIR", "the client's roots", "the working folder"
}

type projectKey struct{}

// Project is the folder that a call is about: CLAUDE_PROJECT_DIR, else the client's first root, else the working
// folder. Outside a call it is the working folder.
func Project(ctx context.Context) Folder {
	if f, ok := ctx.Value(projectKey{}).(Folder); ok {
		return f
	}
	return workingFolder()
}

func workingFolder() Folder {
	dir, err := os.Getwd()
	if err != nil {
		dir = "."
	}
	return Folder{dir, "the working folder"}
}

// rootsPatience is how long a client may take to name its roots.
const rootsPatience = 2 * time.Second

// projectFinder asks the client once, at the first call, and again when the roots have changed.
type projectFinder struct {
	mu    sync.Mutex
	known *Folder
}

func (p *projectFinder) forget() {
	// In a goroutine of its own: the lock may be held by a call that waits for the client's answer, which the
	// goroutine that delivers this notification has to read. It ends at the latest after rootsPatience.
	go func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.known = nil
	}()
}

func (p *projectFinder) into(ctx context.Context, s *server.MCPServer) context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		f := find(ctx, s)
		if ctx.Err() != nil {
			return context.WithValue(ctx, projectKey{}, f)
		}
		p.known = &f
	}
	return context.WithValue(ctx, projectKey{}, *p.known)
}

func find(ctx context.Context, s *server.MCPServer) Folder {
	if dir := os.Getenv("CLAUDE_PROJECT_DIR"); isDir(dir) {
		return Folder{dir, "CLAUDE_PROJECT_DIR"}
	}
	session, ok := server.ClientSessionFromContext(ctx).(server.SessionWithClientInfo)
	if !ok || session.GetClientCapabilities().Roots == nil {
		return workingFolder()
	}
	ctx, cancel := context.WithTimeout(ctx, rootsPatience)
	defer cancel()
	roots, err := s.RequestRoots(ctx, mcp.ListRootsRequest{})
	if err != nil {
		return workingFolder()
	}
	for _, root := range roots.Roots {
		u, err := url.Parse(root.URI)
		if err == nil && u.Scheme == "file" && isDir(filepath.FromSlash(u.Path)) {
			return Folder{filepath.FromSlash(u.Path), "the client's roots"}
		}
	}
	return workingFolder()
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return path != "" && err == nil && info.IsDir()
}
