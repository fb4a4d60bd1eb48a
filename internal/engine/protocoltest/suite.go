package protocoltest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"localllm/delegate"
	"localllm/internal/engine/remote"
)

// Key is the key that tests use; it must turn up nowhere but in requests to its own server.
const Key = "sk-protocol-test-0123456789"

// Format is a backend under test. Its testdata holds the recordings that the suite names, all with the same content.
type Format struct {
	Connect func(remote.Endpoint) (delegate.Completer, error)
	Event   string // an event that carries a piece of text, to be dribbled
	Error   string // an error in the stream that says overloaded
}

// Ask is a request as the tests send it.
var Ask = delegate.Request{
	Messages: []delegate.Message{{Role: delegate.System, Content: "Be brief."}, {Role: delegate.User, Content: "Say hello."}},
	Tools:    []delegate.Tool{{Name: "read_file", Description: "reads", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)}},
	Slot:     -1, MaxTokens: 500,
}

// Endpoint is one for a scripted server, with short limits.
func Endpoint(s *Server) remote.Endpoint {
	return remote.Endpoint{
		Profile: "test", BaseURL: s.URL, Model: "m-1", Key: Key, Loopback: true, Backoff: time.Millisecond,
		First: 20 * time.Second, Idle: 20 * time.Second, Total: time.Minute,
	}
}

func (f Format) open(t *testing.T, e remote.Endpoint) delegate.Completer {
	t.Helper()
	c, err := f.Connect(e)
	if err != nil {
		t.Fatal(err)
	}
	if closer, ok := c.(interface{ Close() }); ok {
		t.Cleanup(closer.Close)
	}
	return c
}

// Exchange asks a server that answers with a recording, and returns the answer and what was sent.
func (f Format) Exchange(t *testing.T, file string, r delegate.Request, change ...func(*remote.Endpoint)) (delegate.Completion, Seen) {
	t.Helper()
	s := Serve(t, File(t, file))
	e := Endpoint(s)
	for _, c := range change {
		c(&e)
	}
	out, err := f.open(t, e).Complete(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return out, s.Last(t)
}

// Run holds a backend to the suite.
func (f Format) Run(t *testing.T) {
	t.Run("answers", f.answers)
	t.Run("retries", f.retries)
	t.Run("refusals", f.refusals)
	t.Run("stalls", f.stalls)
	t.Run("broken", f.broken)
	t.Run("keys", f.keys)
	t.Run("cancelled", f.cancelled)
}

// want is what the recordings hold.
var want = map[string]delegate.Completion{
	"text": {Text: "Hello, world.", Finish: delegate.FinishStop, Tokens: delegate.Tokens{Prompt: 25, Cached: 10, Generated: 7}},
	"calls": {Text: "I read both.", Finish: delegate.FinishTools, Tokens: delegate.Tokens{Prompt: 40, Cached: 25, Generated: 30}, Calls: []delegate.ToolCall{
		{ID: "call_a", Name: "read_file", Arguments: `{"path":"a.go"}`}, {ID: "call_b", Name: "read_file", Arguments: `{"path":"b.go"}`}}},
	"thinking": {Text: "Done.", Finish: delegate.FinishStop, Tokens: delegate.Tokens{Prompt: 20, Generated: 12}},
	"cut":      {Text: "A long", Finish: delegate.FinishLength, Tokens: delegate.Tokens{Prompt: 20, Generated: 4}},
}

func (f Format) answers(t *testing.T) {
	for name, w := range want {
		for _, ending := range []string{".sse", ".json"} {
			t.Run(name+ending, func(t *testing.T) {
				s := Serve(t, File(t, name+ending))
				e := Endpoint(s)
				e.WholeAnswers = ending == ".json"
				got, err := f.open(t, e).Complete(context.Background(), Ask)
				if err != nil {
					t.Fatal(err)
				}
				equal(t, got, w)
				if (name == "thinking") != (len(got.Thinking) > 0) {
					t.Errorf("kept thinking: %s", got.Thinking)
				}
				if streams, _ := s.Last(t).Body["stream"].(bool); streams == e.WholeAnswers {
					t.Errorf("stream: %v was sent", streams)
				}
			})
		}
	}
	t.Run("one piece though a stream was asked for", func(t *testing.T) {
		got, err := f.open(t, Endpoint(Serve(t, File(t, "text.json")))).Complete(context.Background(), Ask)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, got, want["text"])
	})
	t.Run("progress", func(t *testing.T) {
		var phases []string
		r := Ask
		r.Progress = func(g delegate.Generating) {
			if n := len(phases); n == 0 || phases[n-1] != g.Phase {
				phases = append(phases, g.Phase)
			}
		}
		if _, err := f.open(t, Endpoint(Serve(t, File(t, "text.sse")))).Complete(context.Background(), r); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(phases, " "); got != "waiting generating" {
			t.Errorf("phases: %s", got)
		}
	})
}

