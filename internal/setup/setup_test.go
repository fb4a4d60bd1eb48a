package setup

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"localllm/internal/engine/program"
	"localllm/internal/hint"
	"localllm/internal/paths"
	"localllm/lifecycle"
)

func TestMain(m *testing.M) {
	program.Usual = nil
	os.Exit(m.Run())
}

type entry struct {
	name, text, link string
	mode             int64
	kind             byte
}

// engine is an archive's content as the projects ship it: a program, a library and a link to it.
var engine = []entry{
	{name: "llama-b7000/llama-server", text: "#!/bin/sh\nexit 0\n", mode: 0o755},
	{name: "llama-b7000/libllama.so.0", text: strings.Repeat("library ", 50_000), mode: 0o644},
	{name: "llama-b7000/libllama.so", link: "libllama.so.0", kind: tar.TypeSymlink},
	{name: "llama-b7000/lib/ollama/llama-server", text: "#!/bin/sh\nexit 3\n", mode: 0o755},
}

func tarball(t *testing.T, entries []entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Size: int64(len(e.text)), Mode: e.mode, Typeflag: e.kind, Linkname: e.link}
		if e.kind == 0 {
			h.Typeflag = tar.TypeReg
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(w, e.text)
	}
	_ = w.Close()
	return b.Bytes()
}

func packed(t *testing.T, ending string, entries []entry) []byte {
	t.Helper()
	var b bytes.Buffer
	switch ending {
	case ".tar.gz", ".tgz":
		z := gzip.NewWriter(&b)
		_, _ = z.Write(tarball(t, entries))
		_ = z.Close()
	case ".tar.zst":
		z, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = z.Write(tarball(t, entries))
		_ = z.Close()
	case ".zip":
		z := zip.NewWriter(&b)
		for _, e := range entries {
			h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
			mode, text := os.FileMode(e.mode), e.text
			if e.kind == tar.TypeSymlink {
				mode, text = os.ModeSymlink|0o777, e.link
			}
			h.SetMode(mode)
			w, err := z.CreateHeader(h)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(w, text)
		}
		_ = z.Close()
	}
	return b.Bytes()
}

// site serves a release list and one archive, as the projects' own site does.
type site struct {
	*httptest.Server
	file    string
	data    []byte
	digest  string // what is published; empty: the right one
	sums    bool   // in a list instead of beside the archive
	breakAt int    // bytes after which each connection breaks; 0: never
	ranges  []string
	gets    int
}

