package capability

import (
	"fmt"
	"path/filepath"
	"strings"
)

// RefKind says what sort of thing a model reference names.
type RefKind string

// The kinds of reference.
const (
	TagRef         RefKind = "ollama"       // an Ollama tag, name[:tag]
	FileRef        RefKind = "gguf"         // a GGUF file
	HuggingFaceRef RefKind = "hugging-face" // owner/repo[:quant]
)

// Ref is a model reference, taken apart.
type Ref struct {
	Kind  RefKind
	Tag   string // with the tag spelt out: qwen3:8b, devstral:latest
	Path  string
	Repo  string // owner/name
	Quant string // Q4_K_M, or empty
}

// ParseRef takes a reference apart. A path ends in .gguf; hf:owner/repo[:quant], hf.co/owner/repo[:quant] and
// owner/repo-GGUF[:quant] are Hugging Face's; everything else is an Ollama tag (which may hold a slash as well).
func ParseRef(s string) (Ref, error) {
	if s == "" || strings.ContainsAny(s, "\x00\n\r") || strings.HasPrefix(s, "-") {
		return Ref{}, fmt.Errorf("model reference %q: want an Ollama tag, a .gguf file or hf:owner/repo[:quant]", s)
	}
	if strings.HasSuffix(strings.ToLower(s), ".gguf") {
		return Ref{Kind: FileRef, Path: filepath.Clean(s)}, nil
	}
	if isPath(s) {
		return Ref{}, fmt.Errorf("model reference %q: it is a path, and a model's file ends in .gguf", s)
	}
	for _, prefix := range []string{"hf:", "hf.co/", "huggingface.co/"} {
		if rest, ok := strings.CutPrefix(s, prefix); ok {
			return huggingFace(s, rest)
		}
	}
	repo, _, _ := strings.Cut(s, ":")
	if strings.Count(repo, "/") == 1 && strings.HasSuffix(strings.ToUpper(repo), "-GGUF") {
		return huggingFace(s, s)
	}
	return tag(s)
}

func huggingFace(whole, rest string) (Ref, error) {
	repo, quant, _ := strings.Cut(rest, ":")
	owner, name, ok := strings.Cut(repo, "/")
	if !ok || owner == "" || name == "" || strings.Contains(name, "/") || strings.ContainsAny(repo, " \t") {
		return Ref{}, fmt.Errorf("model reference %q: want hf:owner/repo[:quant]", whole)
	}
	return Ref{Kind: HuggingFaceRef, Repo: repo, Quant: quant}, nil
}

func tag(s string) (Ref, error) {
	name, version := s, "latest"
	// A registry's port is before a slash, a tag after it.
	if i := strings.LastIndex(s, ":"); i > strings.LastIndex(s, "/") {
		name, version = s[:i], s[i+1:]
	}
	if name == "" || version == "" || strings.ContainsAny(s, " \t\\") {
		return Ref{}, fmt.Errorf("model reference %q: want name or name:tag", s)
	}
	name = strings.TrimPrefix(strings.TrimPrefix(name, "registry.ollama.ai/"), "library/")
	if name == "" || isPath(name) {
		return Ref{}, fmt.Errorf("model reference %q: want name or name:tag", s)
	}
	return Ref{Kind: TagRef, Tag: name + ":" + version}, nil
}

func isPath(s string) bool { return strings.ContainsAny(s[:1], "/.~") }

// Name is the reference in one canonical spelling: two spellings of one model give the same.
func (r Ref) Name() string {
	switch r.Kind {
	case FileRef:
		return r.Path
	case HuggingFaceRef:
		if r.Quant == "" {
			return "hf:" + r.Repo
		}
		return "hf:" + r.Repo + ":" + r.Quant
	}
	return strings.TrimSuffix(r.Tag, ":latest")
}

// Same reports whether two references name one model, whatever their spelling.
func Same(a, b string) bool {
	x, errX := ParseRef(a)
	y, errY := ParseRef(b)
	if errX != nil || errY != nil {
		return a == b
	}
	return strings.EqualFold(x.Name(), y.Name())
}
