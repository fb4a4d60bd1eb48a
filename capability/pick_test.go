package capability

import (
	"slices"
	"strings"
	"testing"
)

// model is an installed one of 16 layers with 8 KV heads of 128: 64 KiB of cache a token.
func model(ref string, weights int64) Model {
	s := Shape{Arch: "llama", Weights: weights, Embedding: 4096, Vocabulary: 32000, ContextLimit: 131072, HeadSize: 128, Known: true}
	for range 16 {
		s.Layers = append(s.Layers, Layer{Key: 1024, Value: 1024})
	}
	return Model{Ref: ref, Installed: true, Engines: []string{Ollama}, Shape: s, SizeBytes: weights, Source: FromHeader, Digest: "sha256:" + ref}
}

func pick(m Machine, r Request, models ...Model) Decision {
	return Pick(Survey{Machine: m, Engines: bothEngines, Models: models}, DefaultCatalog(), r)
}

func rejection(d Decision, ref string) string {
	for _, r := range d.Rejected {
		if r.Model == ref {
			return r.Reason
		}
	}
	return ""
}

func TestInstalledComesBeforeWhatWouldHaveToBeDownloaded(t *testing.T) {
	d := pick(machine(64, card(24)), Request{}, model("mine", 5*gib))
	if d.Choice.Model != "mine" || !d.Choice.Installed {
		t.Fatalf("picked %s", d.Choice.Model)
	}
	if why := rejection(d, "qwen3-coder:30b"); !strings.Contains(why, "not installed (18.6 GB to download)") {
		t.Errorf("rejected because %q", why)
	}
}

func TestAnInstalledModelThatSpillsDoesNotBeatOneThatFits(t *testing.T) {
	d := pick(machine(64, card(24)), Request{}, model("big", 40*gib))
	if d.Choice.Model != "qwen3-coder:30b" {
		t.Fatalf("picked %s", d.Choice.Model)
	}
	if why := rejection(d, "big"); !strings.Contains(why, "main memory, slowly") {
		t.Errorf("rejected because %q", why)
	}
	if len(d.Hints) == 0 || !strings.Contains(d.Hints[0], "--pull") {
		t.Errorf("hints %q", d.Hints)
	}
}

func TestTheTablesOrderComesBeforeSize(t *testing.T) {
	glm := model("glm-4.7-flash", 17*gib)
	coder := model("qwen3-coder:30b", 17*gib)
	other := model("other", 19*gib)
	d := pick(machine(64, card(24)), Request{}, other, glm, coder)
	if d.Choice.Model != "qwen3-coder:30b" || rejection(d, "glm-4.7-flash") != "after it in the table" {
		t.Errorf("picked %s, rejected %+v", d.Choice.Model, d.Rejected)
	}
	if d := pick(machine(64, card(24)), Request{}, model("small", 2*gib), other); d.Choice.Model != "other" {
		t.Errorf("beyond the table the bigger one that fits is the better guess, got %s", d.Choice.Model)
	}
}

func TestFittingComesBeforeTight(t *testing.T) {
	m := machine(64, card(12)) // 11.7 free, 1 in reserve
	d := pick(m, Request{Context: 4096}, model("tight", 10*gib+400<<20), model("fits", 6*gib))
	if d.Choice.Model != "fits" {
		t.Fatalf("picked %s", d.Choice.Model)
	}
	if why := rejection(d, "tight"); !strings.HasPrefix(why, "tight:") {
		t.Errorf("rejected because %q", why)
	}
}

