package enginetest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"localllm/delegate"
	"localllm/internal/engine/anthropic"
	"localllm/internal/engine/llamaserver"
	"localllm/internal/engine/ollama"
	"localllm/internal/engine/openai"
	"localllm/internal/engine/remote"
	"localllm/lifecycle"
)

const (
	flood     = 200 << 20 // bytes of text that the server would send
	mostBytes = 64 << 20
	mostSent  = 32 << 20
)

// A model that does not stop, in every format: the stream is ended, the answer refused, and memory stays small.
func TestReplyOf200MB(t *testing.T) {
	text := strings.Repeat("word ```go\n", 1000)
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	delta := func(format string) string { return fmt.Sprintf(format, quoted) }
	for name, c := range map[string]struct {
		kind, first, again string
		connect            func(url string) (delegate.Completer, error)
	}{
		"llama-server": {
			"text/event-stream", "", delta("data: {\"choices\":[{\"delta\":{\"content\":%s}}]}\n\n"),
			func(url string) (delegate.Completer, error) {
				return llamaserver.Connect(lifecycle.Endpoint{URL: url, Context: 4096})
			},
		},
		"ollama": {
			"application/x-ndjson", "", delta("{\"message\":{\"role\":\"assistant\",\"content\":%s},\"done\":false}\n"),
			func(url string) (delegate.Completer, error) {
				return ollama.Connect(lifecycle.Endpoint{URL: url, Context: 4096})
			},
		},
		"openai": {
			"text/event-stream", "", delta("data: {\"choices\":[{\"delta\":{\"content\":%s}}]}\n\n"),
			func(url string) (delegate.Completer, error) {
				return openai.Connect(remote.Endpoint{BaseURL: url, Model: "m"}, "openai")
			},
		},
		"anthropic": {
			"text/event-stream", "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
			delta("data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":%s}}\n\n"),
			func(url string) (delegate.Completer, error) {
				return anthropic.Connect(remote.Endpoint{BaseURL: url, Model: "m"}, "anthropic")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				_, err := w.Write([]byte(c.first))
				again := []byte(c.again)
				for n := 0; n < flood && err == nil; n += len(text) {
					_, err = w.Write(again)
					sent.Add(int64(len(again)))
				}
			}))
			defer server.Close()
			client, err := c.connect(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			var got delegate.Completion
			grown := peak(func() {
				got, err = client.Complete(t.Context(), delegate.Request{Messages: []delegate.Message{{Role: delegate.User, Content: "go"}}, MaxTokens: 100, Slot: -1})
			})
			if err != nil || got.Finish != delegate.FinishLength || len(got.Text) <= delegate.MaxReplyBytes || len(got.Text) > delegate.MaxReplyBytes+len(text) {
				t.Errorf("%v, finish %q, %d bytes", err, got.Finish, len(got.Text))
			}
			if _, err := (delegate.Gate{}).Text(got); err == nil || !strings.Contains(err.Error(), "longer than") {
				t.Errorf("the gate: %v", err)
			}
			if grown > mostBytes || sent.Load() > mostSent {
				t.Errorf("the heap grew by %d MiB, %d MiB were sent", grown>>20, sent.Load()>>20)
			}
			t.Logf("the heap grew by %d MiB, %d MiB were sent", grown>>20, sent.Load()>>20)
		})
	}
}

// peak is how much the heap grows at most while f runs, with what the collector has not found yet.
func peak(f func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	runtime.GC()
	base := heap()
	highest := base
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			highest = max(highest, heap())
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	}()
	f()
	close(done)
	<-ended
	return highest - min(base, highest)
}
