// Package chromium gives tests a real browser that they can ask what a page did. It is for tests only: no part of
// the program opens a browser.
package chromium

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"localllm/internal/filelock"
)

// Provide finds Chromium or, as root on Debian, installs it.
func Provide(ctx context.Context) (string, error) {
	if path := find(); path != "" {
		return path, nil
	}
	const sentence = "these tests need Chromium: install the Debian package chromium, or run them as root where apt-get can"
	apt, err := exec.LookPath("apt-get")
	if err != nil || os.Getuid() != 0 {
		return "", errors.New(sentence)
	}
	lock, err := filelock.Take(ctx, filepath.Join(os.TempDir(), "localllm-chromium.lock"))
	if err != nil {
		return "", fmt.Errorf("waiting to install chromium: %w", err)
	}
	defer lock.Release()
	if path := find(); path != "" {
		return path, nil
	}
	var said []byte
	for _, args := range [][]string{{"update", "-qq"}, {"install", "-y", "-qq", "--no-install-recommends", "chromium"}} {
		cmd := exec.CommandContext(ctx, apt, args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if said, err = cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s; apt-get %s: %w: %s", sentence, args[0], err, said[max(0, len(said)-500):])
		}
	}
	if path := find(); path != "" {
		return path, nil
	}
	return "", errors.New(sentence)
}

func find() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// Browser is one headless Chromium with one page, driven over a pipe. It is for one goroutine.
type Browser struct {
	cmd     *exec.Cmd
	stop    context.CancelFunc
	profile string
	in      *os.File
	session string
	nextID  int
	stderr  strings.Builder

	mu       sync.Mutex
	answers  map[int]chan message
	requests []string
	console  []string
	loaded   chan struct{}
	read     chan struct{} // closed when the pipe has ended
}

