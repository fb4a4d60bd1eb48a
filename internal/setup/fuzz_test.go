package setup

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"localllm/lifecycle"
)

type answers func(*http.Request) string

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r, Body: io.NopCloser(strings.NewReader(a(r)))}, nil
}

// A list of releases comes from outside: a plan made of it stays in its folder, is checked and comes over https.
func FuzzRelease(f *testing.F) {
	sha := strings.Repeat("a1", 32)
	f.Add(`{"tag_name":"v0.34.2","assets":[{"name":"ollama-linux-amd64.tgz","size":5,"digest":"sha256:`+sha+`","browser_download_url":"https://example.com/x"}]}`, "")
	f.Add(`{"tag_name":"v1","assets":[{"name":"ollama-linux-amd64.tar.zst","size":5,"browser_download_url":"https://example.com/x"},{"name":"SHA256SUMS","browser_download_url":"https://example.com/s"}]}`, sha+"  *./ollama-linux-amd64.tar.zst\n")
	f.Add(`{"tag_name":"../..","assets":[{"name":"ollama-linux-amd64.tgz","size":-1,"digest":"sha256:","browser_download_url":"http://example.com"}]}`, "x")
	f.Fuzz(func(t *testing.T, list, sums string) {
		folder := t.TempDir()
		o := Options{Engine: lifecycle.Ollama, System: "linux", Machine: "amd64", Folder: folder, Source: "https://example.com/list", HTTP: &http.Client{Transport: answers(func(r *http.Request) string {
			if r.URL.String() == "https://example.com/list" {
				return list
			}
			return sums
		})}}
		var p Plan
		if o.release(t.Context(), &p) != nil {
			return
		}
		if filepath.Dir(p.Into) != folder || p.File != filepath.Base(p.File) || !sum.MatchString(p.SHA256) || p.Bytes <= 0 || secure(p.URL) != nil {
			t.Errorf("%+v", p)
		}
	})
}
