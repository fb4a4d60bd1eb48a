//go:build unix

package logfile

import "os"

func private(f *os.File) error { return f.Chmod(0o600) }
