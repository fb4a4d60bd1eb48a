// Package setup installs an engine for people who have none. It never does anything that it has not said before,
// never becomes root, and installs nothing whose checksum is not the published one.
package setup

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"

	"localllm/internal/engine/program"
	"localllm/internal/hint"
	"localllm/lifecycle"
)

// Options say what to install and where from. Only Engine has to be set.
type Options struct {
	Engine string // lifecycle.Ollama or lifecycle.LlamaServer
	Env    []string
	Folder string                                                              // of the engine; empty: program.Folder
	Source string                                                              // release list (GitHub's form); empty: the engine's own project
	Via    string                                                              // a package manager's name or "release"; empty: what suits
	Report func(lifecycle.Progress)                                            // may be nil
	HTTP   *http.Client                                                        // for releases; nil: a client that follows redirects to https only
	Run    func(ctx context.Context, argv []string) (output string, err error) // nil: runs it

	System, Machine string // GOOS and GOARCH; empty: this machine's
	GPU             string // vendor of the GPU, where known: picks among a release's builds
	Root            *bool  // nil: whether this process is root
}

// Release is the way of a release archive, as opposed to a package manager.
const Release = "release"

// Plan is what setup would do.
type Plan struct {
	Engine    string   `json:"engine"`
	Via       string   `json:"via"`               // a package manager's name, or "release"
	Command   []string `json:"command,omitempty"` // of the package manager
	Version   string   `json:"version,omitempty"`
	URL       string   `json:"url,omitempty"`
	File      string   `json:"file,omitempty"`
	SHA256    string   `json:"sha256,omitempty"`
	Bytes     int64    `json:"bytes,omitempty"`
	Into      string   `json:"into,omitempty"`
	Present   string   `json:"present,omitempty"` // a usable binary that is there already: nothing to do
	Otherwise []string `json:"otherwise,omitempty"`
}

// Words is the plan in sentences, for people to say yes to.
func (p Plan) Words() []string {
	var words []string
	switch {
	case p.Present != "":
		words = append(words, fmt.Sprintf("%s is there already: %s", p.Engine, p.Present))
	case p.Via == Release:
		words = append(words,
			fmt.Sprintf("download %s %s (%s) from %s", p.Engine, p.Version, size(p.Bytes), p.URL),
			fmt.Sprintf("check its SHA-256 (%s)", p.SHA256),
			fmt.Sprintf("unpack it into %s", p.Into))
	default:
		words = append(words, "run "+strings.Join(p.Command, " "))
	}
	for _, other := range p.Otherwise {
		words = append(words, "or do it yourself: "+other)
	}
	return words
}

func size(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d KB", (n+1023)>>10)
	}
	return fmt.Sprintf("%d MB", n>>20)
}

func (o Options) filled() (Options, error) {
	if o.Engine != lifecycle.Ollama && o.Engine != lifecycle.LlamaServer {
		return o, hint.New(fmt.Sprintf("setup knows no engine %q", o.Engine), "name "+lifecycle.Ollama+" or "+lifecycle.LlamaServer)
	}
	if o.Env == nil {
		o.Env = os.Environ()
	}
	if o.System == "" {
		o.System = runtime.GOOS
	}
	if o.Machine == "" {
		o.Machine = runtime.GOARCH
	}
	if o.Report == nil {
		o.Report = func(lifecycle.Progress) {}
	}
	if o.Root == nil {
		root := os.Getuid() == 0
		o.Root = &root
	}
	if o.Run == nil {
		o.Run = o.run
	}
	if o.HTTP == nil {
		o.HTTP = httpClient()
	}
	if o.Source == "" {
		o.Source = sources[o.Engine]
	}
	if o.Folder == "" {
		folder, err := program.Folder(o.Engine)
		if err != nil {
			return o, err
		}
		o.Folder = folder
	}
	return o, nil
}

// Prepare finds out what would be done, and changes nothing.
func Prepare(ctx context.Context, o Options) (Plan, error) {
	o, err := o.filled()
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Engine: o.Engine}
	if path, _, err := program.Find(o.Engine, o.Env); err == nil && o.Via == "" {
		p.Present = path
		return p, nil
	}
	if o.Via != Release {
		found, err := o.manager(ctx, &p)
		if err != nil || found {
			return p, err
		}
	}
	return p, o.release(ctx, &p)
}

// Do carries out a plan. It can be called again after an interruption and goes on where it was.
func Do(ctx context.Context, o Options, p Plan) (string, error) {
	o, err := o.filled()
	if err != nil {
		return "", err
	}
	switch {
	case p.Present != "":
		return p.Present, nil
	case p.Via == Release:
		return o.install(ctx, p)
	}
	o.Report(lifecycle.Progress{Phase: "installing", Detail: strings.Join(p.Command, " ")})
	if text, err := o.Run(ctx, p.Command); err != nil {
		return "", hint.Add(fmt.Errorf("%s did not install %s: %w", p.Via, o.Engine, withTail(err, text)), "try again with --via release")
	}
	path, _, err := program.Find(o.Engine, o.Env)
	if err != nil {
		return "", hint.Add(fmt.Errorf("%s has installed %s, but it is not on PATH", p.Via, o.Engine), "open a new shell and try again")
	}
	return path, o.remember(p)
}
