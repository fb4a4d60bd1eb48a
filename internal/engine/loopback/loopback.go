// Package loopback is the HTTP client for engines on this machine. It never leaves the machine, never follows a
// redirect and never uses a proxy, whatever the environment says.
package loopback

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// ErrElsewhere means that an address is not on this machine.
var ErrElsewhere = errors.New("the address is not on this machine")

// Client is a new client with connections of its own. Its user closes the idle ones when done.
func Client() *http.Client {
	dialer := &net.Dialer{Timeout: 5 * time.Second, Control: onlyLoopback}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:               nil,
			DialContext:         dialer.DialContext,
			MaxIdleConnsPerHost: 16,
			IdleConnTimeout:     2 * time.Second, // llama-server hangs up on idle connections after 5 s
			DisableCompression:  true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// onlyLoopback sees the address after the name was resolved, so that no name can lead away.
func onlyLoopback(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	host, _, _ = strings.Cut(host, "%")
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("dialing %s: %w", address, ErrElsewhere)
	}
	return nil
}

// Here reports whether host names this machine's loopback.
func Here(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// Error is an engine's refusal. PromptTokens and Context are set where a prompt was too long and the engine said
// how much.
type Error struct {
	Status       int
	Type         string
	Message      string
	PromptTokens int
	Context      int
}

func (e *Error) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("the engine answered with HTTP status %d", e.Status)
	}
	return fmt.Sprintf("the engine answered: %s (HTTP status %d)", e.Message, e.Status)
}

// ErrPromptTooLong is what an *Error unwraps to when the prompt does not fit the context.
var ErrPromptTooLong = errors.New("the prompt does not fit the context")

// Unwrap makes errors.Is(err, ErrPromptTooLong) work.
func (e *Error) Unwrap() error {
	text := strings.ToLower(e.Message)
	if e.Type == "exceed_context_size_error" || strings.Contains(text, "context size") || strings.Contains(text, "context length") {
		return ErrPromptTooLong
	}
	return nil
}

// Request makes a POST with a JSON body, or a GET for a nil body. key may be empty.
func Request(ctx context.Context, address, key string, body any) (*http.Request, error) {
	method, payload := http.MethodGet, io.Reader(nil)
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encoding the request: %w", err)
		}
		method, payload = http.MethodPost, bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, payload)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
		// Not sent, but net/http then asks again where an idle connection turns out to be closed: every request of
		// ours may be made twice.
		req.Header["X-Idempotency-Key"] = nil
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	return req, nil
}

// Do sends req and returns the response if it is a success; else an *Error. The caller closes the body.
func Do(client *http.Client, req *http.Request) (*http.Response, error) {
	resp, err := client.Do(req)
	if cutOff(err) && req.GetBody != nil && req.Context().Err() == nil {
		body, berr := req.GetBody()
		if berr != nil {
			return nil, berr
		}
		client.CloseIdleConnections()
		req = req.Clone(req.Context())
		req.Body = body
		resp, err = client.Do(req)
	}
	if err != nil {
		// The address is ours and says nothing to the user; the cause underneath does.
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return nil, err
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	return nil, Refusal(resp.StatusCode, text)
}

// cutOff reports whether a request did not go out whole: the engine hung up on the idle connection that it went out on.
// net/http asks again only where none of it had gone out.
func cutOff(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "write" || op.Op == "readfrom")
}

// Refusal reads an error body of llama-server's, OpenAI's or Ollama's shape.
func Refusal(status int, body []byte) *Error {
	e := &Error{Status: status}
	var outer struct {
		Error json.RawMessage `json:"error"`
	}
	var inner struct {
		Message      string `json:"message"`
		Type         string `json:"type"`
		PromptTokens int    `json:"n_prompt_tokens"`
		Context      int    `json:"n_ctx"`
	}
	switch {
	case json.Unmarshal(body, &outer) != nil || len(outer.Error) == 0:
		e.Message = firstLine(string(body))
	case json.Unmarshal(outer.Error, &e.Message) == nil:
		// Ollama hands on its runner's error as text.
		if strings.HasPrefix(e.Message, "{") {
			if nested := Refusal(status, []byte(e.Message)); nested.Type != "" {
				return nested
			}
		}
	case json.Unmarshal(outer.Error, &inner) == nil:
		e.Message, e.Type, e.PromptTokens, e.Context = inner.Message, inner.Type, inner.PromptTokens, inner.Context
	}
	return e
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s[:min(len(s), 300)]
}

// JSON sends body (nil: GET) and decodes the answer into out, unless out is nil.
func JSON(ctx context.Context, client *http.Client, address, key string, body, out any) error {
	req, err := Request(ctx, address, key, body)
	if err != nil {
		return err
	}
	resp, err := Do(client, req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("reading the engine's answer: %w", err)
	}
	return nil
}
