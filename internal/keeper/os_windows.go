package keeper

import (
	"errors"
	"syscall"
)

func leadsGroup(int) bool { return false }

func signalGroup(int, syscall.Signal) error { return errors.ErrUnsupported }

var endSignals = []syscall.Signal{syscall.SIGTERM, syscall.SIGINT}
