package llamaserver

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"localllm/lifecycle"
)

// said is what the server has told in its log so far.
type said struct {
	report func(lifecycle.Progress)
	total  int64 // bytes of the model file; 0: unknown

	mu        sync.Mutex
	phase     string
	began     time.Time
	done      int64
	listening bool   // it has bound its port: what answers there is it
	bindFail  bool   // somebody else has the port
	arch      string // of the model
	window    int    // of sliding attention; 0: none
	recurrent bool
	trained   int // the model's context limit, where it was told because it is exceeded
	asked     int
	gpu, host float64 // MiB of buffers
	offloaded string  // "12/49" layers
	errors    []string
}

func newSaid(report func(lifecycle.Progress)) *said {
	s := &said{report: report}
	s.enter("starting")
	return s
}

// The lines are those of llama.cpp's llama-model-loader.cpp, llama-model.cpp, llama-context.cpp, llama-kv-cache.cpp
// and server.cpp; builds differ in what stands before the colon.
var (
	bufferLine   = regexp.MustCompile(`(\S+) +(?:model|KV|RS|compute|output) buffer size = +([\d.]+) MiB`)
	offloadLine  = regexp.MustCompile(`offloaded (\d+/\d+) layers to GPU`)
	archLine     = regexp.MustCompile(`print_info: arch += (\S+)`)
	windowLine   = regexp.MustCompile(`print_info: n_swa += (\d+)`)
	overflowLine = regexp.MustCompile(`n_ctx_(?:seq|per_seq) \((\d+)\) > n_ctx_train \((\d+)\)`)
	cappingLine  = regexp.MustCompile(`slot context \((\d+)\) exceeds the training context of the model \((\d+)\)`)
	stamp        = regexp.MustCompile(`^[\d.]+ [IWEDT] `)
	errorLine    = regexp.MustCompile(`^[\d.]+ E |(?i)^error|(?i)\berror loading model\b`)
)

// line takes one line of the server's output.
func (s *said) line(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errorLine.MatchString(text) {
		if len(s.errors) > 50 {
			s.errors = s.errors[25:]
		}
		s.errors = append(s.errors, strip(text))
	}
	switch {
	case strings.Contains(text, "listening on http"):
		s.listening = true
	case strings.Contains(text, "couldn't bind"):
		s.bindFail = true
	case strings.Contains(text, "loading model"):
		s.enter("loading")
	case strings.Contains(text, "warming up the model"):
		s.enter("warming")
	default:
		s.figures(text)
	}
}

func (s *said) figures(text string) {
	if m := bufferLine.FindStringSubmatch(text); m != nil {
		mib, _ := strconv.ParseFloat(m[2], 64)
		if device := m[1]; strings.HasPrefix(device, "CPU") || strings.HasSuffix(device, "_Host") || strings.HasPrefix(device, "Host") {
			s.host += mib
		} else {
			s.gpu += mib
		}
		if strings.Contains(text, "RS buffer") {
			s.recurrent = true
		}
	}
	if m := archLine.FindStringSubmatch(text); m != nil {
		s.arch = m[1]
	}
	if m := windowLine.FindStringSubmatch(text); m != nil {
		s.window, _ = strconv.Atoi(m[1])
	}
	if m := offloadLine.FindStringSubmatch(text); m != nil {
		s.offloaded = m[1]
	}
	for _, line := range []*regexp.Regexp{overflowLine, cappingLine} {
		if m := line.FindStringSubmatch(text); m != nil {
			s.asked, _ = strconv.Atoi(m[1])
			s.trained, _ = strconv.Atoi(m[2])
		}
	}
}

// strip takes the time stamp and the level off a line.
func strip(line string) string {
	line = strings.TrimSpace(stamp.ReplaceAllString(line, ""))
	return line[:min(len(line), 300)]
}

func (s *said) enter(phase string) {
	if s.phase != phase {
		s.phase, s.began, s.done = phase, time.Now(), 0
	}
}

// tick reports how far loading is, by the memory that the process holds.
func (s *said) tick(resident int64) {
	s.mu.Lock()
	p := lifecycle.Progress{Phase: s.phase, Seconds: int(time.Since(s.began).Seconds())}
	if s.total > 0 && s.phase == "loading" {
		s.done = max(s.done, min(resident, s.total))
		p.Done, p.Total, p.Unit = s.done, s.total, "bytes"
	}
	s.mu.Unlock()
	s.report(p)
}

// words are the facts so far, copied.
type words struct {
	listening, bindFail, recurrent bool
	arch, offloaded                string
	window, trained, asked         int
	gpu, host                      float64
	errors                         []string
}

func (s *said) words() words {
	s.mu.Lock()
	defer s.mu.Unlock()
	return words{
		listening: s.listening, bindFail: s.bindFail, recurrent: s.recurrent, arch: s.arch, offloaded: s.offloaded,
		window: s.window, trained: s.trained, asked: s.asked, gpu: s.gpu, host: s.host,
		errors: append([]string(nil), s.errors...),
	}
}

// now is the phase in words.
func (s *said) now() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase
}