func TestTheLargestUsefulContextThenTheSmallerCache(t *testing.T) {
	tests := []struct {
		name    string
		weights int64
		asked   int
		kv      string
		context int
		want    string
	}{
		{"room for all", 4 * gib, 0, "", 65536, "f16"},
		{"a smaller cache before a smaller window", 7*gib + 512<<20, 0, "", 65536, "q8_0"},
		{"a smaller window with the plain cache", 9*gib - 200<<20, 0, "", 32768, "q8_0"},
		{"no more than was asked for", 4 * gib, 8192, "", 8192, "f16"},
		{"more than is useful by itself, if asked for", 1 * gib, 131072, "", 131072, "f16"},
		{"the cache type that was asked for", 4 * gib, 0, "q4_0", 65536, "q4_0"},
		{"never beyond the model's limit", 1 * gib, 1 << 20, "", 131072, "q8_0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := pick(machine(64, card(12)), Request{Context: tt.asked, KVType: tt.kv}, model("m", tt.weights))
			if c := d.Choice; c.Model != "m" || c.Context != tt.context || (c.KVType != tt.want && tt.name != "never beyond the model's limit") {
				t.Errorf("picked %s at %d with %s (%s)", c.Model, c.Context, c.KVType, c.Verdict)
			}
		})
	}
}

func TestTheCacheTypeOfARunningOllamaIsNotOursToChoose(t *testing.T) {
	running := []EngineInfo{{Name: Ollama, State: Running, Version: "1"}}
	d := Pick(Survey{Machine: machine(64, card(12)), Engines: running, Models: []Model{model("m", 7*gib+512<<20)}}, DefaultCatalog(), Request{})
	if d.Choice.KVType != "f16" || d.Choice.Context != 32768 {
		t.Errorf("picked %d with %s", d.Choice.Context, d.Choice.KVType)
	}
	odd := model("odd", 7*gib+512<<20)
	odd.Shape.HeadSize = 80
	if d := pick(machine(64, card(12)), Request{}, odd); d.Choice.KVType != "f16" {
		t.Errorf("heads of 80 can't be stored in blocks of 32, got %s", d.Choice.KVType)
	}
}

func TestWhatWasMeasuredWins(t *testing.T) {
	m := model("m", 6*gib)
	key := HistoryKey{Digest: m.Digest, Context: 65536, KVType: "f16", Slots: 1, Engine: Ollama, Version: "0.34.2"}
	s := Survey{Machine: machine(64, card(12)), Engines: bothEngines, Models: []Model{m}, History: History{key: 10*gib + 1}}
	d := Pick(s, DefaultCatalog(), Request{})
	if c := d.Choice; c.NeedBytes != 10*gib+1 || c.Source != Measured || c.Context != 65536 || c.Key("0.34.2") != key {
		t.Errorf("need %s from %s", GiB(c.NeedBytes), c.Source)
	}
	s.History = History{key: 40 * gib}
	if d := Pick(s, DefaultCatalog(), Request{}); d.Choice.Context == 65536 && d.Choice.KVType == "f16" {
		t.Error("what took 40 GiB the last time is said to fit into 12")
	}
	key.Version = "0.35"
	s.History = History{key: 40 * gib}
	if d := Pick(s, DefaultCatalog(), Request{}); d.Choice.Source != FromHeader {
		t.Error("another version of the engine takes another amount")
	}
}

// An engine that holds the model leaves little free memory, and the model needs none of it.
func TestWhatIsLoadedAlreadyNeedsNoRoom(t *testing.T) {
	full := card(24)
	full.FreeBytes = Bytes(4 * gib)
	loaded := model("loaded", 15*gib)
	if d := pick(machine(8, full), Request{Model: "loaded"}, loaded); d.Choice.Verdict.Usable() {
		t.Fatalf("15 GiB in 4: %s", d.Choice.Verdict)
	}
	loaded.LoadedGPU = 19 * gib
	d := pick(machine(8, full), Request{Model: "loaded"}, loaded)
	if d.Choice.Verdict != Fits || d.Choice.FreeBytes != 23*gib || !strings.Contains(strings.Join(d.Choice.Why, " "), "loaded already") {
		t.Errorf("choice %+v", d.Choice)
	}
	loaded.LoadedGPU, loaded.LoadedHost = 0, 20*gib
	if d := pick(Machine{Memory: Memory{TotalBytes: Bytes(32 * gib), AvailableBytes: Bytes(8 * gib)}}, Request{Model: "loaded"}, loaded); d.Choice.Verdict != Fits {
		t.Errorf("on the processor: %s", d.Choice.Verdict)
	}
}

