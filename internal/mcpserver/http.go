package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/server"

	"localllm/internal/hint"
	"localllm/internal/request"
)

// HTTP serves http://ADDR/mcp until ctx ends or a signal comes. addr has to be a loopback address; ready is called
// with the URL once connections are taken.
func HTTP(ctx context.Context, cfg Config, addr string, ready func(url string)) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil || !loopback(host) {
		return hint.Add(&request.Error{Field: "http", Reason: fmt.Sprintf("http takes a loopback address with a port, not %q", addr)}, "take 127.0.0.1:PORT; port 0 chooses one")
	}
	logTo(os.Stderr)
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("listening on %s: %w", addr, err)
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", sameMachine(server.NewStreamableHTTPServer(newService(cfg, nil).mcp, server.WithHeartbeatInterval(25*time.Second))))
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.Default(),
		BaseContext: func(net.Listener) context.Context { return ctx }}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	if ready != nil {
		ready("http://" + l.Addr().String() + "/mcp")
	}
	select {
	case err = <-served:
	case <-ctx.Done():
	}
	if cfg.Leaving != nil {
		cfg.Leaving()
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	if srv.Shutdown(last) != nil {
		_ = srv.Close()
	}
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving HTTP: %w", err)
	}
	return nil
}

// sameMachine refuses what a web page could send: a foreign origin, or a name that was rebound to this machine.
func sameMachine(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		if !loopback(host) {
			http.Error(w, "the Host header does not name this machine's loopback", http.StatusForbidden)
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" {
			u, err := url.Parse(origin)
			if err != nil || !loopback(u.Hostname()) {
				http.Error(w, "this origin may not use the local model", http.StatusForbidden)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && ip.IsLoopback()
}
