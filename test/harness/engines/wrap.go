package engines

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// The program starts through the packages' own loader, for the system's libc may be too old. The loader is copied under
// the program's name into the folder of ggml's back ends: the process then has that name, and ggml, which looks beside
// /proc/self/exe, finds its back ends there and picks the best for this processor.
const wrapper = `#!/bin/sh
self=$(PATH=/usr/bin:/bin readlink -f -- "$0")
lib="${self%%/bin/*}/debian/%[1]s"
exec "$lib/%[2]s/%[3]s" --library-path "$lib:$lib/llama" --argv0 %[3]s "${self%%/bin/*}/debian/usr/bin/%[3]s" "$@"
`

func wrap(folder string) error {
	tree := filepath.Join(folder, "debian")
	loaders, _ := filepath.Glob(filepath.Join(tree, "usr/lib/*/ld-linux*.so.*"))
	if len(loaders) == 0 {
		return errors.New("the unpacked packages hold no loader")
	}
	lib := filepath.Dir(loaders[0])
	backends, _ := filepath.Glob(filepath.Join(lib, "ggml", "backends*"))
	if len(backends) == 0 {
		return errors.New("the unpacked packages hold no back ends of ggml")
	}
	fromTree, err := filepath.Rel(tree, lib)
	if err != nil {
		return err
	}
	fromLib, err := filepath.Rel(lib, backends[0])
	if err != nil {
		return err
	}
	for _, name := range []string{"llama-server", "llama-fit-params", "llama-quantize"} {
		if err := copyProgram(loaders[0], filepath.Join(backends[0], name)); err != nil {
			return err
		}
		if err := script(filepath.Join(folder, "bin", name), fmt.Sprintf(wrapper, fromTree, fromLib, name)); err != nil {
			return err
		}
	}
	return nil
}

// script replaces whatever is there, a link to another program included.
func script(path, text string) error {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o755)
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}
