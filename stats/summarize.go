package stats

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// Summarize reads the logs, oldest first, in memory that does not grow with them. It reads with one goroutine and
// scans with Options.Workers; all have ended when it returns.
func Summarize(ctx context.Context, logs []io.Reader, o Options) (Summary, error) {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	full := make(chan []byte, o.Workers)
	free := make(chan []byte, 2*o.Workers+1)
	sums := make([]*sum, o.Workers)
	var scanning sync.WaitGroup
	for i := range sums {
		sums[i] = newSum(o)
		scanning.Go(func() { // ends when full is closed, below
			for b := range full {
				sums[i].scan(b)
				select {
				case free <- b:
				default:
				}
			}
		})
	}
	err := feed(ctx, logs, full, free)
	close(full)
	scanning.Wait()
	if err != nil {
		return Summary{}, err
	}
	for _, s := range sums[1:] {
		sums[0].merge(s)
	}
	return sums[0].summary(o), nil
}

func feed(ctx context.Context, logs []io.Reader, full chan<- []byte, free <-chan []byte) error {
	fresh := func() []byte {
		select {
		case b := <-free:
			return b
		default:
			return nil
		}
	}
	for _, r := range logs {
		if err := blocks(ctx, r, fresh, func(b []byte) error { full <- b; return nil }); err != nil {
			return err
		}
	}
	return nil
}

// sum is everything a summary is made of.
type sum struct {
	since            int64
	skipped          int64
	analyzed         int64
	first, last      int64
	all              tally
	prompt, cached   int64
	counted          int64 // lines that kept_out is counted on
	paced, paceMicro int64 // tokens generated in a known time
	status           groups
	types            groups
	models           groups
	days             groups
	failures         groups
	calibration      [10]bucket
	dayKey           dayKey
	failureKey       []byte
}

type bucket struct{ n, successes, predicted int64 }

const (
	mostKinds = 256
	mostDays  = 3660
)

func newSum(o Options) *sum {
	s := &sum{since: math.MinInt64, first: math.MaxInt64, last: math.MinInt64}
	if !o.Since.IsZero() {
		s.since = o.Since.Unix()
		if o.Since.Nanosecond() > 0 {
			s.since++ // the log has whole seconds
		}
	}
	s.all.seconds = &histogram{}
	kinds := func(timed bool) groups { return groups{limit: mostKinds, timed: timed, by: map[string]*tally{}} }
	s.status, s.types, s.models, s.failures = kinds(true), kinds(true), kinds(true), kinds(false)
	// Quantiles of thousands of days are worth their memory only to one who asks for them.
	s.days = groups{limit: mostDays, newest: true, timed: o.By == ByDay, by: map[string]*tally{}}
	return s
}

// scan takes in whole lines.
func (s *sum) scan(b []byte) {
	s.skipped += int64(lines(b, func(l *line, _ []byte) {
		if l.unix >= s.since {
			s.count(l)
		}
	}))
}

func (s *sum) count(l *line) {
	s.first, s.last = min(s.first, l.unix), max(s.last, l.unix)
	status := l.outcome()
	if status == "" {
		s.analyzed++
		return
	}
	ok := OK(status)
	o := outcomeOf{ok: one(ok), proven: one(status == "proven"), generated: l.generated, micros: l.seconds}
	if l.attempts > 0 {
		o.attempted, o.firstTry = 1, one(ok && l.attempts == 1)
	}
	if l.read+l.written+l.request+l.result > 0 {
		o.kept = int64(l.kept().Out(ok))
		s.counted++
	}
	s.all.add(o)
	s.status.of([]byte(status)).add(o)
	s.types.of(named(l.taskType)).add(o)
	s.models.of(named(l.model)).add(o)
	s.days.of(s.dayKey.of(l.unix)).add(o)
	s.prompt += l.prompt
	s.cached += min(l.cached, l.prompt)
	if took := cmp.Or(l.decode, l.seconds); l.generated > 0 && took > 0 {
		s.paced += l.generated
		s.paceMicro += took
	}
	if !ok && status != "cancelled" {
		s.failures.of(s.failure(status, l)).add(o)
	}
	if success, counts := Verdict(status); counts && l.scored {
		c := &s.calibration[min(l.score/(million/10), 9)]
		c.n++
		c.successes += one(success)
		c.predicted += l.score
	}
}

