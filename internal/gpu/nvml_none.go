//go:build !linux || !cgo

package gpu

import (
	"context"

	"localllm/capability"
)

type absent struct{}

func (absent) Probe(context.Context) (capability.Probe, error) {
	return capability.Probe{}, capability.ErrAbsent
}

// newNVML is for Linux with cgo only; elsewhere nvidia-smi answers.
func newNVML(string) capability.Prober { return absent{} }
