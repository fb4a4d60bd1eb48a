package survey

import (
	"os"
	"path/filepath"
	"testing"
)

// The dry run is another program's output, of whatever version.
func FuzzPlan(f *testing.F) {
	f.Add("Host 4096 512 128\n")
	f.Add("CUDA0 1 2 3\nHost 0 0 0\nnoise of three words\n")
	f.Add("Host -1 2 3\nHost 99999999999999999999 1 1\n")
	f.Add("Host 1099511627775 1099511627775 1099511627775")
	f.Fuzz(func(t *testing.T, text string) {
		plan, err := parsePlan(text)
		if (err == nil) != (len(plan) > 0) {
			t.Fatalf("%d lines and %v", len(plan), err)
		}
		for _, p := range plan {
			if p.Device == "" || p.WeightsBytes < 0 || p.ContextBytes < 0 || p.ComputeBytes < 0 {
				t.Errorf("%+v", p)
			}
		}
	})
}

// Ollama's manifests are read from its store behind its back.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:ab","size":5},{"mediaType":"application/vnd.ollama.image.projector","size":7}]}`))
	f.Add([]byte(`{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"../../../etc/passwd","size":1}]}`))
	f.Add([]byte(`{"layers":[{"size":9223372036854775807},{"size":9223372036854775807}]}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		store := t.TempDir()
		root := filepath.Join(store, "manifests")
		path := filepath.Join(root, "registry.example", "library", "m", "latest")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		m, ok := readManifest(store, root, path)
		if !ok {
			return
		}
		if m.size < 0 || m.projector < 0 || m.adapters < 0 || m.projector > m.size {
			t.Errorf("sizes %+v", m)
		}
		if m.blob != "" && filepath.Dir(m.blob) != filepath.Join(store, "blobs") {
			t.Errorf("a blob outside of the store: %s", m.blob)
		}
	})
}
