package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"localllm/internal/engine/loopback"
)

var (
	errElsewhere = errors.New("nothing is sent to another address than the profile's")
	errAddress   = errors.New("link-local, multicast and metadata addresses are refused")
)

// Kind is what sort of failure it was; callers and users can do different things about each.
type Kind string

// The kinds of failure.
const (
	Unreachable Kind = "unreachable" // no connection, or it broke before the answer began
	Denied      Kind = "key refused" // 401, 403
	Limited     Kind = "rate limit"  // 429
	Overloaded  Kind = "overloaded"  // 5xx, 529
	Rejected    Kind = "rejected"    // another 4xx: asking again won't help
	Redirected  Kind = "redirected"
	Stalled     Kind = "stalled" // it said nothing for too long, or took too long altogether
	Broken      Kind = "broken"  // an answer that can't be read, or that broke off
)

// Error is a failure of an endpoint. It never holds the key.
type Error struct {
	Profile    string
	Kind       Kind
	Status     int // of HTTP; 0: none came
	Type       string
	Message    string
	RetryAfter time.Duration // what the server asked for
	Tries      int
	cause      error
	passing    bool // a fault of the connection, not of what was sent over it
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "profile %s: %s", e.Profile, e.Kind)
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	if e.Status != 0 {
		fmt.Fprintf(&b, " (HTTP status %d)", e.Status)
	}
	if e.Tries > 1 {
		fmt.Fprintf(&b, ", after %d tries", e.Tries)
	}
	return b.String()
}

// Unwrap tells a prompt that is too long, in any backend's words, and the cause underneath.
func (e *Error) Unwrap() []error {
	var causes []error
	if e.cause != nil {
		causes = append(causes, e.cause)
	}
	text := strings.ToLower(e.Message)
	for _, words := range []string{"context size", "context length", "context window", "prompt is too long", "maximum context", "context_length_exceeded"} {
		if e.Type == "exceed_context_size_error" || strings.Contains(text, words) {
			return append(causes, loopback.ErrPromptTooLong)
		}
	}
	return causes
}

// Hints says what the user can do.
func (e *Error) Hints() []string {
	switch e.Kind {
	case Denied:
		return []string{"check the variable that the profile's api_key_env names, and whether the key may use this model"}
	case Unreachable:
		return []string{fmt.Sprintf("localllm profiles test %s says what answers there", e.Profile)}
	case Stalled:
		return []string{"idle_timeout and timeout of the profile say how long to wait"}
	case Redirected:
		return []string{"put the address that it leads to into base_url, if you trust it with the key"}
	}
	return nil
}

// again reports whether the same request may well succeed a moment later.
func (e *Error) again() bool {
	return e.Kind == Limited || e.Kind == Overloaded || e.Kind == Unreachable || e.passing
}

// failure makes an error of what the HTTP client said.
func (c *Client) failure(err error) error {
	if stalled := (*Error)(nil); errors.As(err, &stalled) {
		return stalled
	}
	// The address is ours and says nothing to the user; the cause underneath does.
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	e := &Error{Profile: c.Profile, Kind: Unreachable, Message: c.Scrub(c.Host() + ": " + reason(err)), cause: err}
	if errors.Is(err, errAddress) || errors.Is(err, errElsewhere) {
		e.Kind = Rejected
	}
	// On this machine nobody is about to begin listening.
	if c.Loopback && errors.Is(err, syscall.ECONNREFUSED) {
		e.Kind, e.Message = Rejected, "nothing listens at "+c.Host()
	}
	return e
}

func reason(err error) string {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return "its name can't be resolved"
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "it closed the connection"
	}
	return err.Error()
}

// refusal reads a response that is no success.
func (c *Client) refusal(resp *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	e := c.told(resp.StatusCode, text)
	if to, err := resp.Location(); err == nil && resp.StatusCode/100 == 3 {
		e.Kind, e.Message = Redirected, fmt.Sprintf("it leads to %s, and redirects are not followed", to.Host)
	}
	e.RetryAfter = retryAfter(resp.Header, time.Now())
	return e
}

// Told makes an error of an error's body, also of one inside a stream; status is 0 there.
func (c *Client) Told(body []byte) *Error { return c.told(0, body) }

func (c *Client) told(status int, body []byte) *Error {
	e := &Error{Profile: c.Profile, Status: status}
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	var inner struct {
		Message string          `json:"message"`
		Type    string          `json:"type"`
		Code    json.RawMessage `json:"code"`
	}
	switch {
	case json.Unmarshal(body, &outer) != nil:
		e.Message = firstLine(string(body))
	case json.Unmarshal(outer.Error, &inner) == nil && (inner.Message != "" || inner.Type != ""):
		e.Message, e.Type = inner.Message, inner.Type
		if n, err := strconv.Atoi(strings.Trim(string(inner.Code), `"`)); err == nil && status == 0 {
			e.Status = n
		}
	case json.Unmarshal(outer.Error, &e.Message) == nil && e.Message != "":
	case outer.Message != "":
		e.Message = outer.Message
	case len(outer.Detail) > 0:
		e.Message = string(outer.Detail)
	default:
		e.Message = string(body)
	}
	e.Message = firstLine(c.Scrub(e.Message))
	e.Kind = kindOf(e.Status, e.Type)
	return e
}

func kindOf(status int, kind string) Kind {
	switch kind {
	case "overloaded_error", "api_error", "timeout_error", "server_error":
		return Overloaded
	case "rate_limit_error":
		return Limited
	case "authentication_error", "permission_error":
		return Denied
	}
	switch {
	case status == 401 || status == 403:
		return Denied
	case status == 429:
		return Limited
	case status == 500 || status == 502 || status == 503 || status == 504 || status == 529:
		return Overloaded
	case status >= 300 && status < 400:
		return Redirected
	}
	return Rejected
}

// retryAfter is how long the server asks to wait, as seconds, milliseconds or a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms >= 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	text := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(text, 64); err == nil && s >= 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return strings.ToValidUTF8(s[:min(len(s), 400)], "")
}
