package mcpserver

import "golang.org/x/sys/unix"

// Some Linux architectures have no dup2.
func dup(from, to int) error { return unix.Dup3(from, to, 0) }
