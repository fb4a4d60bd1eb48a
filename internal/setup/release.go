package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"localllm/internal/engine/loopback"
	"localllm/internal/hint"
	"localllm/lifecycle"
)

// sources are the engines' own release lists.
var sources = map[string]string{
	lifecycle.Ollama:      "https://api.github.com/repos/ollama/ollama/releases/latest",
	lifecycle.LlamaServer: "https://api.github.com/repos/ggml-org/llama.cpp/releases/latest",
}

// builds are the archives for a machine, the best first.
func builds(engine, system, machine, gpu string) []string {
	if engine == lifecycle.Ollama {
		return map[string][]string{
			"linux/amd64":   {`^ollama-linux-amd64\.(tar\.zst|tgz)$`},
			"linux/arm64":   {`^ollama-linux-arm64\.(tar\.zst|tgz)$`},
			"darwin/arm64":  {`^ollama-darwin\.tgz$`},
			"darwin/amd64":  {`^ollama-darwin\.tgz$`},
			"windows/amd64": {`^ollama-windows-amd64\.zip$`},
			"windows/arm64": {`^ollama-windows-arm64\.zip$`},
		}[system+"/"+machine]
	}
	const ending = `\.(zip|tar\.gz)$`
	accelerated := gpu != "" && gpu != "none"
	found := map[string][]string{
		"linux/amd64":   {`-bin-ubuntu-x64` + ending},
		"linux/arm64":   {`-bin-ubuntu-arm64` + ending},
		"darwin/arm64":  {`-bin-macos-arm64` + ending},
		"darwin/amd64":  {`-bin-macos-x64` + ending},
		"windows/amd64": {`-bin-win-cpu-x64` + ending},
		"windows/arm64": {`-bin-win-cpu-arm64` + ending},
	}[system+"/"+machine]
	if accelerated && machine == "amd64" {
		// The project publishes no CUDA build for Linux; Vulkan runs on every vendor's GPU.
		switch system {
		case "linux":
			found = append([]string{`-bin-ubuntu-vulkan-x64` + ending}, found...)
		case "windows":
			found = append([]string{`-bin-win-vulkan-x64` + ending}, found...)
		}
	}
	return found
}

type listing struct {
	Version string  `json:"tag_name"`
	Assets  []asset `json:"assets"`
}

type asset struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	Digest string `json:"digest"` // "sha256:…"
	URL    string `json:"browser_download_url"`
}

var (
	sum     = regexp.MustCompile(`^[0-9a-f]{64}$`)
	version = regexp.MustCompile(`^[A-Za-z0-9][\w.+-]{0,60}$`)
)

// release fills the plan with the archive of the newest release.
func (o Options) release(ctx context.Context, p *Plan) error {
	text, err := o.fetch(ctx, o.Source, 8<<20)
	if err != nil {
		return hint.Add(fmt.Errorf("asking for the releases of %s: %w", o.Engine, err), "check the network and try again, or install it yourself: on the PATH it is found")
	}
	var list listing
	if err := json.Unmarshal(text, &list); err != nil || !version.MatchString(list.Version) {
		return fmt.Errorf("reading the releases of %s: the list is not in a form that setup knows", o.Engine)
	}
	a, ok := pick(list.Assets, builds(o.Engine, o.System, o.Machine, o.GPU))
	if !ok {
		return hint.New(fmt.Sprintf("%s %s has no archive for %s on %s", o.Engine, list.Version, o.System, o.Machine), "install it as its own project says")
	}
	a.Digest = strings.TrimPrefix(a.Digest, "sha256:")
	if a.Digest == "" {
		a.Digest, err = o.published(ctx, list.Assets, a.Name)
		if err != nil {
			return err
		}
	}
	if !sum.MatchString(a.Digest) {
		return hint.New(fmt.Sprintf("no checksum is published for %s, and nothing unchecked is installed", a.Name), "install it as its own project says")
	}
	if filepath.Base(a.Name) != a.Name || a.Size <= 0 {
		return fmt.Errorf("reading the releases of %s: odd archive %q of %d bytes", o.Engine, a.Name, a.Size)
	}
	if err := secure(a.URL); err != nil {
		return err
	}
	p.Via, p.Version, p.URL, p.File = Release, list.Version, a.URL, a.Name
	p.SHA256, p.Bytes, p.Into = a.Digest, a.Size, filepath.Join(o.Folder, list.Version)
	return nil
}

func pick(assets []asset, patterns []string) (asset, bool) {
	for _, pattern := range patterns {
		match := regexp.MustCompile(pattern)
		for _, a := range assets {
			if match.MatchString(a.Name) {
				return a, true
			}
		}
	}
	return asset{}, false
}

// published looks a checksum up in the list that a release carries.
func (o Options) published(ctx context.Context, assets []asset, name string) (string, error) {
	sums, ok := pick(assets, []string{`(?i)^(sha256sums?|checksums)(\.txt)?$`})
	if !ok {
		return "", nil
	}
	text, err := o.fetch(ctx, sums.URL, 1<<20)
	if err != nil {
		return "", fmt.Errorf("getting the checksums of %s: %w", o.Engine, err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 2 && strings.TrimPrefix(strings.TrimPrefix(fields[1], "*"), "./") == name {
			return strings.ToLower(fields[0]), nil
		}
	}
	return "", nil
}

func (o Options) fetch(ctx context.Context, address string, limit int64) ([]byte, error) {
	if err := secure(address); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	resp, err := o.HTTP.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("HTTP status %d", resp.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = errors.New("the answer is too long")
	}
	return text, err
}

// secure refuses what anyone on the way could change: plain HTTP, but for a server on this machine.
func secure(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("the address %q is none", address)
	}
	if u.Scheme == "https" || (u.Scheme == "http" && loopback.Here(u.Hostname())) {
		return nil
	}
	return fmt.Errorf("the address %s is not https", address)
}

func httpClient() *http.Client {
	return &http.Client{CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) > 8 {
			return errors.New("too many redirects")
		}
		return secure(req.URL.String())
	}}
}
