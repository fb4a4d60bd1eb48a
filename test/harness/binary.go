package harness

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"localllm/test/harness/engines"
)

// Binary builds cmd/localllm once for this test process and returns its path. The path stays the same from run to run,
// and a file that is already right is left alone: processes that run it keep their executable.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var binary = sync.OnceValues(build)

func build() (string, error) {
	root, err := engines.Checkout()
	if err != nil {
		return "", err
	}
	name := "localllm"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	folder := filepath.Join(os.TempDir(), fmt.Sprintf("localllm-test-%d-%x", os.Getuid(), sha256.Sum256([]byte(root)))[:40])
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(folder, "build-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	built := filepath.Join(work, name)
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", built, "./cmd/localllm")
	cmd.Dir = root
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building cmd/localllm: %w\n%s", err, text)
	}
	path := filepath.Join(folder, name)
	if same(path, built) {
		return path, nil
	}
	return path, os.Rename(built, path)
}

func same(a, b string) bool {
	left, errLeft := os.ReadFile(a)
	right, errRight := os.ReadFile(b)
	return errors.Join(errLeft, errRight) == nil && bytes.Equal(left, right)
}