func TestOnlyNvidiasDevicesAreNamed(t *testing.T) {
	amd := card(24)
	amd.Vendor = "amd"
	if d := pick(machine(64, amd), Request{}); len(d.Choice.Devices) != 0 || d.Choice.Verdict != Fits {
		t.Errorf("devices %v", d.Choice.Devices)
	}
}

func TestNothingIsRefusedByAnEstimate(t *testing.T) {
	huge := model("huge", 900*gib)
	d := pick(machine(64, card(12)), Request{Model: "huge"}, huge)
	if d.Choice == nil || d.Choice.Verdict != No || d.CanEnable {
		t.Fatalf("decision %+v", d.Choice)
	}
	if !strings.Contains(strings.Join(d.Hints, "\n"), "force") {
		t.Errorf("hints %q", d.Hints)
	}
	if len(d.Models) != 1 {
		t.Errorf("asked for one model and got %d", len(d.Models))
	}
	if d := pick(machine(64, card(12)), Request{}, huge); d.Choice.Model == "huge" || !strings.Contains(rejection(d, "huge"), "more than there is") {
		t.Errorf("picked %s, rejected because %q", d.Choice.Model, rejection(d, "huge"))
	}
}

func TestStepsDownOnOutOfMemory(t *testing.T) {
	d := pick(machine(64, card(24)), Request{}, model("first", 12*gib), model("second", 5*gib), Model{Ref: "broken", Installed: true, Engines: []string{Ollama}, Problem: "cut off"})
	var steps []string
	for _, f := range d.Fallbacks {
		steps = append(steps, f.Model+" "+Tokens(f.Context)+" "+f.KVType)
	}
	want := []string{"first 32k f16", "first 16k f16", "first 8k f16", "first 4k f16",
		"first 64k q8_0", "first 32k q8_0", "first 16k q8_0", "first 8k q8_0", "first 4k q8_0", "second 64k f16"}
	if !slices.Equal(steps, want) {
		t.Errorf("steps\n%q, want\n%q", steps, want)
	}
}

func TestEnginesThatAreMissing(t *testing.T) {
	nothing := Pick(Survey{Machine: machine(64, card(24)), Engines: []EngineInfo{{Name: Ollama, State: Missing}, {Name: LlamaServer, State: Missing}}}, DefaultCatalog(), Request{})
	if nothing.CanEnable || nothing.Choice == nil || !strings.Contains(strings.Join(nothing.Hints, " "), "localllm setup") {
		t.Errorf("decision %+v", nothing)
	}
	deaf := Pick(Survey{Machine: machine(64, card(24)), Engines: []EngineInfo{{Name: Ollama, State: Unreachable, URL: "http://gpu:1"}}}, DefaultCatalog(), Request{})
	if deaf.CanEnable || !strings.Contains(strings.Join(deaf.Reasons, " "), "http://gpu:1 does not answer") {
		t.Errorf("reasons %q", deaf.Reasons)
	}
	only := Survey{Machine: machine(64, card(24)), Engines: []EngineInfo{{Name: LlamaServer, State: Installed}}}
	d := Pick(only, DefaultCatalog(), Request{})
	if d.Choice.Engine != LlamaServer || !strings.HasPrefix(d.Choice.Model, "hf:") || !d.CanEnable {
		t.Errorf("llama-server can't pull a tag: %+v", d.Choice)
	}
	blob := model("tagged", 5*gib)
	blob.Engines, blob.Path = []string{Ollama, LlamaServer}, "/blobs/sha256-1"
	only.Models = []Model{blob, model("ollama-only", 5*gib)}
	d = Pick(only, DefaultCatalog(), Request{})
	if d.Choice.Model != "tagged" || d.Choice.Engine != LlamaServer || d.Choice.Path != blob.Path {
		t.Errorf("an Ollama model's file can be run by llama-server: %+v", d.Choice)
	}
	if why := rejection(d, "ollama-only"); !strings.Contains(why, "ollama, which would run it, is not installed") {
		t.Errorf("rejected because %q", why)
	}
	d = pick(machine(64, card(24)), Request{Engine: LlamaServer, Model: "ollama-only"}, only.Models...)
	if d.Choice != nil || d.CanEnable {
		t.Errorf("the engine asked for can't run it: %+v", d.Choice)
	}
	if d := Pick(Survey{Machine: machine(8), Engines: []EngineInfo{{Name: Ollama, State: Installed}}}, DefaultCatalog(), Request{Engine: LlamaServer}); d.CanEnable || !strings.Contains(strings.Join(d.Reasons, " "), "llama-server is not installed") {
		t.Errorf("reasons %q", d.Reasons)
	}
}

