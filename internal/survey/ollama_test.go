package survey

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"localllm/capability"
	"localllm/internal/practice"
	"localllm/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }

// A real Ollama, seen in the three ways in which one can be met.
func TestAModelOfOllama(t *testing.T) {
	server := harness.Start(t, harness.Ollama, practice.Script{{Say: "hello"}}, practice.Options{})
	store := filepath.Join(filepath.Dir(server.Log), "models")
	paths := harness.Engines(t)
	env := map[string]string{"OLLAMA_HOST": server.URL, "OLLAMA_MODELS": store, "LOCALLLM_OLLAMA": paths.Ollama, "LOCALLLM_LLAMA_SERVER": paths.LlamaServer}

	s := surroundings(t, env)
	running := run(t, s, Options{Model: "practice"})
	if e := running.Engines[0]; e.State != capability.Running || e.Version == "" || e.Models != 1 || e.URL != server.URL {
		t.Errorf("engine %+v", e)
	}
	if e := running.Engines[1]; e.State != capability.Installed || !strings.HasPrefix(e.Version, "b") || e.Models != 1 {
		t.Errorf("llama-server can run Ollama's file: %+v", e)
	}
	c := running.Recommended
	if c == nil || c.Model != "practice:latest" || c.Engine != capability.Ollama || c.Source != capability.FromHeader || c.KVType != "f16" || !running.CanEnable {
		t.Fatalf("choice %+v", c)
	}
	if _, err := os.Stat(c.Path); err != nil || !strings.HasPrefix(c.Path, store) || !strings.HasPrefix(c.Digest, "sha256:") {
		t.Errorf("path %s, digest %s, %v", c.Path, c.Digest, err)
	}
	if other := run(t, s, Options{Model: "practice", Engine: capability.LlamaServer}).Recommended; other == nil || other.Engine != capability.LlamaServer || other.Path != c.Path {
		t.Errorf("by llama-server: %+v", other)
	}

	server.Ask("anything") // loads it
	if again := run(t, s, Options{Model: "practice"}).Recommended; again == nil || !strings.Contains(strings.Join(again.Why, " "), "loaded already") {
		t.Errorf("loaded: %+v", again)
	}

	// A store of another user can't be read: the server is asked.
	env["OLLAMA_MODELS"] = t.TempDir()
	asked := run(t, surroundings(t, env), Options{Model: "practice:latest", Context: c.Context}).Recommended
	if asked == nil || asked.Path != "" || asked.Need.KVBytes != c.Need.KVBytes || asked.Source != capability.FromHeader {
		t.Errorf("as the server says: %+v, want a cache of %d", asked, c.Need.KVBytes)
	}

	server.Stop()
	env["OLLAMA_MODELS"] = store
	off := run(t, surroundings(t, env), Options{Model: "practice", Context: c.Context, KVType: "f16"}).Recommended
	if off == nil || off.Need != c.Need || off.Digest != c.Digest || off.Path != c.Path {
		t.Errorf("from its store alone: %+v, want %+v", off, c)
	}
}

