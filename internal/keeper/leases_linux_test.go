package keeper

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"localllm/internal/filelock"
	"localllm/internal/paths"
	"localllm/lifecycle"
)

func testFolder(t *testing.T) folder {
	t.Helper()
	home := t.TempDir()
	f := folder{paths.Layout{Run: filepath.Join(home, "run"), State: filepath.Join(home, "state")}}
	if err := f.make(); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestLeaseIsLockedBeforeItIsSeen(t *testing.T) {
	f := testFolder(t)
	h, err := f.createLease(lifecycle.Lease{Kind: lifecycle.Held, Who: "x", Client: self()})
	if err != nil {
		t.Fatal(err)
	}
	seen, err := f.observe()
	if err != nil || len(seen) != 1 || !seen[0].Locked || seen[0].Ended || !seen[0].ClientAlive || seen[0].Who != "x" {
		t.Fatalf("%+v, %v", seen, err)
	}
	h.end()
	h.end() // twice is no harm
	if seen, _ = f.observe(); len(seen) != 1 || !seen[0].Ended || seen[0].Locked {
		t.Errorf("after its end: %+v", seen)
	}
}

func TestHalfMadeLease(t *testing.T) {
	// A client killed while it made a lease leaves a file that nobody counts, and the next one removes it.
	f := testFolder(t)
	half := filepath.Join(f.leases(), newPrefix+"x")
	odd := filepath.Join(f.leases(), "odd.json")
	for path, text := range map[string]string{half: "{", odd: "no lease"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	seen, err := f.observe()
	if err != nil || len(seen) != 1 || seen[0].Counts() {
		t.Fatalf("%+v, %v", seen, err)
	}
	f.sweepLeases(seen, func(o lifecycle.Observed) bool { return !o.Counts() })
	if left, _ := os.ReadDir(f.leases()); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestTornEndCountsAsNoEnd(t *testing.T) {
	f := testFolder(t)
	h, err := f.createLease(lifecycle.Lease{Kind: lifecycle.Held, Client: self()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.lock.Release() }()
	if _, err := h.lock.File().WriteString(endedLine[:5]); err != nil {
		t.Fatal(err)
	}
	if o, ok := f.look(h.lease.ID); !ok || o.Ended || !o.Locked {
		t.Errorf("%+v", o)
	}
}

func TestHeldProbeDoesNotStopAKeeper(t *testing.T) {
	// Looking at a lock takes it shared for a moment; a keeper that begins at that moment must not think that it is
	// the second one.
	f := testFolder(t)
	look, err := filelock.Try(f.keeperPath())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- Run(t.Context(), Options{Layout: f.layout}) }()
	_ = look.Release()
	if err := <-done; err != nil {
		t.Errorf("%v", err)
	}
}

func TestSecondKeeper(t *testing.T) {
	f := testFolder(t)
	lock, err := filelock.Try(f.keeperPath())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	if err := Run(t.Context(), Options{Layout: f.layout}); err != ErrRunning {
		t.Errorf("%v", err)
	}
}

func TestRelevantEnv(t *testing.T) {
	got := RelevantEnv([]string{
		"PATH=/bin", "HOME=/h", "OLLAMA_MODELS=/m", "CUDA_VISIBLE_DEVICES=0", "LC_ALL=C", "LOCALLLM_HOME=/l", "HF_TOKEN=t", "odd",
		"ANTHROPIC_API_KEY=secret", "AWS_SECRET_ACCESS_KEY=secret", "LOCALLLM_NONCE=n", "CLAUDE_CODE_SESSION_ID=s", "LD_PRELOAD=/x",
	})
	want := []string{"PATH=/bin", "HOME=/h", "OLLAMA_MODELS=/m", "CUDA_VISIBLE_DEVICES=0", "LC_ALL=C", "LOCALLLM_HOME=/l", "HF_TOKEN=t"}
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

func TestStatusOfAnotherBoot(t *testing.T) {
	f := testFolder(t)
	if err := os.WriteFile(f.statusPath(), []byte(`{"version":1,"boot":"before","state":"ready","generation":7}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.wantedPath(), []byte(`{"version":1,"boot":"before","generation":8,"persist":true,"choices":[{"model":"m"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := f.status()
	if err != nil || s.State != lifecycle.Off || s.Generation != 7 {
		t.Errorf("%+v, %v", s, err)
	}
	w, err := f.wanted()
	if err != nil || w.Persist || len(w.Choices) != 0 || w.Generation != 8 {
		t.Errorf("what was persisted before the boot is not asked for any more: %+v, %v", w, err)
	}
}

func TestNetworkFolder(t *testing.T) {
	if note := NetworkFolder(t.TempDir()); note != "" {
		t.Errorf("a local folder: %s", note)
	}
	// /proc/sys/fs/binfmt_misc and friends are no network either; what is one is known by its number.
	for _, name := range networkSystems {
		if name == "" {
			t.Error("a system without a name")
		}
	}
}

func FuzzParseLease(f *testing.F) {
	f.Add([]byte("{\"version\":1,\"id\":\"a\",\"kind\":\"held\"}\n" + endedLine))
	f.Add([]byte(`{"version":9,"id":"a","kind":"new"}`))
	f.Add([]byte(`{"id":"../../x","kind":"bound"}`))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := parseLease(data)
		if err == nil && (o.ID == "" || strings.ContainsAny(o.ID, "/\\.")) {
			t.Errorf("an id that is no file's name: %q", o.ID)
		}
	})
}
