//go:build !linux

package harness

import "syscall"

func attributes() *syscall.SysProcAttr { return nil }
