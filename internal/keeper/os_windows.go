package keeper

import (
	"errors"
	"os"
	"syscall"
)

func leadsGroup(int) bool { return false }

func signalGroup(int, syscall.Signal) error { return errors.ErrUnsupported }

var endSignals = []os.Signal{syscall.SIGTERM, syscall.SIGINT}
