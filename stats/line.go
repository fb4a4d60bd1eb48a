package stats

import "time"

// verdict is verification_passed: true, false, or not said.
type verdict uint8

const (
	yes verdict = 1
	no  verdict = 2
)

// line is what a summary needs of a log line. Its texts point into the buffer that was scanned. Numbers are in
// millionths, so that sums don't depend on the order of lines.
type line struct {
	unix                                   int64
	timed                                  bool
	taskType, decision, status, model, why []byte
	reason                                 []byte
	passed                                 verdict
	score, seconds, decode                 int64
	scored                                 bool
	generated, prompt, cached, attempts    int64
	read, written, request, result         int64
	verified                               bool   // an exit code of verify is there
	task                                   []byte // as scanned: with its escapes, if escaped
	escaped                                bool
	fileCount                              int
	filesKnown                             bool
}

const million = 1_000_000

// insane is more than any count or time in a log can be.
const insane = 1_000_000_000_000 * million

// number puts v into the field that key names; it reports whether the key is one of ours. Below zero and beyond
// sense count as not said.
func (l *line) number(key []byte, v int64) bool {
	if v < 0 || v > insane {
		v = 0
	}
	switch string(key) {
	case "score":
		l.score, l.scored = v, v <= million
	case "time_seconds":
		l.seconds = v
	case "decode_seconds":
		l.decode = v
	case "tokens_generated":
		l.generated = v / million
	case "tokens_prompt":
		l.prompt = v / million
	case "tokens_cached":
		l.cached = v / million
	case "attempts":
		l.attempts = v / million
	case "tokens_read":
		l.read = v / million
	case "tokens_written":
		l.written = v / million
	case "tokens_request":
		l.request = v / million
	case "tokens_result":
		l.result = v / million
	case "verify_exit", "baseline_exit":
		l.verified = true
	case "files":
		l.fileCount, l.filesKnown = int(min(v/million, 1000)), true
	default:
		return false
	}
	return true
}

// text is the field that key names, or nil for one that the summary doesn't read.
func (l *line) text(key []byte) *[]byte {
	switch string(key) {
	case "task_type":
		return &l.taskType
	case "decision":
		return &l.decision
	case "status":
		return &l.status
	case "model":
		return &l.model
	case "cause":
		return &l.why
	case "reason":
		return &l.reason
	}
	return nil
}

// isNumber says whether key names a number, so that another type of value can be told.
func isNumber(key []byte) bool { return new(line).number(key, 0) }

// setTime reads the log's own form of a time without the standard parser, and every other through it. Other writers
// leave the zone out: that is taken for UTC.
func (l *line) setTime(b []byte) {
	if sec, ok := quickTime(b); ok {
		l.unix, l.timed = sec, true
		return
	}
	for _, layout := range [...]string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00", time.DateTime} {
		if t, err := time.Parse(layout, string(b)); err == nil {
			l.unix, l.timed = t.Unix(), t.Year() > 0
			return
		}
	}
	l.timed = false
}

// quickTime reads 2026-01-21T15:30:00Z.
func quickTime(b []byte) (int64, bool) {
	if len(b) != 20 || b[4] != '-' || b[7] != '-' || b[10] != 'T' || b[13] != ':' || b[16] != ':' || b[19] != 'Z' {
		return 0, false
	}
	year, ok1 := digits(b[0:4])
	month, ok2 := digits(b[5:7])
	day, ok3 := digits(b[8:10])
	hour, ok4 := digits(b[11:13])
	minute, ok5 := digits(b[14:16])
	second, ok6 := digits(b[17:19])
	if !(ok1 && ok2 && ok3 && ok4 && ok5 && ok6) || year < 1 || month < 1 || month > 12 || day < 1 || day > 28 || hour > 23 || minute > 59 || second > 59 {
		return 0, false // the 29th to 31st need a calendar: the standard parser has one
	}
	return daysTo(year, month, day)*86400 + int64(hour*3600+minute*60+second), true
}

func digits(b []byte) (int, bool) {
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

// daysTo counts the days from 1970-01-01 in the Gregorian calendar, with years that begin in March.
func daysTo(year, month, day int) int64 {
	if month <= 2 {
		year--
		month += 12
	}
	dayOfYear := (153*(month-3)+2)/5 + day - 1
	return int64(year*365+year/4-year/100+year/400+dayOfYear) - 719468
}

func (l *line) outcome() string {
	return outcome(interned(l.status), l.passed, l.seconds > 0 || l.generated > 0)
}

// interned spares the known statuses an allocation for each line.
func interned(status []byte) string {
	for _, s := range [...]string{"proven", "unproven", "unverified", "answered", "failed", "rejected", "refused", "timed_out", "cancelled"} {
		if string(status) == s {
			return s
		}
	}
	return string(status[:min(len(status), longestKey)])
}

func (l *line) kept() Kept {
	return Kept{
		Read: int(l.read), Written: int(l.written), Request: int(l.request), Result: int(l.result),
		Prompt: int(l.prompt / max(l.attempts, 1)), Generated: int(l.generated),
	}
}

// ours says whether the line can be placed at all: it has a time, and is either an outcome or a piece of advice.
func (l *line) ours() bool {
	return l.timed && (len(l.decision) > 0 || l.outcome() != "")
}
