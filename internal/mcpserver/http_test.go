package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"localllm/internal/hint"
)

// serveHTTP runs a server until the test ends and checks that it goes.
func serveHTTP(t *testing.T) (url string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan string, 1), make(chan error, 1)
	left := 0
	go func() {
		ended <- HTTP(ctx, Config{Version: "test", Actions: &double{}, Leaving: func() { left++ }}, "127.0.0.1:0", func(u string) { ready <- u })
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil || left != 1 {
				t.Errorf("ended with %v, left %d times", err, left)
			}
		case <-time.After(20 * time.Second):
			t.Error("the server is still there")
		}
	})
	select {
	case url = <-ready:
	case err := <-ended:
		ended <- err
		t.Fatal(err)
	}
	return url
}

func post(t *testing.T, url, body string, header ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

const initLine = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

func TestHTTPRefusesWhatAWebPageCouldSend(t *testing.T) {
	url := serveHTTP(t)
	for _, r := range []struct {
		header []string
		want   int
	}{
		{nil, 200},
		{[]string{"Origin", "http://localhost:3000"}, 200},
		{[]string{"Origin", "http://[::1]:3000"}, 200},
		{[]string{"Host", "localhost:1"}, 200},
		{[]string{"Origin", "https://evil.example"}, 403},
		{[]string{"Origin", "http://localhost.evil.example"}, 403},
		{[]string{"Origin", "null"}, 403},
		{[]string{"Host", "evil.example"}, 403},
		{[]string{"Host", "127.0.0.1.evil.example:80"}, 403},
	} {
		if got := post(t, url, initLine, r.header...).StatusCode; got != r.want {
			t.Errorf("%v: %d, want %d", r.header, got, r.want)
		}
	}
}

func TestHTTPListensOnLoopbackOnly(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":8080", "192.168.1.1:1", "example.com:80", "8080", "127.0.0.1"} {
		err := HTTP(t.Context(), Config{Actions: &double{}}, addr, nil)
		if err == nil || !strings.Contains(err.Error(), "loopback") || len(hint.Of(err)) == 0 {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

func TestHTTPCallWithProgress(t *testing.T) {
	url := serveHTTP(t)
	resp := post(t, url, initLine)
	session := resp.Header.Get("Mcp-Session-Id")
	_, _ = io.Copy(io.Discard, resp.Body)
	post(t, url, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", session)
	resp = post(t, url, taskLine(2, true, "busy"), "Mcp-Session-Id", session)
	var got []message
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var m message
				if err := json.Unmarshal([]byte(data), &m); err != nil {
					t.Fatal(err)
				}
				got = append(got, m)
			}
		}
	}
	if len(got) < 3 {
		t.Fatalf("%d messages, %s", len(got), resp.Header.Get("Content-Type"))
	}
	for i, m := range got {
		if last := i == len(got)-1; (m.Method == "") != last {
			t.Errorf("message %d of %d: %+v", i, len(got), m)
		}
	}
}

func TestProgressIsAssumedOutsideACall(t *testing.T) {
	if !HasProgress(t.Context()) || HasProgress(context.WithValue(t.Context(), progressKey{}, false)) {
		t.Error("only a call without a token has no progress")
	}
	if f := Project(t.Context()); f.From != "the working folder" || f.Dir == "" {
		t.Errorf("%+v", f)
	}
}
