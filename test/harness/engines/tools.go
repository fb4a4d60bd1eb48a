package engines

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"localllm/internal/filelock"
)

var tools = bundle{place: "tools", packages: []string{"python3", "sqlite3", "bubblewrap"}, byHand: "put python3, sqlite3 and bwrap (bubblewrap) on PATH"}

var programs = []string{"python3", "sqlite3", "bwrap"}

// Like the engines, they start through the packages' own loader.
const toolWrapper = `#!/bin/sh
self=$(PATH=/usr/bin:/bin readlink -f -- "$0")
tree="${self%%/bin/*}"
lib="$tree/%[1]s"
if [ %[3]s = python3 ]; then export PYTHONHOME="$tree/usr"; fi
exec "$lib/%[2]s" --library-path "$lib" --argv0 %[3]s "$tree/usr/bin/%[3]s" "$@"
`

// Path is this process's PATH, with a folder of the checkout in front where it lacks one of the programs: python3, sqlite3
// and bwrap are taken from packages then, as the engines are.
func Path(ctx context.Context, names ...string) (string, error) {
	root, err := Checkout()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 9*time.Minute)
	defer cancel()
	path := os.Getenv("PATH")
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		found, err := exec.LookPath(name)
		return err == nil && runs(ctx, found)
	})
	if len(missing) == 0 {
		return path, nil
	}
	bin, err := toolsIn(ctx, filepath.Join(root, ".engines"))
	return bin + string(filepath.ListSeparator) + path, err
}

// toolsIn makes the programs below folder, or returns at once where they are.
func toolsIn(ctx context.Context, folder string) (bin string, err error) {
	bin = filepath.Join(folder, tools.place, "bin")
	there := func() bool {
		return !slices.ContainsFunc(programs, func(name string) bool { return !runs(ctx, filepath.Join(bin, name)) })
	}
	if there() {
		return bin, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	held, err := filelock.Take(ctx, filepath.Join(folder, "tools.lock"))
	if err != nil {
		return "", fmt.Errorf("waiting for another process that provides %v: %w", tools.packages, err)
	}
	defer held.Release()
	if there() {
		return bin, nil
	}
	if err := tools.fetch(ctx, folder, func(string) {}); err != nil {
		return "", err
	}
	if err := wrapTools(filepath.Join(folder, tools.place), bin); err != nil {
		return "", err
	}
	if !there() {
		return "", fmt.Errorf("of Debian's %v not all run here, so %s", tools.packages, tools.byHand)
	}
	return bin, nil
}

func wrapTools(tree, bin string) error {
	loaders, _ := filepath.Glob(filepath.Join(tree, "usr/lib/*/ld-linux*.so.*"))
	if len(loaders) == 0 {
		return errors.New("the unpacked packages hold no loader")
	}
	lib, err := filepath.Rel(tree, filepath.Dir(loaders[0]))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	for _, name := range programs {
		if err := script(filepath.Join(bin, name), fmt.Sprintf(toolWrapper, lib, filepath.Base(loaders[0]), name)); err != nil {
			return err
		}
	}
	return nil
}

func runs(ctx context.Context, program string) bool {
	_, err := output(ctx, program, "--version")
	return err == nil
}