func equal(t *testing.T, got, want delegate.Completion) {
	t.Helper()
	if got.Text != want.Text || got.Finish != want.Finish || got.Tokens != want.Tokens {
		t.Errorf("got text %q, finish %q, tokens %+v\nwant %q, %q, %+v", got.Text, got.Finish, got.Tokens, want.Text, want.Finish, want.Tokens)
	}
	if len(got.Calls) != len(want.Calls) {
		t.Fatalf("got %d calls: %+v", len(got.Calls), got.Calls)
	}
	for i := range want.Calls {
		if got.Calls[i] != want.Calls[i] {
			t.Errorf("call %d: %+v, want %+v", i, got.Calls[i], want.Calls[i])
		}
	}
}

func (f Format) retries(t *testing.T) {
	ok := File(t, "text.sse")
	for name, first := range map[string]Step{
		"429": Answer(429, "application/json", `{"error":{"message":"slow down","type":"rate_limit_error"}}`),
		"500": Answer(500, "text/plain", "oops"), "502": Answer(502, "text/html", "<html>bad gateway</html>"),
		"503": Answer(503, "application/json", `{"error":{"message":"Loading model"}}`), "504": Answer(504, "text/plain", ""),
		"529":                   Answer(529, "application/json", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`),
		"overloaded in stream":  Answer(200, "text/event-stream", f.Error),
		"dropped before output": Drop,
	} {
		t.Run(name, func(t *testing.T) {
			s := Serve(t, first, first, ok)
			got, err := f.open(t, Endpoint(s)).Complete(context.Background(), Ask)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, got, want["text"])
			if n := len(s.Requests()); n != 3 {
				t.Errorf("%d requests, want 3", n)
			}
		})
	}
	t.Run("Retry-After", func(t *testing.T) {
		s := Serve(t, Answer(429, "application/json", `{"error":{"message":"slow down"}}`, "Retry-After", "1"), ok)
		if _, err := f.open(t, Endpoint(s)).Complete(context.Background(), Ask); err != nil {
			t.Fatal(err)
		}
		all := s.Requests()
		if gap := all[1].At.Sub(all[0].At); gap < time.Second {
			t.Errorf("came back after %s, was told to wait 1 s", gap)
		}
	})
	t.Run("asks for too long", func(t *testing.T) {
		s := Serve(t, Answer(429, "application/json", `{"error":{"message":"quota"}}`, "Retry-After", "3600"), ok)
		_, err := f.open(t, Endpoint(s)).Complete(context.Background(), Ask)
		f.failed(t, err, remote.Limited)
		if n := len(s.Requests()); n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
	})
	t.Run("gives up", func(t *testing.T) {
		s := Serve(t, Answer(503, "text/plain", "busy"))
		_, err := f.open(t, Endpoint(s)).Complete(context.Background(), Ask)
		if e := f.failed(t, err, remote.Overloaded); e.Tries != 4 || len(s.Requests()) != 4 {
			t.Errorf("%d tries, %d requests, want 4", e.Tries, len(s.Requests()))
		}
	})
	t.Run("not after output", func(t *testing.T) {
		s := Serve(t, Then(t, "text.sse", 3, Drop))
		got, err := f.open(t, Endpoint(s)).Complete(context.Background(), Ask)
		f.failed(t, err, remote.Broken)
		if len(s.Requests()) != 1 || got.Text == "" {
			t.Errorf("%d requests, text %q: what was said must not be paid for twice", len(s.Requests()), got.Text)
		}
	})
}

func (f Format) failed(t *testing.T, err error, kind remote.Kind) *remote.Error {
	t.Helper()
	var e *remote.Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Fatalf("error %v, want %q", err, kind)
	}
	if strings.Contains(err.Error(), Key) {
		t.Errorf("the key is in the error: %v", err)
	}
	return e
}

func (f Format) refusals(t *testing.T) {
	for status, kind := range map[int]remote.Kind{400: remote.Rejected, 401: remote.Denied, 403: remote.Denied, 404: remote.Rejected, 413: remote.Rejected, 422: remote.Rejected} {
		s := Serve(t, Answer(status, "application/json", `{"error":{"message":"no: `+Key+`","type":"x"}}`))
		_, err := f.open(t, Endpoint(s)).Complete(context.Background(), Ask)
		if e := f.failed(t, err, kind); e.Status != status || !strings.Contains(e.Message, "no: ") {
			t.Errorf("%d: %+v", status, e)
		}
		if n := len(s.Requests()); n != 1 {
			t.Errorf("%d: %d requests, want 1: asking again can't help", status, n)
		}
	}
	t.Run("redirect", func(t *testing.T) {
		other := Serve(t, File(t, "text.sse"))
		elsewhere := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
		for _, status := range []int{301, 302, 303, 307, 308} {
			s := Serve(t, Answer(status, "text/plain", "", "Location", elsewhere+"/v1/x"))
			_, err := f.open(t, Endpoint(s)).Complete(context.Background(), Ask)
			f.failed(t, err, remote.Redirected)
		}
		if n := len(other.Requests()); n != 0 {
			t.Errorf("a redirect was followed %d times", n)
		}
	})
}

func (f Format) stalls(t *testing.T) {
	for name, step := range map[string]Step{
		"before the answer":      Silence,
		"in the middle":          Then(t, "text.sse", 2, Silence),
		"comments without end":   Dribble(": keep-alive\n\n", 10*time.Millisecond),
		"bytes without an event": Then(t, "text.sse", 2, Dribble("d", 10*time.Millisecond)),
		"comments in the middle": Then(t, "text.sse", 2, Dribble(": still here\n\n", 10*time.Millisecond)),
		"spaces":                 Dribble(" ", 10*time.Millisecond),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Serve(t, step)
			e := Endpoint(s)
			// Long enough for a busy machine: a client that gave up before its request arrived would prove nothing.
			e.First, e.Idle = time.Second, time.Second
			start := time.Now()
			_, err := f.open(t, e).Complete(context.Background(), Ask)
			f.failed(t, err, remote.Stalled)
			if took := time.Since(start); took < 900*time.Millisecond || took > 15*time.Second {
				t.Errorf("ended after %s, the limit is 1 s", took)
			}
			s.Ended(t)
			if n := len(s.Requests()); n != 1 {
				t.Errorf("%d requests: a stall is not tried again", n)
			}
		})
	}
	t.Run("events for ever", func(t *testing.T) {
		t.Parallel()
		e := Endpoint(Serve(t, Then(t, "text.sse", 2, Dribble(f.Event, 20*time.Millisecond))))
		e.Total = time.Second
		got, err := f.open(t, e).Complete(context.Background(), Ask)
		f.failed(t, err, remote.Stalled)
		if got.Text == "" {
			t.Error("what had come is lost")
		}
	})
}

func (f Format) broken(t *testing.T) {
	for name, step := range map[string]Step{
		"broken JSON":          Answer(200, "application/json", `{"choices": [{"mess`),
		"broken JSON in event": Answer(200, "text/event-stream", "data: {\"choi\n\n"),
		"HTML":                 Answer(200, "text/html", "<html>Log in</html>"),
		"no type":              Answer(200, "", "hello"),
		"an empty object":      Answer(200, "application/json", "{}"),
		"an array":             Answer(200, "application/json", "[]"),
		"cut off in a stream":  Then(t, "text.sse", 3, func(http.ResponseWriter, *http.Request) {}),
		"an empty stream":      Answer(200, "text/event-stream", ""),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.open(t, Endpoint(Serve(t, step))).Complete(context.Background(), Ask)
			f.failed(t, err, remote.Broken)
		})
	}
	t.Run("key in the answer", func(t *testing.T) {
		s := Serve(t, func(w http.ResponseWriter, r *http.Request) {
			data := strings.ReplaceAll(mustRead(t, "text.json"), "Hello, world.", "Your key is "+Key)
			Answer(200, "application/json", data)(w, r)
		})
		got, err := f.open(t, Endpoint(s)).Complete(context.Background(), Ask)
		if err != nil || strings.Contains(got.Text, Key) || !strings.Contains(got.Text, "Your key is") {
			t.Errorf("%q, %v", got.Text, err)
		}
	})
}

func (f Format) cancelled(t *testing.T) {
	s := Serve(t, Then(t, "text.sse", 2, Silence))
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("no longer wanted")
	r := Ask
	r.Progress = func(g delegate.Generating) {
		if g.Phase == "generating" {
			cancel(why)
		}
	}
	if _, err := f.open(t, Endpoint(s)).Complete(ctx, r); !errors.Is(err, why) {
		t.Errorf("error %v, want the context's own", err)
	}
	s.Ended(t)
}
