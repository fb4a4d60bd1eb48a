// Package remote is the way to an endpoint that somebody else runs: one HTTP client a profile, whose key goes to the
// profile's own address and nowhere else, and which gives up on servers that stall. It never follows a redirect,
// never dials a link-local address, and does not know what it carries.
package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Endpoint is a profile as the transport needs it, its key read.
type Endpoint struct {
	Profile   string
	BaseURL   string
	Model     string
	Key       string // empty: none
	Headers   map[string]string
	ExtraBody map[string]any // merged into each request

	Slots     int
	Context   int // 0: unknown
	MaxTokens int // of one answer; 0: no limit of its own
	Loopback  bool

	// WholeAnswers: the server can't stream.
	WholeAnswers bool

	// Idle ends a stream without a whole event for so long, First one without its first; Total ends any request.
	// Zero stands for the defaults; First without a value is Idle where that has one.
	Idle, First, Total time.Duration
	// Backoff is the wait before the second try; it doubles from there. Zero stands for the default.
	Backoff time.Duration
}

// The limits where a profile names none. The first event may take as long as a slow machine reads a long prompt.
const (
	defaultIdle    = 2 * time.Minute
	defaultFirst   = 10 * time.Minute
	defaultTotal   = 30 * time.Minute
	defaultBackoff = time.Second
	tries          = 4
)

// maxAnswer bounds an answer that comes in one piece, in bytes.
const maxAnswer = 8 << 20

// Client talks to one endpoint. Its methods may be called from many goroutines.
type Client struct {
	Endpoint
	base *url.URL
	http *http.Client
	auth func(http.Header, string)

	bytesSeen, tokensSeen atomic.Int64

	mu      sync.Mutex
	givenUp []string // what this server will not have
}

// Bearer puts the key where OpenAI's format has it.
func Bearer(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) }

// Open makes a client; auth puts the key into a request's headers. It asks the server nothing.
func Open(e Endpoint, auth func(http.Header, string)) (*Client, error) {
	base, err := Base(e.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("profile %s: %w", e.Profile, err)
	}
	e.Key = strings.TrimSpace(e.Key)
	if strings.ContainsFunc(e.Key, func(r rune) bool { return r < ' ' || r > '~' }) {
		return nil, fmt.Errorf("profile %s: the key holds characters that no key has", e.Profile)
	}
	if e.First == 0 {
		e.First = or(e.Idle, defaultFirst)
	}
	e.Idle, e.Total, e.Backoff = or(e.Idle, defaultIdle), or(e.Total, defaultTotal), or(e.Backoff, defaultBackoff)
	c := &Client{Endpoint: e, base: base, auth: auth}
	c.http = &http.Client{
		Transport:     &keyed{client: c, next: transport(base)},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

func or(d, fallback time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return fallback
}

// Close lets go of idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

var version = regexp.MustCompile(`(^|/)v\d+[a-z0-9]*(/|$)`)

// Base is the address that an API's paths are appended to. People write it with and without the version, and with
// the whole path of one call.
func Base(address string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.User != nil {
		return nil, errors.New("its base_url is no address like http(s)://host[:port][/path]")
	}
	path := strings.TrimRight(u.Path, "/")
	for _, end := range []string{"/chat/completions", "/messages", "/models"} {
		path = strings.TrimSuffix(path, end)
	}
	if !version.MatchString(path) {
		path += "/v1"
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: path}, nil
}

// Root is the server's address without the API's version, for a server's own routes.
func (c *Client) Root() string {
	u := *c.base
	u.Path = version.Split(u.Path, 2)[0]
	return strings.TrimRight(u.String(), "/")
}

// address is that of a route: under the base, or under the root where it begins with "//".
func (c *Client) address(route string) string {
	if rest, ok := strings.CutPrefix(route, "//"); ok {
		return c.Root() + "/" + rest
	}
	return c.base.String() + route
}

// Host is whose answers these are, for messages.
func (c *Client) Host() string { return c.base.Host }

// send makes one request and returns its response if it is a success.
func (c *Client) send(ctx context.Context, route string, body any) (*http.Response, error) {
	method, payload := http.MethodGet, io.Reader(nil)
	if body != nil {
		data, err := c.encode(body)
		if err != nil {
			return nil, fmt.Errorf("encoding the request: %w", err)
		}
		method, payload = http.MethodPost, bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.address(route), payload)
	if err != nil {
		return nil, err
	}
	for name, value := range c.Headers {
		req.Header.Set(name, value)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", "localllm")
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.failure(err)
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, c.refusal(resp)
}

func (c *Client) encode(body any) ([]byte, error) {
	data, err := json.Marshal(body)
	if err != nil || len(c.ExtraBody) == 0 {
		return data, err
	}
	whole := map[string]any{}
	if err := json.Unmarshal(data, &whole); err != nil {
		return data, nil // not an object: a route that takes no extras
	}
	for k, v := range c.ExtraBody {
		whole[k] = v
	}
	return json.Marshal(whole)
}

// Get asks for route and decodes the answer into out. It is tried once.
func (c *Client) Get(ctx context.Context, route string, out any) error {
	return c.whole(ctx, route, nil, out)
}

// Post sends body to route and decodes the answer into out. It is tried once.
func (c *Client) Post(ctx context.Context, route string, body, out any) error {
	return c.whole(ctx, route, body, out)
}

func (c *Client) whole(ctx context.Context, route string, body, out any) error {
	resp, err := c.send(ctx, route, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return c.decode(resp, out)
}

// body reads an answer that comes in one piece.
func (c *Client) body(resp *http.Response) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(data) > maxAnswer {
		return nil, &Error{Profile: c.Profile, Kind: Broken, Message: fmt.Sprintf("the answer is longer than %d MiB", maxAnswer>>20)}
	}
	return data, err
}

func (c *Client) decode(resp *http.Response, out any) error {
	if kind := mediaType(resp); kind != "application/json" {
		return c.wrongType(resp)
	}
	data, err := c.body(resp)
	if err != nil {
		return c.failure(err)
	}
	if err := json.Unmarshal(data, out); err != nil {
		return &Error{Profile: c.Profile, Kind: Broken, Message: "the answer is no valid JSON", cause: err}
	}
	return nil
}

func mediaType(resp *http.Response) string {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return kind
}

func (c *Client) wrongType(resp *http.Response) error {
	start, _ := io.ReadAll(io.LimitReader(resp.Body, 512))
	kind := resp.Header.Get("Content-Type")
	if kind == "" {
		kind = "no type"
	}
	return &Error{Profile: c.Profile, Kind: Broken, Status: resp.StatusCode,
		Message: c.Scrub(fmt.Sprintf("it answered with %s instead of JSON: %s", kind, firstLine(string(start))))}
}

// Scrub takes the key out of text that came from the server: some servers put it into their errors.
func (c *Client) Scrub(text string) string {
	if len(c.Key) < 4 {
		return text
	}
	return strings.ReplaceAll(text, c.Key, "[the key]")
}
