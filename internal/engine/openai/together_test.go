package openai

import (
	"net/http"
	"sync"
	"testing"

	"localllm/delegate"
	"localllm/internal/engine/protocoltest"
)

// A batch's first requests are under way together, and a server that will not have a field refuses each of them: each
// goes on without it.
func TestRefusedTogether(t *testing.T) {
	const together = 4
	var arrived sync.WaitGroup
	arrived.Add(together)
	refuse := protocoltest.Answer(400, "application/json", `{"error":{"message":"Unsupported value: 'temperature'"}}`)
	held := func(w http.ResponseWriter, r *http.Request) {
		arrived.Done()
		arrived.Wait()
		refuse(w, r)
	}
	s := protocoltest.Serve(t, held, held, held, held, protocoltest.File(t, "text.sse"))
	c, err := Connect(protocoltest.Endpoint(s), "openai")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var all sync.WaitGroup
	for range together {
		all.Go(func() {
			if _, err := c.Complete(t.Context(), delegate.Request{Messages: []delegate.Message{{Role: delegate.User, Content: "hello"}}}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(s.Requests()); n != 2*together {
		t.Errorf("%d requests, want each twice", n)
	}
}
