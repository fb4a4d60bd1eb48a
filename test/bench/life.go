//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"localllm/internal/engine/child"
)

const coldRounds = 9

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// coldJoinedStop plays, in turns with a server started by hand, the life of an engine that two sessions share.
func coldJoinedStop(ctx context.Context, b *box) ([]row, error) {
	var hand, cold, load, warm, joined, first, stop, ended []float64
	for range coldRounds {
		took, err := b.byHand(ctx)
		if err != nil {
			return nil, fmt.Errorf("by hand: %w", err)
		}
		l, err := b.life(ctx)
		if err != nil {
			return nil, err
		}
		hand, cold, joined, first = append(hand, ms(took)), append(cold, ms(l.cold)), append(joined, ms(l.joined)), append(first, ms(l.first))
		stop, ended = append(stop, ms(l.stop)), append(ended, ms(l.ended))
		load, warm = append(load, l.loadMS), append(warm, l.warmMS)
	}
	rows := []row{
		{Name: "llama-server started by hand, to its first token", Unit: "ms", Samples: hand},
		{Name: "enable, cold, with llama-server", Unit: "ms", Samples: cold, Note: "in turns with the line above; from the call to its answer, keeper's start and estimate included"},
		{Name: "of that, until the engine was ready, as the keeper counts", Unit: "ms", Samples: load},
		{Name: "of that, warming: the first prompt that every delegation begins with", Unit: "ms", Samples: warm},
		{Name: "a second session joins", Unit: "ms", Samples: joined, Limit: 50},
		{Name: "first answer after enable", Unit: "ms", Samples: first, Note: "a delegation in text mode, whole"},
		{Name: "disable by the last session", Unit: "ms", Samples: stop, Limit: 2000},
		{Name: "from that call until no engine process is left", Unit: "ms", Samples: ended, Limit: 2000},
	}
	base := rows[0].median()
	rows[1].Limit = max(base*1.1, base+200)
	rows[1].Promise = fmt.Sprintf("1.10 times by hand, or 200 ms more: under %s ms", number(rows[1].Limit))
	rows[1].Note += fmt.Sprintf("; %.2f times by hand", rows[1].median()/base)
	return rows, nil
}

type life struct {
	cold, joined, first, stop, ended time.Duration
	loadMS, warmMS                   float64 // of cold
}

func (b *box) life(ctx context.Context) (l life, err error) {
	home, env, err := b.home()
	if err != nil {
		return l, err
	}
	one, err := b.client(ctx, home, env)
	if err != nil {
		return l, err
	}
	defer one.close()
	two, err := b.client(ctx, home, env)
	if err != nil {
		return l, err
	}
	defer two.close()
	enable := map[string]any{"action": "enable", "model": b.model, "engine": "llama-server", "context": 8192}
	var e struct {
		Started string
		LoadMS  float64 `json:"load_ms"`
		WarmMS  float64 `json:"warm_ms"`
	}
	if l.cold, err = one.call(enable, &e); err != nil || e.Started != "cold" {
		return l, unexpected("enable", e.Started, err)
	}
	l.loadMS, l.warmMS = e.LoadMS, e.WarmMS
	if l.joined, err = two.call(enable, &e); err != nil || e.Started != "joined" {
		return l, unexpected("the second enable", e.Started, err)
	}
	var answer struct{ Status string }
	if l.first, err = one.call(map[string]any{"action": "delegate", "task": "is it so?", "mode": "text"}, &answer); err != nil || answer.Status != "answered" {
		return l, unexpected("the first answer", answer.Status, err)
	}
	var left struct{ Stopped bool }
	disable := map[string]any{"action": "disable"}
	if _, err := one.call(disable, &left); err != nil || left.Stopped {
		return l, unexpected("the first disable", fmt.Sprint("stopped ", left.Stopped), err)
	}
	began := time.Now()
	if l.stop, err = two.call(disable, &left); err != nil || !left.Stopped {
		return l, unexpected("the last disable", fmt.Sprint("stopped ", left.Stopped), err)
	}
	err = until(ctx, 20*time.Second, func() bool { return len(processes(home, "llama-server")) == 0 })
	l.ended = time.Since(began)
	return l, err
}

func unexpected(what, got string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Errorf("%s came out as %q", what, got)
}

// byHand starts the same server as a person would, and stops it after its first token.
func (b *box) byHand(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	url, stop, err := b.server(ctx, b.model, 8192)
	if err != nil {
		return 0, err
	}
	defer stop()
	_, err = post(ctx, url+"/completion", `{"prompt":"1","n_predict":1}`)
	took := time.Since(began)
	if err != nil {
		return 0, err
	}
	return took, b.ours(url)
}

// ours makes sure that it was our server that answered: another program may have taken the port before it did.
func (b *box) ours(url string) error {
	resp, err := http.Get(url + "/props")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err == nil && !bytes.Contains(text, []byte(b.dir)) {
		err = fmt.Errorf("another server answers at %s", url)
	}
	return err
}

func (b *box) server(ctx context.Context, model string, context int) (url string, stop func(), err error) {
	port, err := child.FreePort()
	if err != nil {
		return "", nil, err
	}
	log, err := os.Create(filepath.Join(b.dir, "by-hand.log"))
	if err != nil {
		return "", nil, err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, b.engines.LlamaServer, "-m", model, "--host", "127.0.0.1", "--port", strconv.Itoa(port), "-c", strconv.Itoa(context), "-np", "1", "--offline")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}
	url = "http://127.0.0.1:" + strconv.Itoa(port)
	err = until(ctx, 5*time.Minute, func() bool {
		resp, err := http.Get(url + "/health")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	if err != nil {
		stop()
	}
	return url, stop, err
}

func post(ctx context.Context, url, body string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, bytes.TrimSpace(text))
	}
	return text, err
}