func one(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// longestKey bounds what a writer can make a group's name be.
const longestKey = 120

var unnamed = []byte("(not named)")

func named(key []byte) []byte {
	if len(key) == 0 {
		return unnamed
	}
	return key[:min(len(key), longestKey)]
}

// failure is the status and the cause, or the beginning of the reason where no cause was named.
func (s *sum) failure(status string, l *line) []byte {
	why := l.why
	if len(why) == 0 {
		why = l.reason
	}
	s.failureKey = append(append(s.failureKey[:0], status...), '\x00')
	s.failureKey = append(s.failureKey, why[:min(len(why), longestKey)]...)
	return s.failureKey
}

func (s *sum) merge(o *sum) {
	s.skipped += o.skipped
	s.analyzed += o.analyzed
	s.first, s.last = min(s.first, o.first), max(s.last, o.last)
	s.all.merge(&o.all)
	s.prompt += o.prompt
	s.cached += o.cached
	s.counted += o.counted
	s.paced += o.paced
	s.paceMicro += o.paceMicro
	s.status.merge(&o.status)
	s.types.merge(&o.types)
	s.models.merge(&o.models)
	s.days.merge(&o.days)
	s.failures.merge(&o.failures)
	for i := range s.calibration {
		c, d := &s.calibration[i], &o.calibration[i]
		c.n += d.n
		c.successes += d.successes
		c.predicted += d.predicted
	}
}

func (s *sum) summary(o Options) Summary {
	all := s.all.group("")
	out := Summary{
		Delegations: all.Delegations, Analyzed: int(s.analyzed), ByStatus: map[string]int{},
		SuccessRate: all.SuccessRate, ProvenRate: all.ProvenRate, FirstTryRate: all.FirstTryRate,
		Tokens: Tokens{Prompt: int(s.prompt), Cached: int(s.cached), Generated: all.TokensGenerated,
			KeptOut: all.KeptOut, CountedOn: int(s.counted)},
		CacheHitRate: rate(s.cached, s.prompt), Seconds: all.Seconds, TokensPerSecond: s.pace(),
		Calibration: s.buckets(), SkippedLines: int(s.skipped), Log: o.Log,
		Failures: s.worst(), GroupBy: o.By,
		Types: s.types.list(false), Models: s.models.list(false), Days: s.days.list(true),
	}
	statuses := s.status.list(false)
	for _, g := range statuses {
		out.ByStatus[g.Key] = g.Delegations
	}
	switch o.By {
	case ByModel:
		out.Groups = out.Models
	case ByDay:
		out.Groups = out.Days
	case ByStatus:
		out.Groups = statuses
	default:
		out.Groups, out.GroupBy = out.Types, ByTaskType
	}
	if s.first <= s.last {
		from, to := time.Unix(s.first, 0).UTC(), time.Unix(s.last, 0).UTC()
		out.From, out.To = &from, &to
	}
	return out
}

func (s *sum) pace() float64 {
	if s.paceMicro == 0 {
		return 0
	}
	return math.Round(float64(s.paced)/(float64(s.paceMicro)/million)*10) / 10
}

func (s *sum) buckets() []Bucket {
	out := []Bucket{}
	for i, c := range s.calibration {
		if c.n > 0 {
			out = append(out, Bucket{
				Bucket:    fmt.Sprintf("%.1f-%.1f", float64(i)/10, float64(i+1)/10),
				Predicted: float64(c.predicted) / float64(c.n) / million,
				Observed:  rate(c.successes, c.n), N: int(c.n),
			})
		}
	}
	return out
}

const mostFailures = 10

func (s *sum) worst() []Failure {
	out := []Failure{}
	for _, g := range s.failures.list(false) {
		status, cause, _ := strings.Cut(g.Key, "\x00")
		out = append(out, Failure{Status: status, Cause: cause, N: g.Delegations})
	}
	slices.SortStableFunc(out, func(a, b Failure) int { return b.N - a.N })
	return out[:min(len(out), mostFailures)]
}

// dayKey makes the UTC date of a time, and remembers the last one: lines of a day stand together.
type dayKey struct {
	day  int64
	text []byte
}

func (k *dayKey) of(unix int64) []byte {
	day := unix / 86400
	if unix%86400 < 0 {
		day--
	}
	if k.text == nil || day != k.day {
		k.day = day
		k.text = time.Unix(unix, 0).UTC().AppendFormat(k.text[:0], time.DateOnly)
	}
	return k.text
}
