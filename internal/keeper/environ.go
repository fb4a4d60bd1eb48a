package keeper

import (
	"slices"
	"strings"

	"localllm/internal/proc"
)

// What an engine, and the keeper that runs it, may need of a client's environment. Everything else stays behind: the
// keeper serves sessions that have other environments, and keys for paid services are none of an engine's business.
var (
	passNames = []string{
		"PATH", "HOME", "USER", "LOGNAME", "LANG", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME",
		"SystemRoot", "SYSTEMROOT", "USERPROFILE", "LOCALAPPDATA", "APPDATA", "TEMP", "TMP", "PATHEXT",
	}
	passPrefixes = []string{
		"LOCALLLM_", "LC_", "OLLAMA_", "CUDA_", "NVIDIA_", "LLAMA_", "GGML_", "HF_", "HIP_", "ROCR_", "HSA_", "ROCM_",
		"GPU_", "VK_", "MTL_", "OMP_",
	}
)

// RelevantEnv is the part of an environment that matters to an engine.
func RelevantEnv(environ []string) []string {
	var kept []string
	for _, entry := range environ {
		name, _, ok := strings.Cut(entry, "=")
		if !ok || name == proc.NonceVariable {
			continue
		}
		if slices.Contains(passNames, name) || slices.ContainsFunc(passPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			kept = append(kept, entry)
		}
	}
	return kept
}
