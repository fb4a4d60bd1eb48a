package survey

import (
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// installed is one model of Ollama's store, as its manifest on disk says.
type installed struct {
	name      string
	blob      string // path of the weights
	digest    string // of the weights
	size      int64  // of all layers
	projector int64  // bytes of the projector, which is loaded beside the weights
	adapters  int64
}

const (
	mostManifests = 2000
	manifestLimit = 1 << 20
)

// stores lists where Ollama keeps models: OLLAMA_MODELS, the user's own, and those of the system's service.
func (s *Surveyor) stores() []string {
	if named := s.Env("OLLAMA_MODELS"); named != "" {
		return []string{named}
	}
	return []string{
		filepath.Join(s.Home, ".ollama", "models"),
		"/usr/share/ollama/.ollama/models",
		"/var/lib/ollama/.ollama/models",
		"/var/lib/ollama/models",
	}
}

// manifests reads Ollama's store without Ollama. A store that can't be read is passed over: the running server may
// still say what it has.
func manifests(store string) []installed {
	root := filepath.Join(store, "manifests")
	var found []installed
	seen := 0
	// The walk's own errors are folders that can't be read.
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fs.SkipDir
		}
		if entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			return nil
		}
		if seen++; seen > mostManifests {
			return fs.SkipAll
		}
		if m, ok := readManifest(store, root, path); ok {
			found = append(found, m)
		}
		return nil
	})
	return found
}

func readManifest(store, root, path string) (installed, bool) {
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return installed{}, false
	}
	name, ok := manifestName(filepath.ToSlash(rel))
	if !ok {
		return installed{}, false
	}
	f, err := os.Open(path)
	if err != nil {
		return installed{}, false
	}
	defer f.Close()
	var document struct {
		Layers []struct {
			MediaType string `json:"mediaType"`
			Digest    string `json:"digest"`
			Size      int64  `json:"size"`
		} `json:"layers"`
	}
	if err := json.NewDecoder(io.LimitReader(f, manifestLimit)).Decode(&document); err != nil {
		return installed{}, false
	}
	m := installed{name: name}
	for _, layer := range document.Layers {
		// No real layer is near the limit; without one, a few of them add up to less than nothing.
		if layer.Size < 0 || layer.Size > 1<<50 || len(document.Layers) > 1000 {
			return installed{}, false
		}
		m.size += layer.Size
		switch layer.MediaType {
		case "application/vnd.ollama.image.model":
			m.digest = layer.Digest
			m.blob = filepath.Join(store, "blobs", strings.Replace(filepath.Base(layer.Digest), ":", "-", 1))
		case "application/vnd.ollama.image.projector":
			m.projector += layer.Size
		case "application/vnd.ollama.image.adapter":
			m.adapters += layer.Size
		}
	}
	return m, true
}

// manifestName turns host/namespace/model/tag into the name that users type.
func manifestName(rel string) (string, bool) {
	parts := strings.Split(rel, "/")
	if len(parts) != 4 {
		return "", false
	}
	host, namespace, model, tag := parts[0], parts[1], parts[2], parts[3]
	name := model + ":" + tag
	switch {
	case host == "registry.ollama.ai" && namespace == "library":
		return name, true
	case host == "registry.ollama.ai":
		return namespace + "/" + name, true
	}
	return host + "/" + namespace + "/" + name, true
}
