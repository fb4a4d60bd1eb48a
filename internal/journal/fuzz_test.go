package journal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"localllm/internal/treefile"
)

// Whatever a crash or a disk left in a log, nothing outside of the tree and the journal's own folders is touched.
func FuzzLog(f *testing.F) {
	const head = `{"head":{"format":1,"id":"t","root":"/nowhere","begun":"2026-01-01T00:00:00Z"}}` + "\n"
	hash := Sum([]byte("ours"))
	f.Add(head + `{"path":"a","was":{"exists":true,"mode":416,"time":1,"hash":"` + Sum([]byte("before")) + `","copy":"0.copy"}}` + "\n" +
		`{"path":"a","write":"` + hash + `","temp":".localllm-x"}` + "\n" + `{"dir":"new"}` + "\n" + `{"path":"new/c","was":{"exists":false}}` + "\n" + `{"path":"new/c","wri`)
	f.Add(head + `{"path":"../outside","was":{}}` + "\n" + `{"path":"../outside","write":"` + Sum([]byte("theirs")) + `","temp":"../../outside"}` + "\n" + `{"dir":".."}` + "\n" + `{"dir":"../.."}`)
	f.Add(head + `{"path":"a","was":{"exists":true,"copy":"../../../outside"}}` + "\n" + `{"path":"a","write":"` + hash + `"}` + "\n" + `{"path":"","write":"x"}`)
	f.Add(`{"path":"a","was":{}}`)
	f.Fuzz(func(t *testing.T, log string) {
		home := t.TempDir()
		put := func(name, text string) {
			path := filepath.Join(home, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		put("outside", "theirs")
		put("tree/a", "ours")
		put("state/journal/0.copy", "before")
		j := &Journal{dir: filepath.Join(home, "state", "journal"), byPath: map[string]*entry{}, saved: filepath.Join(home, "state", "saved", "t")}
		h, err := j.read(strings.NewReader(log))
		if err != nil || h == nil {
			return
		}
		if j.root, err = treefile.Open(filepath.Join(home, "tree")); err != nil {
			t.Fatal(err)
		}
		defer j.root.Close()
		_, _ = j.restore()
		if text, err := os.ReadFile(filepath.Join(home, "outside")); string(text) != "theirs" {
			t.Errorf("a file outside holds %q, %v", text, err)
		}
		left, err := os.ReadDir(home)
		if err != nil || len(left) != 3 {
			t.Errorf("beside the tree: %v, %v", left, err)
		}
	})
}
