package stats

import (
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// parse reads a line with encoding/json, one field at a time: a field of the wrong type is a field not said, and
// only what is no JSON object at all is a bad line.
func (l *line) parse(b []byte) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(b, &fields) != nil || fields == nil {
		return false
	}
	*l = line{}
	for name, raw := range fields {
		l.field([]byte(name), raw)
	}
	return true
}

func (l *line) field(key []byte, raw json.RawMessage) {
	var text string
	switch c := raw[0]; {
	case c == '"':
		if json.Unmarshal(raw, &text) != nil {
			return
		}
		if field := l.text(key); field != nil {
			*field = []byte(text)
		} else if string(key) == "timestamp" {
			l.setTime([]byte(text))
		} else if string(key) == "task" {
			l.task = []byte(text)
		}
	case c == '-' || c >= '0' && c <= '9':
		l.number(key, millionths(string(raw)))
	case string(key) == "verification_passed" && c == 't':
		l.passed = yes
	case string(key) == "verification_passed" && c == 'f':
		l.passed = no
	case string(key) == "files" && c == '[':
		var files []json.RawMessage
		if json.Unmarshal(raw, &files) == nil {
			l.fileCount, l.filesKnown = min(len(files), 1000), true
		}
	}
}

func millionths(text string) int64 {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f < 0 || f*million > insane {
		return -1
	}
	return int64(math.Round(f * million))
}

// ParseLine reads one line as a record, as far as it has the fields; false for a line that is none.
func ParseLine(b []byte) (Record, bool) {
	var l line
	if !l.parse(b) || !l.ours() {
		return Record{}, false
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(b, &fields) != nil {
		return Record{}, false
	}
	r := Record{
		Timestamp: time.Unix(l.unix, 0).UTC(), TaskType: string(l.taskType), Decision: string(l.decision),
		TokensGenerated: int(l.generated), TimeSeconds: float64(l.seconds) / million,
		Status: string(l.status), Model: string(l.model), Attempts: int(l.attempts),
		TokensPrompt: int(l.prompt), TokensCached: int(l.cached),
		Cause: string(l.why), Reason: string(l.reason), DecodeSeconds: float64(l.decode) / million,
		TokensRead: int(l.read), TokensWritten: int(l.written), TokensRequest: int(l.request), TokensResult: int(l.result),
	}
	if l.scored {
		r.Score = float64(l.score) / million
	}
	if l.passed != 0 {
		passed := l.passed == yes
		r.VerificationPassed = &passed
	}
	r.Files = filesOf(fields["files"], l)
	// What is left is for showing only: a wrong type leaves it empty.
	for name, into := range map[string]any{
		"task": &r.Task, "id": &r.ID, "engine": &r.Engine, "profile": &r.Profile,
		"verify_exit": &r.VerifyExit, "baseline_exit": &r.BaselineExit, "session": &r.Session, "version": &r.Version,
	} {
		if raw, ok := fields[name]; ok {
			_ = json.Unmarshal(raw, into)
		}
	}
	// A wrong type leaves a pointer to nothing behind.
	for name, exit := range map[string]**int{"verify_exit": &r.VerifyExit, "baseline_exit": &r.BaselineExit} {
		if json.Unmarshal(fields[name], new(int)) != nil {
			*exit = nil
		}
	}
	return r, true
}

// filesOf keeps the number of files even where their names are not texts: a nil slice means «not known».
func filesOf(raw json.RawMessage, l line) []string {
	if !l.filesKnown {
		return nil
	}
	files := make([]string, l.fileCount)
	var elements []json.RawMessage
	if json.Unmarshal(raw, &elements) == nil {
		for i := range min(len(elements), len(files)) {
			_ = json.Unmarshal(elements[i], &files[i])
		}
	}
	return files
}