type message struct {
	ID      int             `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// Start runs the browser at path with a fresh profile; Close ends it.
func Start(ctx context.Context, path string) (*Browser, error) {
	profile, err := os.MkdirTemp("", "localllm-chromium-")
	if err != nil {
		return nil, fmt.Errorf("starting the browser: %w", err)
	}
	b := &Browser{profile: profile, answers: map[int]chan message{}, loaded: make(chan struct{}, 1), read: make(chan struct{})}
	if err := b.start(ctx, path); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the browser: %w", err), b.Close())
	}
	return b, nil
}

func (b *Browser) start(ctx context.Context, path string) error {
	theirIn, in, err := os.Pipe()
	if err != nil {
		return err
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		return err
	}
	ctx, b.stop = context.WithCancel(ctx)
	b.in = in
	b.cmd = exec.CommandContext(ctx, path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
		"--hide-scrollbars", "--user-data-dir="+b.profile, "--remote-debugging-pipe", "about:blank")
	b.cmd.Env = append(os.Environ(), "HOME="+b.profile, "XDG_CONFIG_HOME="+b.profile, "XDG_CACHE_HOME="+b.profile)
	b.cmd.ExtraFiles = []*os.File{theirIn, theirOut} // the browser's 3 and 4
	b.cmd.Stderr = &b.stderr
	b.cmd.WaitDelay = 10 * time.Second
	inOwnGroup(b.cmd)
	err = b.cmd.Start()
	_, _ = theirIn.Close(), theirOut.Close()
	if err != nil {
		b.cmd = nil
		_ = out.Close()
		close(b.read)
		return err
	}
	go b.listen(out) // ends when the browser does
	var target struct {
		ID string `json:"targetId"`
	}
	if err := b.Call("Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		return err
	}
	var session struct {
		ID string `json:"sessionId"`
	}
	if err := b.Call("Target.attachToTarget", map[string]any{"targetId": target.ID, "flatten": true}, &session); err != nil {
		return err
	}
	b.session = session.ID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		if err := b.Call(domain+".enable", nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// listen takes the browser's messages, each ended by a NUL, until the pipe ends.
func (b *Browser) listen(out *os.File) {
	defer close(b.read)
	defer out.Close()
	r := bufio.NewReaderSize(out, 1<<20)
	for {
		raw, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(raw[:len(raw)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		if m.ID != 0 {
			if answer := b.answers[m.ID]; answer != nil {
				delete(b.answers, m.ID)
				answer <- m
			}
		} else {
			b.event(m)
		}
		b.mu.Unlock()
	}
}

func (b *Browser) event(m message) {
	var p struct {
		Request struct {
			URL string `json:"url"`
		} `json:"request"`
		Entry struct {
			Level string `json:"level"`
			Text  string `json:"text"`
		} `json:"entry"`
		Type string `json:"type"`
	}
	_ = json.Unmarshal(m.Params, &p)
	switch m.Method {
	case "Network.requestWillBeSent":
		b.requests = append(b.requests, p.Request.URL)
	case "Log.entryAdded":
		b.console = append(b.console, p.Entry.Level+": "+p.Entry.Text)
	case "Runtime.consoleAPICalled", "Runtime.exceptionThrown":
		b.console = append(b.console, m.Method+" "+p.Type+": "+string(m.Params))
	case "Page.loadEventFired":
		select {
		case b.loaded <- struct{}{}:
		default:
		}
	}
}

// answerTime is how long the browser may take for anything, on a machine that is busy.
const answerTime = 90 * time.Second

// Call sends one command of the DevTools protocol and fills result, if it isn't nil.
func (b *Browser) Call(method string, params any, result any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	if params == nil {
		raw = []byte("{}")
	}
	b.nextID++
	answer := make(chan message, 1)
	b.mu.Lock()
	b.answers[b.nextID] = answer
	b.mu.Unlock()
	sent, err := json.Marshal(message{ID: b.nextID, Method: method, Session: b.session, Params: raw})
	if err != nil {
		return err
	}
	if _, err := b.in.Write(append(sent, 0)); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case m := <-answer:
		if m.Error != nil {
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(m.Result, result)
	case <-b.read:
		return fmt.Errorf("%s: the browser ended: %w", method, io.ErrUnexpectedEOF)
	case <-time.After(answerTime):
		return fmt.Errorf("%s: no answer in %v", method, answerTime)
	}
}

// Open shows a URL and returns when it has loaded. What it asked for and said is counted from here.
func (b *Browser) Open(url string) error {
	b.mu.Lock()
	b.requests, b.console = nil, nil
	b.mu.Unlock()
	select {
	case <-b.loaded:
	default:
	}
	var nav struct {
		Error string `json:"errorText"`
	}
	if err := b.Call("Page.navigate", map[string]any{"url": url}, &nav); err != nil {
		return err
	}
	if nav.Error != "" {
		return fmt.Errorf("opening %s: %s", url, nav.Error)
	}
	select {
	case <-b.loaded:
		return nil
	case <-time.After(answerTime):
		return fmt.Errorf("opening %s: not loaded in %v", url, answerTime)
	}
}

// Requests are the URLs that the page asked for, its own first.
func (b *Browser) Requests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.requests...)
}

// Console is what was said on the console, errors of the page included.
func (b *Browser) Console() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.console...)
}

// Eval runs an expression in the page and fills result with its value.
func (b *Browser) Eval(expression string, result any) error {
	var out struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text string `json:"text"`
		} `json:"exceptionDetails"`
	}
	err := b.Call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &out)
	if err != nil {
		return err
	}
	if out.Exception != nil {
		return fmt.Errorf("evaluating %.80s: %s", expression, out.Exception.Text)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(out.Result.Value, result)
}

// Look sets the width and the colour scheme, «light» or «dark», and the medium, «screen» or «print».
func (b *Browser) Look(width int, scheme, medium string) error {
	if err := b.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil); err != nil {
		return err
	}
	return b.Call("Emulation.setEmulatedMedia", map[string]any{
		"media": medium, "features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}},
	}, nil)
}

// Screenshot is the whole page as PNG.
func (b *Browser) Screenshot() ([]byte, error) {
	var out struct {
		Data string `json:"data"`
	}
	if err := b.Call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &out); err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(out.Data)
}

// Close ends the browser and all of its processes, and removes its profile.
func (b *Browser) Close() error {
	if b.cmd != nil {
		_ = b.in.Close()
		b.stop()
		_ = b.cmd.Wait()
		endGroup(b.cmd)
		<-b.read
	}
	var err error
	for range 50 { // helpers of the browser may still be writing as they die
		if err = os.RemoveAll(b.profile); err == nil {
			return nil
		}
	}
	return err
}