func TestModelsThatWriteNoText(t *testing.T) {
	embed := model("nomic-embed-text", gib/4)
	embed.Unfit = "an embedding model: it writes no text"
	d := pick(machine(64, card(24)), Request{}, embed)
	if d.Choice.Model == embed.Ref || rejection(d, embed.Ref) != embed.Unfit {
		t.Errorf("picked %s, rejected %+v", d.Choice.Model, d.Rejected)
	}
	if len(d.Models) != 1+mostProposed || !slices.ContainsFunc(d.Models, func(m ModelReport) bool { return m.Ref == embed.Ref && len(m.Notes) > 0 }) {
		t.Errorf("models %+v", d.Models)
	}
	if d := pick(machine(64, card(24)), Request{Model: embed.Ref}, embed); d.Choice != nil || len(d.Hints) == 0 {
		t.Errorf("decision %+v", d)
	}
}

func TestModelsThatAreAskedForByName(t *testing.T) {
	tests := []struct {
		name, ref, engine string
		verdict           Verdict
		source            Source
		need              int64 // at least
	}{
		{"from the table", "qwen3-coder:30b", Ollama, Fits, FromTable, 18 * gib},
		{"from the table by its file", "hf:unsloth/Qwen3-Coder-30B-A3B-Instruct-GGUF:Q4_K_M", Ollama, Fits, FromTable, 18 * gib},
		{"by the number in its name", "codellama:13b-q8_0", Ollama, Fits, FromTable, 12 * gib},
		{"a file to download", "hf:bartowski/Some-7B-GGUF:Q4_K_M", LlamaServer, Fits, FromTable, 4 * gib},
		{"of unknown size", "mystery", Ollama, Tight, FromTable, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := pick(machine(64, card(24)), Request{Model: tt.ref})
			c := d.Choice
			if c == nil || c.Engine != tt.engine || c.Verdict != tt.verdict || c.Source != tt.source || c.NeedBytes < tt.need || c.Installed {
				t.Fatalf("picked %+v", c)
			}
			if !d.CanEnable {
				t.Error("an estimate alone refuses nothing")
			}
		})
	}
	d := pick(machine(64), Request{Model: "/none/such.gguf"})
	if d.Choice != nil || d.CanEnable || d.Models[0].Verdict != No || !slices.Contains(d.Reasons, "/none/such.gguf was not found") {
		t.Errorf("decision %+v", d)
	}
	if r := (Rejection{"m:1b", "it is small"}); r.String() != "m:1b: it is small" {
		t.Errorf("told as %q", r)
	}
}

func TestAMachineThatCanRunNothing(t *testing.T) {
	d := pick(machine(2), Request{})
	if d.CanEnable || d.Choice != nil && d.Choice.Verdict.Usable() && d.Choice.NeedBytes > 0 && d.Choice.Source != FromTable {
		t.Errorf("decision %+v", d.Choice)
	}
	deaf := GPU{Name: "Odd card", Vendor: "nvidia", MemoryKind: Dedicated}
	if d := pick(machine(64, deaf), Request{}); !strings.Contains(strings.Join(d.Reasons, "\n"), "Odd card does not say how much memory is free") || len(d.Choice.Devices) != 0 {
		t.Errorf("reasons %q", d.Reasons)
	}
}
