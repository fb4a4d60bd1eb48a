package contextfiles

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"localllm/internal/secretfile"
)

// readText is a file as text with LF line ends, or the reason why it is not one for a prompt.
func readText(root *os.Root, rel string, limit int64) (body, reason string, err error) {
	data, reason, err := readFile(root, rel, limit)
	if err != nil || reason != "" {
		return "", reason, err
	}
	switch {
	case bytes.IndexByte(data, 0) >= 0:
		return "", "is binary", nil
	case !utf8.Valid(data):
		return "", "is not UTF-8 text", nil
	case secretfile.Key(data):
		return "", "holds a private key and is not given to a model", nil
	}
	// A CRLF that comes and goes with the checkout would void the cached prefix.
	return string(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))), "", nil
}

// readFile reads a regular file with one name. Its kind is looked at before it is opened, since opening a FIFO or a
// device may block or do something, and again on what was opened, since it may have been swapped.
func readFile(root *os.Root, rel string, limit int64) (data []byte, reason string, err error) {
	info, err := root.Stat(rel)
	if err != nil {
		if strings.Contains(err.Error(), "escapes") {
			return nil, "leads outside of the folder", nil
		}
		return nil, "", err
	}
	if reason := unreadable(info, limit); reason != "" {
		return nil, reason, nil
	}
	f, err := root.OpenFile(rel, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = f.Close() }()
	if info, err = f.Stat(); err != nil {
		return nil, "", err
	}
	if reason := unreadable(info, limit); reason != "" {
		return nil, reason, nil
	}
	data, err = io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, "", err
	}
	if int64(len(data)) > limit {
		return nil, tooLarge(int64(len(data)), limit), nil
	}
	return data, "", nil
}

func unreadable(info fs.FileInfo, limit int64) string {
	switch mode := info.Mode(); {
	case mode.IsDir():
		return "is a folder"
	case mode&fs.ModeNamedPipe != 0:
		return "is a FIFO"
	case mode&fs.ModeSocket != 0:
		return "is a socket"
	case mode&fs.ModeDevice != 0:
		return "is a device"
	case !mode.IsRegular():
		return "is not a regular file"
	case links(info) > 1:
		return fmt.Sprintf("has %d hard links, one of which may lie outside", links(info))
	case info.Size() > limit:
		return tooLarge(info.Size(), limit)
	}
	return ""
}

func tooLarge(size, limit int64) string {
	return fmt.Sprintf("is too large: %d KiB, at most %d", (size+1023)>>10, limit>>10)
}

// secret looks at a path by its name and by where it leads: a link to .env is as secret as .env.
func (s source) secret(rel string) bool {
	if secretName(rel) {
		return true
	}
	dir, derr := filepath.EvalSymlinks(s.dir)
	full, err := filepath.EvalSymlinks(filepath.Join(s.dir, filepath.FromSlash(rel)))
	if err != nil || derr != nil {
		return false // what can't be resolved can't be read either
	}
	real, err := filepath.Rel(dir, full)
	return err == nil && secretName(filepath.ToSlash(real))
}

// secretName tells files that hold nothing but secrets, the version control's own included.
func secretName(rel string) bool {
	return secretfile.Name(rel) || strings.HasPrefix(rel, ".git/")
}
