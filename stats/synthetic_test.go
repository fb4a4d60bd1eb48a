package stats

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"time"
)

// synthetic writes a log of n lines as several writers and years leave it: our own lines, lines of eight fields,
// oddities that only encoding/json reads, and bad ones, about broken of a hundred.
func synthetic(n, broken int, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 7))
	var b bytes.Buffer
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	statuses := []string{"proven", "proven", "proven", "unproven", "unverified", "answered", "failed", "rejected", "refused", "timed_out", "cancelled"}
	types := []string{"generate", "test", "refactor", "fix", "document", "ask"}
	models := []string{"qwen3-coder:30b", "gemma3:27b", "modèle-é", "llama \\u0041"}
	for i := range n {
		at = at.Add(time.Duration(rng.IntN(max(2, 3600*6000/max(n, 6000)))) * time.Second)
		if rng.IntN(100) < broken {
			b.WriteString(bad[i%len(bad)])
			b.WriteByte('\n')
			continue
		}
		stamp := at.Format(time.RFC3339)
		switch rng.IntN(20) {
		case 0:
			fmt.Fprintf(&b, `{"timestamp":%q,"task":"old \"line\"","task_type":%q,"score":%.2f,"decision":"delegate","verification_passed":%t,"tokens_generated":%d,"time_seconds":%d}`+"\n",
				stamp, types[rng.IntN(6)], rng.Float64(), rng.IntN(2) == 0, rng.IntN(3000), 1+rng.IntN(300))
		case 1:
			fmt.Fprintf(&b, "  {\"timestamp\":\"%s\", \"task\":\"advice\\n\\u00e9\", \"task_type\":\"fix\", \"score\":%g, \"decision\":\"keep\", \"verification_passed\":null, \"tokens_generated\":0, \"time_seconds\":0, \"files\":null}\r\n", stamp, rng.Float64())
		case 2:
			b.WriteString(odd[i%len(odd)])
			b.WriteByte('\n')
		default:
			status := statuses[rng.IntN(len(statuses))]
			passed := map[string]string{"proven": "true", "unproven": "true", "failed": "false"}[status]
			if passed == "" {
				passed = "null"
			}
			prompt := rng.IntN(30000)
			fmt.Fprintf(&b, `{"timestamp":%q,"task":"Write the thing number %d with <all> its parts","task_type":%q,"score":%.4f,"decision":"delegate","verification_passed":%s,"tokens_generated":%d,"time_seconds":%.3f,"id":"t%08d","status":%q,"model":"%s","engine":"ollama","attempts":%d,"tokens_prompt":%d,"tokens_cached":%d,"files":["a/b.go","c.go"],"verify_exit":%d,"session":"s-1","version":"0.1.0","cause":"%s","decode_seconds":%.2f,"tokens_read":%d,"tokens_written":%d,"tokens_request":120,"tokens_result":300}`+"\n",
				stamp, i, types[rng.IntN(6)], rng.Float64(), passed, rng.IntN(3000), rng.Float64()*200, i, status, models[rng.IntN(4)],
				1+rng.IntN(3), prompt, rng.IntN(prompt+1), rng.IntN(2), []string{"", "verify red", "cut off"}[rng.IntN(3)], rng.Float64()*50, rng.IntN(9000), rng.IntN(2000))
		}
	}
	return b.Bytes()
}

// bad are lines that count as skipped.
var bad = []string{
	`{"timestamp":"2026-01-21T15:30:00Z","task":"torn in the mid`,
	`not json at all`,
	`[]`, `null`, `"text"`, `7`, `{}`,
	`{"timestamp":"2026-01-21T15:30:00Z"}`,
	`{"timestamp":"yesterday","status":"proven"}`,
	`{"timestamp":7,"status":"proven"}`,
	`{"status":"proven"}`,
	`{"timestamp":"2026-02-31T00:00:00Z","status":"proven"}`,
	`{"timestamp":"2026-01-21T15:30:00Z","status":"proven",}`,
	`{"timestamp":"2026-01-21T15:30:00Z","status":"proven"} x`,
	`{"timestamp":"2026-01-21T15:30:00Z","status":"proven"}{}`,
	`{"timestamp":"2026-01-21T15:30:00Z","status":"pro` + "\t" + `ven"}`,
	`{"timestamp":"2026-01-21T15:30:00Z","status":"proven","x":01}`,
	`{"timestamp":"2026-01-21T15:30:00Z","status":"proven","x":"\q"}`,
	`{"timestamp":"2026-01-21T15:30:00Z","status":"proven","x":"\u12g4"}`,
	`{"timestamp":"2026-01-21T15:30:00Z","status":"proven","x":.5}`,
	`{"timestamp":"2026-01-21T15:30:00Z","status":"proven","x":[1,]}`,
	`{"timestamp":"2026-01-21T15:30:00Z","status":"proven","x":tru}`,
	`{"timestamp":"2026-01-21T15:30:00Z" "status":"proven"}`,
	"\x00\x00\x00",
}

// odd are lines that count, and that a hasty reader gets wrong.
var odd = []string{
	`{"timestamp":"2026-01-21T15:30:00+02:00","status":"proven","score":"0.7","time_seconds":1e1}`,
	`{"timestamp":"2026-01-31T23:59:59.999Z","status":"failed","score":7e-1,"tokens_generated":12.9,"reason":"why \"so\""}`,
	`{"timestamp":"2026-01-21T15:30:00Z","status":"failed","status":"proven","model":"a","model":5}`,
	`{"timestamp":"2026-01-21T15:30:00Z","st\u0061tus":"proven","task":null,"score":null}`,
	`{"timestamp":"2026-01-21T15:30:00Z","status":"proven","files":2,"nested":{"a":[1,{"b":"}"}]},"score":-1}`,
	`{"timestamp":"2026-01-21T15:30:00Z","status":"proven","files":[{"path":"a"},["b"]],"tokens_prompt":1e30}`,
	`{"timestamp":"2026-01-21T15:30:00Z","status":"made-up","verification_passed":"yes","attempts":-3}`,
	`{"timestamp":"2026-01-21T15:30:00Z","decision":"delegate","status":"","score":1.0000001}`,
	"{\"timestamp\":\"2026-01-21T15:30:00Z\",\"status\":\"proven\",\"model\":\"bad\xffbyte\"}",
	`{"timestamp":"2026-01-21T15:30:00Z","Status":"proven","decision":"keep","score":0.123456789}`,
	`{ "timestamp" : "2026-01-21T15:30:00Z" , "status" : "proven" , "files" : [ ] , "score" : 0.5 }`,
	`{"timestamp":"1969-12-31T23:00:00Z","status":"proven","tokens_cached":50,"tokens_prompt":20}`,
	`{"timestamp":"2026-01-21T15:30:00.123456","status":"proven"}`,
	`{"timestamp":"2026-01-21 15:30:00","status":"proven"}`,
	`{"timestamp":"2026-01-21T15:30:00Z","status":"analyzed","decision":"keep","time_seconds":2,"big":12345678901234567890}`,
}
