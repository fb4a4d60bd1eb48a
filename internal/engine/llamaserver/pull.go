package llamaserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"localllm/internal/engine/child"
	"localllm/internal/engine/loopback"
	"localllm/lifecycle"
)

// Pull has llama-server download a Hugging Face reference into its own cache, and ends it before it loads the
// model. Ending ctx cancels it; what has arrived stays, and the next Pull goes on from there. How much is to come
// is not known: llama-server tells it to terminals only.
func (e *Engine) Pull(ctx context.Context, reference string, host lifecycle.Host) error {
	if !child.Manages {
		return unmanaged()
	}
	binary, err := e.find(host.Env)
	if err != nil {
		return err
	}
	m, err := e.resolve(lifecycle.Spec{Model: reference})
	if err != nil {
		return err
	}
	if m.path != "" {
		return nil // a file is there or not; look has said so
	}
	m.fetch = true
	port, err := e.options.Port()
	if err != nil {
		return err
	}
	f, err := newFiles(host.Dir)
	if err != nil {
		return noDisk("preparing the engine's private folder", err)
	}
	defer f.remove()
	arrived := make(chan struct{})
	var once sync.Once
	spec := lifecycle.Spec{Model: reference, Context: 512, Slots: 1}
	s := &server{spec: spec, files: f, said: newSaid(host.Report), http: loopback.Client(), logPath: host.LogPath}
	s.child, err = child.Start(child.Options{
		Path: binary, Args: arguments(m, spec, port, f), Env: e.environment(m, spec, host.Env), Grace: e.options.Grace, Host: host,
		Line: func(line string) {
			s.said.line(line)
			if strings.Contains(line, "loading model") {
				once.Do(func() { close(arrived) })
			}
		},
	})
	if err != nil {
		return cannotRun(binary, err)
	}
	return e.receive(ctx, s, m, blobs(host.Env, m.repo), arrived)
}

// receive waits until the download has arrived, or has come to nothing, and ends the child in any case.
func (e *Engine) receive(ctx context.Context, s *server, m model, folder string, arrived <-chan struct{}) error {
	began := time.Now()
	report := func(done, total int64) {
		s.said.report(lifecycle.Progress{Phase: "downloading", Done: done, Total: total, Unit: "bytes", Seconds: int(time.Since(began).Seconds())})
	}
	watched, end := s.child.Watch(ctx, e.options.Stall, func(int64) { report(weigh(folder), 0) })
	var failed error
	select {
	case <-arrived:
	case <-watched.Done():
		failed = fmt.Errorf("downloading %s: %w", m.repo, context.Cause(watched))
	}
	end()
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*e.options.Grace)
	defer cancel()
	s.child.Stop(stop)
	if failed != nil {
		return s.explain(ctx, failed, m)
	}
	// It says that it loads also what it did not get.
	if start, ok := Explain(s.said.words().errors); ok {
		return start
	}
	done := weigh(folder)
	if done == 0 {
		return &lifecycle.StartError{Cause: lifecycle.NoSuchModel, Reason: fmt.Sprintf("there is no GGUF model %s to download", m.repo), Hints: []string{"check its name, as OWNER/NAME:QUANT"}}
	}
	report(done, done)
	return nil
}

// blobs is where llama-server puts a repository's files.
func blobs(env []string, repo string) string {
	repo, _, _ = strings.Cut(repo, ":")
	return filepath.Join(cacheFolder(env), "models--"+strings.ReplaceAll(repo, "/", "--"), "blobs")
}

// weigh sums the files of a folder, those included that are still arriving.
func weigh(folder string) int64 {
	entries, _ := os.ReadDir(folder)
	var sum int64
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			sum += info.Size()
		}
	}
	return sum
}
