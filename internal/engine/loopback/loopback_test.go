package loopback

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestNothingLeavesTheMachine(t *testing.T) {
	for _, address := range []string{"http://192.0.2.1:9/x", "http://[2001:db8::1]:9/", "http://0.0.0.0:9/"} {
		client := Client()
		client.Timeout = 2 * time.Second
		err := JSON(t.Context(), client, address, "secret", map[string]int{}, nil)
		if !errors.Is(err, ErrElsewhere) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestNoProxyAndNoRedirect(t *testing.T) {
	var asked atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer proxy.Close()
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	t.Setenv("NO_PROXY", "")
	var followed atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Add(1) }))
	defer other.Close()
	leads := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer leads.Close()
	client := Client()
	defer client.CloseIdleConnections()
	err := JSON(t.Context(), client, leads.URL, "key", map[string]int{}, nil)
	var refusal *Error
	if !errors.As(err, &refusal) || refusal.Status != http.StatusTemporaryRedirect {
		t.Errorf("a redirect: %v", err)
	}
	if asked.Load() != 0 || followed.Load() != 0 {
		t.Errorf("the proxy was asked %d times, the redirect followed %d times", asked.Load(), followed.Load())
	}
}

func TestHere(t *testing.T) {
	for host, want := range map[string]bool{"localhost": true, "LOCALHOST": true, "127.0.0.1": true, "127.8.9.1": true, "::1": true, "0.0.0.0": false, "10.0.0.1": false, "localhost.evil.example": false, "": false} {
		if Here(host) != want {
			t.Errorf("Here(%q) = %v", host, !want)
		}
	}
}

func TestRefusals(t *testing.T) {
	for body, want := range map[string]struct {
		message string
		tokens  int
		long    bool
	}{
		`{"error":{"code":400,"message":"request (9024 tokens) exceeds the available context size (2048 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9024,"n_ctx":2048}}`: {"request (9024 tokens)", 9024, true},
		`{"error":"{\"error\":{\"code\":400,\"message\":\"request (9024 tokens) exceeds\",\"type\":\"exceed_context_size_error\",\"n_prompt_tokens\":9024,\"n_ctx\":4096}}"}`:                                 {"request (9024 tokens)", 9024, true},
		`{"error":"the prompt is longer than the context length currently available to the model"}`:                                                                                                           {"the prompt is longer", 0, true},
		`{"error":"model 'x' not found"}`: {"model 'x' not found", 0, false},
		`{"error":"{broken"}`:             {"{broken", 0, false},
		"<html>bad gateway</html>\nmore":  {"<html>bad gateway</html>", 0, false},
		`{"detail":"something"}`:          {`{"detail":"something"}`, 0, false},
		"":                                {"", 0, false},
	} {
		e := Refusal(400, []byte(body))
		if !strings.HasPrefix(e.Message, want.message) || e.PromptTokens != want.tokens || errors.Is(e, ErrPromptTooLong) != want.long || e.Error() == "" {
			t.Errorf("%s: %+v", body, e)
		}
	}
}

func TestJSONSendsTheKey(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, `{"key":"`+r.Header.Get("Authorization")+`","method":"`+r.Method+`","length":`+string(rune('0'+len(body)))+`}`)
	}))
	defer s.Close()
	client := Client()
	defer client.CloseIdleConnections()
	var got struct {
		Key, Method string
		Length      int
	}
	if err := JSON(t.Context(), client, s.URL, "k", map[string]int{}, &got); err != nil || got.Key != "Bearer k" || got.Method != "POST" || got.Length != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := JSON(t.Context(), client, s.URL, "", nil, &got); err != nil || got.Key != "" || got.Method != "GET" {
		t.Errorf("%+v, %v", got, err)
	}
	s.Close()
	if err := JSON(t.Context(), client, s.URL, "", nil, nil); err == nil {
		t.Error("a server that is gone answers")
	}
}

func FuzzRefusal(f *testing.F) {
	f.Add([]byte(`{"error":{"message":"m","type":"t"}}`))
	f.Add([]byte(`{"error":"{\"error\":\"{\\\"error\\\":1}\"}"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if Refusal(500, body).Error() == "" {
			t.Error("no words")
		}
	})
}
