package ollama

import (
	"context"
	"strconv"
	"time"

	"github.com/ollama/ollama/api"

	"localllm/internal/engine/child"
	"localllm/lifecycle"
)

// Pull gets a model into the user's store, by the running Ollama or by one of our own that ends with the pull.
// Ending ctx cancels it; what has arrived stays, and the next Pull goes on from there.
func (e *Engine) Pull(ctx context.Context, model string, host lifecycle.Host) error {
	found, err := Find(ctx, host.Env)
	if err != nil {
		return err
	}
	s := newServer(lifecycle.Spec{Engine: lifecycle.Ollama, Model: model}, "")
	defer s.http.CloseIdleConnections()
	if found == nil {
		address, stop, err := e.serve(ctx, host)
		if err != nil {
			return err
		}
		defer stop()
		found = &Found{URL: address}
	}
	s.api, err = client(found.URL, s.http)
	if err != nil {
		return err
	}
	if err := pull(ctx, s.api, model, host.Report); err != nil {
		if ctx.Err() != nil {
			time.Sleep(noteTime)
		}
		return s.explain(ctx, err, host.LogPath)
	}
	return nil
}

// noteTime is for Ollama to note what has arrived, once it hears that nobody waits any more. A server that is ended
// before that begins again from nothing.
const noteTime = 500 * time.Millisecond

// serve starts a server of our own with nothing loaded.
func (e *Engine) serve(ctx context.Context, host lifecycle.Host) (string, func(), error) {
	binary, err := e.find(host.Env)
	if err != nil {
		return "", nil, err
	}
	port, err := e.options.Port()
	if err != nil {
		return "", nil, err
	}
	s := newServer(lifecycle.Spec{}, "http://127.0.0.1:"+strconv.Itoa(port))
	s.said = &said{}
	s.child, err = child.Start(child.Options{
		Path: binary, Args: []string{"serve"}, Env: environment(lifecycle.Spec{Context: 4096}, port, host.Env),
		Grace: e.options.Grace, Host: host, Line: s.said.line,
	})
	if err != nil {
		return "", nil, err
	}
	stop := func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*e.options.Grace)
		defer cancel()
		s.child.Stop(ctx)
		s.http.CloseIdleConnections()
	}
	watched, end := s.child.Watch(ctx, e.options.Stall, nil)
	defer end()
	if err := s.await(watched); err != nil {
		if cause := context.Cause(watched); cause != nil {
			err = cause
		}
		stop()
		return "", nil, s.explain(ctx, err, host.LogPath)
	}
	return s.url, stop, nil
}

func pull(ctx context.Context, a *api.Client, model string, report func(lifecycle.Progress)) error {
	began := time.Now()
	layers := map[string][2]int64{} // digest: done, total
	var total int64
	err := a.Pull(ctx, &api.PullRequest{Model: model}, func(r api.ProgressResponse) error {
		p := lifecycle.Progress{Phase: "downloading", Detail: r.Status, Seconds: int(time.Since(began).Seconds())}
		if r.Digest != "" {
			layers[r.Digest] = [2]int64{r.Completed, r.Total}
		}
		for _, l := range layers {
			p.Done += l[0]
			p.Total += l[1]
		}
		if p.Total > 0 {
			p.Unit = "bytes"
		}
		total = p.Total
		report(p)
		return nil
	})
	if err == nil && total > 0 { // a small layer's end is not told
		report(lifecycle.Progress{Phase: "downloading", Done: total, Total: total, Unit: "bytes", Seconds: int(time.Since(began).Seconds())})
	}
	return err
}

// Describe is what Ollama knows of a model: the figures of its file's header, by /api/show.
func Describe(ctx context.Context, address, model string) (Figures, error) {
	s := newServer(lifecycle.Spec{Model: model}, address)
	defer s.http.CloseIdleConnections()
	info, err := s.api.Show(ctx, &api.ShowRequest{Model: model})
	if err != nil {
		return Figures{}, noModel(model, err)
	}
	return Read(info), nil
}
