//go:build !linux && !darwin

package gpu

import "localllm/capability"

func platform() []capability.Prober { return nil }
