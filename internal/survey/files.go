package survey

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

const (
	mostFiles   = 4000
	deepestDir  = 8
	mostEntries = 200_000 // looked at in all folders together
)

// modelDirs lists the usual places of GGUF files.
func (s *Surveyor) modelDirs(extra []string) []string {
	first := func(fallback string, variables ...string) string {
		for _, v := range variables {
			if dir := s.Env(v); filepath.IsAbs(dir) {
				return dir
			}
		}
		return fallback
	}
	cacheHome := first(filepath.Join(s.Home, ".cache"), "XDG_CACHE_HOME")
	hub := first(filepath.Join(first(filepath.Join(cacheHome, "huggingface"), "HF_HOME"), "hub"), "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")
	dirs := []string{
		first(filepath.Join(cacheHome, "llama.cpp"), "LLAMA_CACHE"),
		filepath.Join(s.Home, "Library", "Caches", "llama.cpp"),
		hub,
		filepath.Join(s.Home, ".lmstudio", "models"),
		filepath.Join(cacheHome, "lm-studio", "models"),
	}
	return append(dirs, extra...)
}

var (
	laterShard = regexp.MustCompile(`-(\d{5})-of-\d{5}\.gguf$`)
	hubFile    = regexp.MustCompile(`/models--([^/]+?)--([^/]+)/snapshots/[^/]+/(?:.*/)?([^/]+)\.gguf$`)
	quantName  = regexp.MustCompile(`(?i)(?:^|[-._])((?:UD-)?(?:I?Q[1-8](?:_[A-Z0-9]+)*|BF16|F16|F32|MXFP4(?:_MOE)?))(?:-\d{5}-of-\d{5})?$`)
)

// ggufFiles finds model files, each once: by its real path, however many links lead to it.
func ggufFiles(dirs []string, seen map[string]bool) []string {
	var found []string
	entries := 0
	for _, dir := range dirs {
		root, err := filepath.EvalSymlinks(dir)
		if err != nil {
			continue
		}
		_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if entries++; entries > mostEntries || len(found) >= mostFiles {
				return fs.SkipAll
			}
			if err != nil {
				return fs.SkipDir
			}
			if entry.IsDir() {
				if strings.Count(strings.TrimPrefix(path, root), string(filepath.Separator)) > deepestDir {
					return fs.SkipDir
				}
				return nil
			}
			if !isModelFile(path) {
				return nil
			}
			real, err := filepath.EvalSymlinks(path)
			if err != nil || seen[real] {
				return nil
			}
			if info, err := os.Stat(real); err != nil || !info.Mode().IsRegular() {
				return nil
			}
			seen[real] = true
			found = append(found, path)
			return nil
		})
	}
	return found
}

func isModelFile(path string) bool {
	name := strings.ToLower(filepath.Base(path))
	if !strings.HasSuffix(name, ".gguf") {
		return false
	}
	m := laterShard.FindStringSubmatch(name)
	return m == nil || m[1] == "00001"
}

// fileRef is how a found file is called: by its Hugging Face reference where its place says it, else by its path.
func fileRef(path string) string {
	m := hubFile.FindStringSubmatch(filepath.ToSlash(path))
	if m == nil {
		return path
	}
	ref := "hf:" + m[1] + "/" + m[2]
	if q := quantName.FindStringSubmatch(m[3]); q != nil {
		return ref + ":" + strings.ToUpper(q[1])
	}
	return path
}