// The history is kept under the version that the running server gives, and looked up by the one on its command line.
func TestBothVersionsOfLlamaServerAreOne(t *testing.T) {
	server := harness.Start(t, harness.LlamaServer, practice.Script{{Say: "hello"}}, practice.Options{})
	answer, err := http.Get(server.URL + "/props")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var props struct {
		Build string `json:"build_info"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&props); err != nil {
		t.Fatal(err)
	}
	s := surroundings(t, map[string]string{"LOCALLLM_LLAMA_SERVER": harness.Engines(t).LlamaServer})
	c := run(t, s, Options{Model: server.File, Context: 4096}).Recommended
	if c == nil {
		t.Fatal("nothing recommended")
	}
	if err := Remember(t.Context(), s.State, c.Key(props.Build), 123<<20); err != nil {
		t.Fatal(err)
	}
	if again := run(t, s, Options{Model: server.File, Context: 4096}).Recommended; again.Source != capability.Measured || again.NeedBytes != 123<<20 {
		t.Errorf("stored under %q, found %+v", props.Build, again)
	}
	// Connections of the default client are kept; the leak check sees them.
	http.DefaultClient.CloseIdleConnections()
}

// answering is a server that says what a real one says only now and then.
func answering(t *testing.T, tags string) *Surveyor {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/version":
			fmt.Fprint(w, `{"version":"0.34.2"}`)
		case "/api/tags":
			fmt.Fprint(w, tags)
		default:
			http.Error(w, `{"error":"no"}`, http.StatusInternalServerError)
		}
	}))
	t.Cleanup(server.Close)
	return surroundings(t, map[string]string{"OLLAMA_HOST": server.URL})
}

func TestModelsThatOllamaListsAndCantRunHere(t *testing.T) {
	s := answering(t, `{"models":[
		{"name":"gpt-oss:120b-cloud","size":300,"digest":"a","remote_host":"https://ollama.com"},
		{"name":"nomic-embed-text:latest","size":274000000,"digest":"b","capabilities":["embedding"]},
		{"name":"hidden:7b","size":4000000000,"digest":"c","capabilities":["completion"]}]}`)
	r := run(t, s, Options{})
	notes := map[string]string{}
	for _, m := range r.Models {
		notes[m.Ref] = strings.Join(m.Notes, " ")
		if m.Ref == "hidden:7b" && (m.Need.WeightsBytes != 4000000000 || m.Source != capability.FromTable) {
			t.Errorf("what the list says is used where nothing else is known: %+v", m)
		}
	}
	if !strings.Contains(notes["gpt-oss:120b-cloud"], "not on this machine") || !strings.Contains(notes["nomic-embed-text:latest"], "embedding") ||
		!strings.Contains(notes["hidden:7b"], "without its cache") {
		t.Errorf("notes %q", notes)
	}
	if r.Recommended == nil || r.Recommended.Model != "hidden:7b" || !r.CanEnable {
		t.Errorf("recommended %+v", r.Recommended)
	}
}

func TestAServerThatAnswersNonsense(t *testing.T) {
	r := run(t, answering(t, `<html>not found</html>`), Options{})
	if e := r.Engines[0]; e.State != capability.Running || !strings.Contains(e.Detail, "does not list its models") {
		t.Errorf("engine %+v", e)
	}
}

func TestAServerThatHangs(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	s := surroundings(t, map[string]string{"OLLAMA_HOST": server.URL, "LOCALLLM_OLLAMA": "/none"})
	r := run(t, s, Options{})
	if e := r.Engines[0]; e.State != capability.Unreachable {
		t.Errorf("engine %+v", e)
	}
	if r.ProbeMS.Total > 10_000 {
		t.Errorf("waited %.0f ms", r.ProbeMS.Total)
	}
}

func TestNamesOfManifests(t *testing.T) {
	for rel, want := range map[string]string{
		"registry.ollama.ai/library/qwen3/8b":      "qwen3:8b",
		"registry.ollama.ai/someone/m/latest":      "someone/m:latest",
		"hf.co/unsloth/Qwen3-8B-GGUF/Q4_K_M":       "hf.co/unsloth/Qwen3-8B-GGUF:Q4_K_M",
		"too/short":                                "",
		"registry.ollama.ai/library/deep/er/still": "",
	} {
		if got, _ := manifestName(rel); got != want {
			t.Errorf("%s is %q, want %q", rel, got, want)
		}
	}
}

func TestBrokenManifestsArePassedOver(t *testing.T) {
	store := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(store, "manifests", "registry.ollama.ai", "library", name, "latest")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("good", `{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:ab","size":10},
		{"mediaType":"application/vnd.ollama.image.projector","digest":"sha256:cd","size":5},{"mediaType":"application/vnd.ollama.image.adapter","digest":"sha256:ef","size":3}]}`)
	write("garbage", `{"layers":`)
	write("negative", `{"layers":[{"size":-1}]}`)
	write("escape", `{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:../../../etc/passwd","size":1}]}`)
	write("cloud", `{"layers":[]}`)
	list := manifests(store)
	var names []string
	for _, m := range list {
		names = append(names, m.name)
		if m.blob != "" && filepath.Dir(m.blob) != filepath.Join(store, "blobs") {
			t.Errorf("%s leads out of the store: %s", m.name, m.blob)
		}
		if m.name == "good:latest" && (m.size != 18 || m.projector != 5 || m.adapters != 3 || filepath.Base(m.blob) != "sha256-ab") {
			t.Errorf("%+v", m)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"cloud:latest", "escape:latest", "good:latest"}) {
		t.Errorf("names %q", names)
	}
	// A manifest without weights is a model that runs elsewhere.
	for _, m := range list {
		if m.name == "cloud:latest" && m.model(headerFacts{}).Unfit == "" {
			t.Error("it has no weights and is said to run here")
		}
	}
}

func TestNumbersOfAnAnswer(t *testing.T) {
	m := modelInfo{"n": 7.0, "b": true, "list": []any{1.0, 0.0}, "texts": []any{"a", "b"}, "s": "text", "none": nil}
	if n, ok := m.Number("n"); n != 7 || !ok {
		t.Error("n")
	}
	if n, ok := m.Number("b"); n != 1 || !ok {
		t.Error("b")
	}
	if _, ok := m.Number("s"); ok {
		t.Error("a text is no number")
	}
	if list, ok := m.Numbers("list"); !ok || !slices.Equal(list, []int64{1, 0}) {
		t.Error("list")
	}
	if _, ok := m.Numbers("texts"); ok {
		t.Error("texts are no numbers")
	}
	if n, ok := m.Count("texts"); n != 2 || !ok {
		t.Error("count")
	}
	if s, ok := m.Text("s"); s != "text" || !ok {
		t.Error("text")
	}
	if _, ok := m.Count("none"); ok {
		t.Error("none")
	}
}
