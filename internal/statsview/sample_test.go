package statsview

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"localllm/stats"
)

// sample is a log as half a year leaves it, with a name that tries to be markup.
func sample(t *testing.T) stats.Summary {
	t.Helper()
	rng := rand.New(rand.NewPCG(6, 6))
	var b bytes.Buffer
	at := time.Date(2026, 2, 1, 8, 0, 0, 0, time.UTC)
	types := []string{"generate", "generate", "test", "fix", "refactor", "document", "summarize"}
	models := []string{"qwen3-coder:30b", "qwen3-coder:30b", "gemma3:27b", "hf.co/unsloth/Qwen3-Coder-30B-A3B-Instruct-GGUF:Q4_K_M", "<script>alert(1)</script>"}
	causes := []string{"verify red", "verify red", "cut off by the token limit", "answer had other files than declared", ""}
	for i := range 900 {
		at = at.Add(time.Duration(rng.IntN(7)) * time.Hour)
		if rng.IntN(60) == 0 {
			b.WriteString("{\"torn\n")
			continue
		}
		score := math.Round(rng.Float64()*100) / 100
		if i%5 == 0 {
			fmt.Fprintf(&b, `{"timestamp":%q,"task":"x","task_type":"fix","score":%v,"decision":"keep","verification_passed":null,"tokens_generated":0,"time_seconds":0}`+"\n", at.Format(time.RFC3339), score)
			continue
		}
		status, cause := "proven", ""
		switch {
		case rng.Float64() > 0.35+score*0.6:
			status, cause = []string{"failed", "rejected", "timed_out"}[rng.IntN(3)], causes[rng.IntN(len(causes))]
		case rng.IntN(5) == 0:
			status = []string{"unproven", "answered", "unverified", "refused", "cancelled"}[rng.IntN(5)]
		}
		prompt := 2000 + rng.IntN(9000)
		fmt.Fprintf(&b, `{"timestamp":%q,"task":"x","task_type":%q,"score":%v,"decision":"delegate","verification_passed":true,"tokens_generated":%d,"time_seconds":%d,"status":%q,"model":%q,"attempts":%d,"tokens_prompt":%d,"tokens_cached":%d,"cause":%q,"tokens_read":%d,"tokens_written":%d,"tokens_request":90,"tokens_result":210}`+"\n",
			at.Format(time.RFC3339), types[rng.IntN(len(types))], score, 200+rng.IntN(1800), 5+rng.IntN(90), status,
			models[rng.IntN(len(models))], 1+rng.IntN(3)/2, prompt, prompt*8/10, cause, prompt-500, rng.IntN(1500))
	}
	return summarize(t, b.Bytes(), stats.ByTaskType)
}

func summarize(t *testing.T, log []byte, by stats.By) stats.Summary {
	t.Helper()
	s, err := stats.Summarize(t.Context(), []io.Reader{bytes.NewReader(log)}, stats.Options{By: by, Log: "/home/ada/project/.claude/workflow/delegation-log.jsonl"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
