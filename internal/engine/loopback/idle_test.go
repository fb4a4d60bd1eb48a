package loopback

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// An engine hangs up on an idle connection while the next request goes out on it: net/http makes such a request again
// only where nothing of it was written, or the end was read before the writing failed.
func TestRequestCutOffByAnEngineThatHangsUp(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				r := bufio.NewReader(conn)
				for answered := 0; ; answered++ {
					req, err := http.ReadRequest(r)
					if err != nil || answered == 1 {
						return // in the middle of the body
					}
					_, _ = io.Copy(io.Discard, req.Body)
					_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"))
				}
			}()
		}
	}()
	client := Client()
	defer client.CloseIdleConnections()
	large := strings.Repeat("a prompt ", 1<<19)
	for i := range 60 {
		if err := JSON(t.Context(), client, "http://"+listener.Addr().String()+"/x", "", large, nil); err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
	}
}

// An engine hangs up on an idle connection just as the next request goes out on it.
func TestRequestOnAConnectionThatWasJustClosed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for n := 0; ; n++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			r := bufio.NewReader(conn)
			for answered := 0; ; answered++ {
				req, err := http.ReadRequest(r)
				if err != nil || n == 0 && answered == 1 {
					break // the first connection dies of its second request
				}
				if len(req.Header.Values("X-Idempotency-Key")) > 0 {
					t.Error("the mark for net/http was sent")
				}
				_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"))
			}
			_ = conn.Close()
		}
	}()
	client := Client()
	defer client.CloseIdleConnections()
	for i := range 2 {
		var out struct{}
		if err := JSON(t.Context(), client, "http://"+listener.Addr().String()+"/x", "", map[string]int{"n": i}, &out); err != nil {
			t.Errorf("request %d: %v", i, err)
		}
	}
}