func serve(t *testing.T, s *site) *site {
	t.Helper()
	right := sha256.Sum256(s.data)
	if s.digest == "" {
		s.digest = hex.EncodeToString(right[:])
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/latest", func(w http.ResponseWriter, r *http.Request) {
		a := []map[string]any{{"name": "notes.txt", "size": 3, "browser_download_url": s.URL + "/notes.txt"}}
		one := map[string]any{"name": s.file, "size": len(s.data), "browser_download_url": s.URL + "/archive"}
		if s.sums {
			a = append(a, map[string]any{"name": "sha256sum.txt", "size": 100, "browser_download_url": s.URL + "/sums"})
		} else {
			one["digest"] = "sha256:" + s.digest
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"tag_name": "b7000", "assets": append(a, one)})
	})
	mux.HandleFunc("/sums", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "%s  ./other.zip\n%s  ./%s\n", strings.Repeat("0", 64), s.digest, s.file)
	})
	mux.HandleFunc("/archive", func(w http.ResponseWriter, r *http.Request) {
		s.gets++
		s.ranges = append(s.ranges, r.Header.Get("Range"))
		from := 0
		if spec, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok {
			from, _ = strconv.Atoi(strings.TrimSuffix(spec, "-"))
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(s.data)-1, len(s.data)))
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(s.data)-from))
		if from > 0 {
			w.WriteHeader(http.StatusPartialContent)
		}
		rest := s.data[from:]
		if s.breakAt > 0 && len(rest) > s.breakAt {
			_, _ = w.Write(rest[:s.breakAt])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(rest)
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func options(t *testing.T, s *site) Options {
	t.Helper()
	t.Setenv(paths.HomeVariable, t.TempDir())
	no := false
	o := Options{Engine: lifecycle.LlamaServer, Via: Release, System: "linux", Machine: "amd64", Root: &no, Env: []string{"PATH=/usr/bin:/bin"}}
	if s != nil {
		o.Source = s.URL + "/latest"
	}
	return o
}

func TestWholeArchives(t *testing.T) {
	for _, ending := range []string{".tar.gz", ".zip"} {
		for _, sums := range []bool{false, true} {
			t.Run(fmt.Sprint(ending, " sums ", sums), func(t *testing.T) {
				s := serve(t, &site{file: "llama-b7000-bin-ubuntu-x64" + ending, data: packed(t, ending, engine), sums: sums})
				o := options(t, s)
				var reported lifecycle.Progress
				o.Report = func(p lifecycle.Progress) {
					if p.Phase == "downloading" {
						reported = p
					}
				}
				p, err := Prepare(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				if words := strings.Join(p.Words(), "\n"); !strings.Contains(words, p.SHA256) || !strings.Contains(words, p.Into) || !strings.Contains(words, "/archive") {
					t.Errorf("the plan does not say all: %s", words)
				}
				if s.gets > 0 {
					t.Error("downloaded before the yes")
				}
				path, err := Do(t.Context(), o, p)
				if err != nil {
					t.Fatal(err)
				}
				if reported.Done != p.Bytes || reported.Total != p.Bytes {
					t.Errorf("last progress %+v of %d bytes", reported, p.Bytes)
				}
				found, where, err := program.Find(lifecycle.LlamaServer, o.Env)
				if err != nil || found != path || where != program.BySetup {
					t.Errorf("Find = %s, %s, %v; installed %s", found, where, err, path)
				}
				if target, err := os.Readlink(filepath.Join(filepath.Dir(path), "libllama.so")); err != nil || target != "libllama.so.0" {
					t.Errorf("link %q, %v", target, err)
				}
				again := o
				again.Via = ""
				if p, err := Prepare(t.Context(), again); err != nil || p.Present != path {
					t.Errorf("a second Prepare = %+v, %v", p, err)
				}
				if second, err := Do(t.Context(), o, p); err != nil || second != path || s.gets != 1 {
					t.Errorf("a second Do = %s, %v after %d downloads", second, err, s.gets)
				}
				if removed, err := Remove(t.Context(), o); err != nil || removed.Folder == "" {
					t.Fatalf("Remove = %+v, %v", removed, err)
				}
				if _, _, err := program.Find(lifecycle.LlamaServer, o.Env); !errors.Is(err, program.ErrNone) {
					t.Errorf("after Remove: %v", err)
				}
				if _, err := Remove(t.Context(), o); err == nil || len(hint.Of(err)) == 0 {
					t.Errorf("a second Remove = %v", err)
				}
			})
		}
	}
}

func TestOllamasArchiveIsZstandard(t *testing.T) {
	content := []entry{{name: "bin/ollama", text: "#!/bin/sh\nexit 0\n", mode: 0o755}, {name: "lib/ollama/llama-server", text: "x", mode: 0o755}}
	s := serve(t, &site{file: "ollama-linux-amd64.tar.zst", data: packed(t, ".tar.zst", content)})
	o := options(t, s)
	o.Engine = lifecycle.Ollama
	p, err := Prepare(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	path, err := Do(t.Context(), o, p)
	if err != nil || !strings.HasSuffix(path, "bin/ollama") {
		t.Errorf("Do = %s, %v", path, err)
	}
}

func TestBrokenConnectionIsGoneOnWith(t *testing.T) {
	data := packed(t, ".zip", engine)
	s := serve(t, &site{file: "llama-b7000-bin-ubuntu-x64.zip", data: data, breakAt: len(data)/2 + 1})
	o := options(t, s)
	p, err := Prepare(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Do(t.Context(), o, p); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("bytes=%d-", len(data)/2+1); len(s.ranges) != 2 || s.ranges[1] != want {
		t.Errorf("asked for %q, want the rest (%s)", s.ranges, want)
	}
}

func TestInterruptedSetupIsResumed(t *testing.T) {
	data := packed(t, ".zip", engine)
	s := serve(t, &site{file: "llama-b7000-bin-ubuntu-x64.zip", data: data, breakAt: len(data) / 6})
	o := options(t, s)
	p, err := Prepare(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Do(t.Context(), o, p); err == nil || len(hint.Of(err)) == 0 {
		t.Fatalf("Do = %v over a line that breaks again and again", err)
	}
	if _, _, err := program.Find(lifecycle.LlamaServer, o.Env); err == nil {
		t.Error("half an engine is found")
	}
	s.breakAt = 0
	if _, err := Do(t.Context(), o, p); err != nil {
		t.Fatal(err)
	}
	if last := s.ranges[len(s.ranges)-1]; last != fmt.Sprintf("bytes=%d-", 3*(len(data)/6)) {
		t.Errorf("the last request asked for %q", last)
	}
}

func TestWrongArchives(t *testing.T) {
	good := packed(t, ".zip", engine)
	with := func(e entry) []byte { return packed(t, ".tar.gz", append(append([]entry(nil), engine...), e)) }
	for _, c := range []struct {
		name string
		site site
		want string
	}{
		{"wrong sum", site{file: "a-bin-ubuntu-x64.zip", data: good, digest: strings.Repeat("ab", 32)}, "SHA-256"},
		{"no sum", site{file: "a-bin-ubuntu-x64.zip", data: good, digest: "md5:1"}, "no checksum"},
		{"no archive for this machine", site{file: "a-bin-win-cpu-x64.zip", data: good}, "no archive"},
		{"not an archive", site{file: "a-bin-ubuntu-x64.zip", data: []byte("hello")}, "unpacking"},
		{"cut off inside", site{file: "a-bin-ubuntu-x64.tar.gz", data: packed(t, ".tar.gz", engine)[:60]}, "unpacking"},
		{"climbs out", site{file: "a-bin-ubuntu-x64.tar.gz", data: with(entry{name: "../../evil", text: "x"})}, "leads out"},
		{"absolute", site{file: "a-bin-ubuntu-x64.tar.gz", data: with(entry{name: "/tmp/evil", text: "x"})}, "leads out"},
		{"link out", site{file: "a-bin-ubuntu-x64.tar.gz", data: with(entry{name: "l", link: "../../..", kind: tar.TypeSymlink})}, "leads out"},
		{"absolute link", site{file: "a-bin-ubuntu-x64.tar.gz", data: with(entry{name: "l", link: "/etc", kind: tar.TypeSymlink})}, "leads out"},
		{"hard link", site{file: "a-bin-ubuntu-x64.tar.gz", data: with(entry{name: "l", link: "llama-b7000/llama-server", kind: tar.TypeLink})}, "hard link"},
		{"device", site{file: "a-bin-ubuntu-x64.tar.gz", data: with(entry{name: "d", kind: tar.TypeFifo})}, "neither"},
		{"twice the same", site{file: "a-bin-ubuntu-x64.tar.gz", data: with(engine[0])}, "exists"},
		{"without the engine", site{file: "a-bin-ubuntu-x64.tar.gz", data: packed(t, ".tar.gz", []entry{{name: "README", text: "x"}})}, "holds no llama-server"},
		{"does not run", site{file: "a-bin-ubuntu-x64.tar.gz", data: packed(t, ".tar.gz", []entry{{name: "llama-server", text: "#!/bin/sh\necho GLIBC_9.9 not found; exit 1\n", mode: 0o755}})}, "GLIBC_9.9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, &c.site)
			o := options(t, s)
			p, err := Prepare(t.Context(), o)
			if err == nil {
				_, err = Do(t.Context(), o, p)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("err = %v, want %q", err, c.want)
			}
			if _, _, err := program.Find(lifecycle.LlamaServer, o.Env); !errors.Is(err, program.ErrNone) {
				t.Errorf("something is found: %v", err)
			}
			if p.Into != "" {
				for _, left := range []string{p.Into, p.Into + ".new"} {
					if _, err := os.Stat(left); err == nil {
						t.Errorf("%s is left", left)
					}
				}
			}
		})
	}
}

func TestPlainHTTPIsRefused(t *testing.T) {
	o := options(t, nil)
	o.Source = "http://releases.invalid/latest"
	if _, err := Prepare(t.Context(), o); err == nil || !strings.Contains(err.Error(), "not https") {
		t.Errorf("Prepare = %v", err)
	}
	leads := httptest.NewServer(http.RedirectHandler("http://releases.invalid/x", http.StatusFound))
	defer leads.Close()
	o.Source = leads.URL
	if _, err := Prepare(t.Context(), o); err == nil || !strings.Contains(err.Error(), "not https") {
		t.Errorf("after a redirect: Prepare = %v", err)
	}
}

func TestCancelKeepsWhatArrived(t *testing.T) {
	data := packed(t, ".zip", engine)
	s := serve(t, &site{file: "llama-b7000-bin-ubuntu-x64.zip", data: data})
	o := options(t, s)
	p, err := Prepare(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Do(ctx, o, p); !errors.Is(err, context.Canceled) {
		t.Errorf("Do = %v", err)
	}
}
