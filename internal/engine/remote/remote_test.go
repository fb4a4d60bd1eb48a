package remote

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"localllm/internal/engine/loopback"
)

func TestBase(t *testing.T) {
	for address, want := range map[string]string{
		"http://localhost:8080":                         "http://localhost:8080/v1",
		"http://localhost:8080/":                        "http://localhost:8080/v1",
		"http://localhost:4000/v1/messages":             "http://localhost:4000/v1",
		"https://openrouter.ai/api/v1":                  "https://openrouter.ai/api/v1",
		"https://openrouter.ai/api/v1/chat/completions": "https://openrouter.ai/api/v1",
		"https://api.groq.com/openai/v1/":               "https://api.groq.com/openai/v1",
		"https://api.deepseek.com/anthropic":            "https://api.deepseek.com/anthropic/v1",
		"https://h.example/v1beta/openai":               "https://h.example/v1beta/openai",
		"https://h.example/api/paas/v4":                 "https://h.example/api/paas/v4",
		"https://h.example/v1?x=1":                      "https://h.example/v1",
	} {
		got, err := Base(address)
		if err != nil || got.String() != want {
			t.Errorf("%s: %v %v, want %s", address, got, err, want)
		}
	}
	for _, address := range []string{"", "localhost:80", "ftp://h", "http://", "http://me:secret@h/v1", "file:///etc/passwd"} {
		if got, err := Base(address); err == nil {
			t.Errorf("%q became %s", address, got)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%v", err)
		}
	}
}

// Whatever leads a request to another address, neither it nor the key gets there.
func TestTheKeyStaysAtItsAddress(t *testing.T) {
	c, err := Open(Endpoint{Profile: "p", BaseURL: "https://api.example.com/v1", Key: "sk-1234567890"}, Bearer)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"https://api.example.com.evil.test/v1", "http://api.example.com/v1", "https://api.example.com:8443/v1", "https://evil.test/v1"} {
		req, _ := http.NewRequest(http.MethodGet, other, nil)
		if _, err := c.http.Do(req); !errors.Is(err, errElsewhere) {
			t.Errorf("%s: %v", other, err)
		}
		if len(req.Header) != 0 {
			t.Errorf("%s: headers %v", other, req.Header)
		}
	}
}

func TestAddresses(t *testing.T) {
	for text, ok := range map[string]bool{
		"127.0.0.1": true, "::1": true, "10.0.0.5": true, "192.168.1.2": true, "100.64.0.9": true, "8.8.8.8": true, "fd12::1": true, "2001:db8::1": true,
		"169.254.169.254": false, "169.254.0.1": false, "::ffff:169.254.169.254": false, "fe80::1%eth0": false, "0.0.0.0": false, "::": false,
		"224.0.0.1": false, "ff02::1": false, "fd00:ec2::254": false, "100.100.100.200": false,
	} {
		if err := checkAddress(netip.MustParseAddr(text)); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAKeyThatIsNone(t *testing.T) {
	for _, key := range []string{"sk-a\nX-Other: b", "sk-ü", "sk-\x00"} {
		if _, err := Open(Endpoint{Profile: "p", BaseURL: "http://localhost", Key: key}, Bearer); err == nil || strings.Contains(err.Error(), "sk-") {
			t.Errorf("%q: %v", key, err)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"3": 3 * time.Second, "0.5": 500 * time.Millisecond, "": 0, "soon": 0, "-4": 0, "1e300": 0,
		"Fri, 02 Jan 2026 03:04:15 GMT": 10 * time.Second, "Fri, 02 Jan 2026 03:00:00 GMT": 0,
	} {
		if got := retryAfter(http.Header{"Retry-After": {text}}, now); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	if got := retryAfter(http.Header{"Retry-After-Ms": {"250"}, "Retry-After": {"9"}}, now); got != 250*time.Millisecond {
		t.Errorf("milliseconds: %s", got)
	}
}

// The wait grows, is never shorter than what the server asks for, and is not the same for all.
func TestWait(t *testing.T) {
	c := &Client{Endpoint: Endpoint{Backoff: time.Second}}
	seen := map[time.Duration]bool{}
	for range 50 {
		for n, base := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second} {
			w := c.wait(n, 0)
			if w < base/2 || w > base {
				t.Fatalf("try %d waits %s", n, w)
			}
			seen[w] = true
		}
		if w := c.wait(1, 10*time.Second); w < 10*time.Second || w > 13*time.Second {
			t.Fatalf("asked for 10 s, waits %s", w)
		}
	}
	if len(seen) < 20 {
		t.Errorf("only %d different waits of 150: no jitter", len(seen))
	}
}

func TestErrorBodies(t *testing.T) {
	c := &Client{Endpoint: Endpoint{Profile: "p", Key: "sk-secret-1"}}
	for body, want := range map[string]string{
		`{"error":{"message":"no such model","type":"x","code":"model_not_found"}}`: "no such model",
		`{"error":"model 'm' not found"}`:                                           "model 'm' not found",
		`{"message":"bad"}`:                                                         "bad", `{"detail":"Not Found"}`: `"Not Found"`, "plain\nmore": "plain", "": "",
		`{"error":{"message":"key sk-secret-1 is wrong"}}`: "key [the key] is wrong",
	} {
		if e := c.told(404, []byte(body)); e.Message != want || e.Kind != Rejected {
			t.Errorf("%s: %+v", body, e)
		}
	}
	if e := c.told(400, []byte(`{"error":{"message":"This model's maximum context length is 8192 tokens"}}`)); !errors.Is(e, loopback.ErrPromptTooLong) {
		t.Errorf("%v is not told as too long", e)
	}
	if e := c.told(400, []byte(`{"error":{"message":"temperature"}}`)); errors.Is(e, loopback.ErrPromptTooLong) {
		t.Errorf("%v is told as too long", e)
	}
}

func FuzzTold(f *testing.F) {
	f.Add([]byte(`{"error":{"message":"m","code":429}}`))
	f.Add([]byte(`{"error":null,"detail":[1]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		c := &Client{Endpoint: Endpoint{Key: "sk-secret-1"}}
		if e := c.Told(body); strings.Contains(e.Error(), "sk-secret-1") || strings.Contains(e.Message, "\n") {
			t.Errorf("%q", e.Error())
		}
	})
}
