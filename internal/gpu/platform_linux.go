package gpu

import "localllm/capability"

func platform() []capability.Prober { return []capability.Prober{amd{root: "/sys"}} }
