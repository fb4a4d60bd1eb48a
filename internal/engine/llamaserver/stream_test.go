package llamaserver

import (
	"strings"
	"testing"

	"localllm/delegate"
	"localllm/internal/engine/sse"
)

func gather(t *testing.T, think bool, events ...string) (delegate.Completion, bool, error) {
	t.Helper()
	a := answer{think: think}
	err := sse.Read(strings.NewReader("data: "+strings.Join(events, "\n\ndata: ")+"\n\n"), a.take)
	return a.completion(), a.ended, err
}

func TestStreamIsGathered(t *testing.T) {
	got, ended, err := gather(t, true,
		`{"model":"m","choices":[{"delta":{"role":"assistant","content":null},"finish_reason":null}],"prompt_progress":{"total":9,"cache":1,"processed":4}}`,
		`{"choices":[{"delta":{"reasoning_content":"hm "}}]}`,
		`{"choices":[{"delta":{"reasoning_content":"yes"}}]}`,
		`{"choices":[{"delta":{"content":"Hel"}}]}`,
		`{"choices":[{"delta":{"content":"lo"}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"second","arguments":"{}"}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"fir","arguments":"{\"x\""}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"st","arguments":":1}"}}]}}]}`,
		`{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`,
		`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":1}},"timings":{"cache_n":1,"prompt_n":8,"prompt_ms":2.5,"predicted_n":4,"predicted_ms":10}}`,
		`[DONE]`)
	if err != nil || !ended {
		t.Fatal(err, ended)
	}
	want := delegate.Tokens{Prompt: 9, Cached: 1, Generated: 4}
	if got.Text != "Hello" || string(got.Thinking) != `"hm yes"` || got.Finish != delegate.FinishTools || got.Tokens != want || got.Model != "m" || got.Prefill.Microseconds() != 2500 {
		t.Errorf("%+v", got)
	}
	if len(got.Calls) != 2 || got.Calls[0] != (delegate.ToolCall{ID: "a", Name: "first", Arguments: `{"x":1}`}) || got.Calls[1].Name != "second" {
		t.Errorf("%+v", got.Calls)
	}
	if got, _, _ := gather(t, false, `{"choices":[{"delta":{"reasoning_content":"secret thoughts"}}]}`, `[DONE]`); got.Text != "" || got.Thinking != nil {
		t.Errorf("thoughts are an answer: %+v", got)
	}
}

func TestStreamThatGoesWrong(t *testing.T) {
	if _, _, err := gather(t, false, `{"error":{"code":500,"message":"Compute error.","type":"server_error"}}`); err == nil || !strings.Contains(err.Error(), "Compute error.") {
		t.Errorf("an error inside the stream: %v", err)
	}
	if _, _, err := gather(t, false, `{broken`); err == nil {
		t.Error("broken JSON is taken")
	}
	if _, ended, err := gather(t, false, `{"choices":[{"delta":{"content":"half"}}]}`); err != nil || ended {
		t.Errorf("cut off: ended %v, %v", ended, err)
	}
	got, _, err := gather(t, false, `{"choices":[{"delta":{"tool_calls":[{"index":-1},{"index":1000000000,"function":{"name":"x"}}]}}]}`, `[DONE]`)
	if err != nil || len(got.Calls) != 0 {
		t.Errorf("odd indexes: %+v, %v", got.Calls, err)
	}
}

func FuzzStream(f *testing.F) {
	f.Add("data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	f.Add("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":255}]}}]}\n\n")
	f.Add("data: {\"error\":\"x\"}\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		a := answer{}
		_ = sse.Read(strings.NewReader(text), a.take)
		if got := a.completion(); len(got.Text) > 3*len(text) || len(got.Calls) > mostCalls {
			t.Errorf("%d bytes and %d calls out of %d bytes", len(got.Text), len(got.Calls), len(text))
		}
	})
}
