package setup

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Bounds of an archive: engines with all their GPU libraries stay far below.
const (
	mostFiles = 20_000
	mostBytes = 24 << 30
)

// unpacker writes an archive's entries below a folder that no entry can leave.
type unpacker struct {
	root  *os.Root
	files int
	bytes int64
}

// unpack unpacks an archive by its name's ending into a new folder.
func unpack(ctx context.Context, archive, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	u := &unpacker{root: root}
	if strings.HasSuffix(archive, ".zip") {
		return u.zip(ctx, archive)
	}
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	var plain io.Reader
	switch {
	case strings.HasSuffix(archive, ".tar.gz") || strings.HasSuffix(archive, ".tgz"):
		z, err := gzip.NewReader(f)
		if err != nil {
			return err
		}
		defer z.Close()
		plain = z
	case strings.HasSuffix(archive, ".tar.zst"):
		z, err := zstd.NewReader(f, zstd.WithDecoderMaxMemory(1<<30))
		if err != nil {
			return err
		}
		defer z.Close()
		plain = z
	default:
		return fmt.Errorf("%s has an ending that setup does not know", filepath.Base(archive))
	}
	return u.tar(ctx, plain)
}

func (u *unpacker) tar(ctx context.Context, r io.Reader) error {
	in := tar.NewReader(r)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = u.folder(h.Name)
		case tar.TypeReg:
			err = u.file(h.Name, in, h.FileInfo().Mode())
		case tar.TypeSymlink:
			err = u.link(h.Name, h.Linkname)
		case tar.TypeLink:
			err = fmt.Errorf("%s is a hard link", h.Name)
		case tar.TypeXGlobalHeader:
		default:
			err = fmt.Errorf("%s is neither a file nor a folder", h.Name)
		}
		if err != nil {
			return err
		}
	}
}

func (u *unpacker) zip(ctx context.Context, archive string) error {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return err
	}
	defer z.Close()
	for _, f := range z.File {
		if err := ctx.Err(); err != nil {
			return err
		}
		mode := f.Mode()
		if mode.IsDir() || strings.HasSuffix(f.Name, "/") {
			if err := u.folder(f.Name); err != nil {
				return err
			}
			continue
		}
		if err := u.entry(f, mode); err != nil {
			return err
		}
	}
	return nil
}

func (u *unpacker) entry(f *zip.File, mode os.FileMode) error {
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	if mode&os.ModeSymlink != 0 {
		target, err := io.ReadAll(io.LimitReader(r, 4096))
		if err != nil {
			return err
		}
		return u.link(f.Name, string(target))
	}
	if !mode.IsRegular() {
		return fmt.Errorf("%s is neither a file nor a folder", f.Name)
	}
	return u.file(f.Name, r, mode)
}

// clean is an entry's name below the folder. os.Root holds the border; this only gives the better words.
func clean(name string) (string, error) {
	slashed := strings.ReplaceAll(name, `\`, "/")
	local := path.Clean(slashed)
	if !filepath.IsLocal(filepath.FromSlash(local)) {
		return "", fmt.Errorf("the entry %q leads out of the folder", name)
	}
	return filepath.FromSlash(local), nil
}

func (u *unpacker) folder(name string) error {
	local, err := clean(name)
	if err != nil || local == "." {
		return err
	}
	return u.root.MkdirAll(local, 0o755)
}

func (u *unpacker) file(name string, r io.Reader, mode os.FileMode) error {
	local, err := clean(name)
	if err != nil {
		return err
	}
	if u.files++; u.files > mostFiles {
		return errors.New("it holds too many files")
	}
	if err := u.root.MkdirAll(filepath.Dir(local), 0o755); err != nil {
		return err
	}
	f, err := u.root.OpenFile(local, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644|mode.Perm()&0o111)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(r, mostBytes-u.bytes+1))
	u.bytes += n
	if u.bytes > mostBytes {
		err = errors.New("it is too large")
	}
	return errors.Join(err, f.Close())
}

// link makes a symbolic link, as libraries have them, if it stays inside.
func (u *unpacker) link(name, target string) error {
	local, err := clean(name)
	if err != nil {
		return err
	}
	if filepath.IsAbs(target) || !filepath.IsLocal(filepath.Join(filepath.Dir(local), filepath.FromSlash(target))) {
		return fmt.Errorf("the link %q leads out of the folder", name)
	}
	if u.files++; u.files > mostFiles {
		return errors.New("it holds too many files")
	}
	if err := u.root.MkdirAll(filepath.Dir(local), 0o755); err != nil {
		return err
	}
	return u.root.Symlink(filepath.FromSlash(target), local)
}
