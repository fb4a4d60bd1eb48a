package capability

import (
	"slices"
	"strings"
	"testing"
)

func TestReferences(t *testing.T) {
	tests := []struct {
		in   string
		kind RefKind
		name string
	}{
		{"qwen3", TagRef, "qwen3"},
		{"qwen3:latest", TagRef, "qwen3"},
		{"qwen3-coder:30b-a3b-q4_K_M", TagRef, "qwen3-coder:30b-a3b-q4_K_M"},
		{"someone/model:7b", TagRef, "someone/model:7b"},
		{"registry.ollama.ai/library/qwen3:8b", TagRef, "qwen3:8b"},
		{"host:5000/team/model:1", TagRef, "host:5000/team/model:1"},
		{"/models/a b.gguf", FileRef, "/models/a b.gguf"},
		{"./x/../m.GGUF", FileRef, "m.GGUF"},
		{"hf:unsloth/Qwen3-8B-GGUF:Q4_K_M", HuggingFaceRef, "hf:unsloth/Qwen3-8B-GGUF:Q4_K_M"},
		{"hf.co/unsloth/Qwen3-8B-GGUF", HuggingFaceRef, "hf:unsloth/Qwen3-8B-GGUF"},
		{"unsloth/Qwen3-8B-GGUF:Q8_0", HuggingFaceRef, "hf:unsloth/Qwen3-8B-GGUF:Q8_0"},
	}
	for _, tt := range tests {
		ref, err := ParseRef(tt.in)
		if err != nil || ref.Kind != tt.kind || ref.Name() != tt.name {
			t.Errorf("%q is %v %q, %v", tt.in, ref.Kind, ref.Name(), err)
		}
	}
	for _, bad := range []string{"", "-flag", "a b", "hf:alone", "hf:a/b/c", ":8b", "qwen3:", "a\nb", "a\x00.gguf", `c:\dir`, "/models/x.json", "./m", "../m", "~/m", "."} {
		if ref, err := ParseRef(bad); err == nil {
			t.Errorf("%q is taken as %+v", bad, ref)
		}
	}
	if !Same("qwen3", "qwen3:latest") || !Same("hf.co/A/b-GGUF:q4_k_m", "hf:a/B-gguf:Q4_K_M") || Same("qwen3:8b", "qwen3:4b") || !Same("-x", "-x") || Same("-x", "-y") {
		t.Error("two spellings of one model, or one of two")
	}
}

func FuzzParseRef(f *testing.F) {
	for _, s := range []string{"qwen3:8b", "hf:a/b:c", "x.gguf", "a/b-GGUF", "h:1/a/b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ref, err := ParseRef(s)
		if err != nil {
			return
		}
		again, err := ParseRef(ref.Name())
		if err != nil || again.Name() != ref.Name() {
			t.Errorf("%q: its name %q is %q, %v", s, ref.Name(), again.Name(), err)
		}
	})
}

func TestCacheTypes(t *testing.T) {
	if kv, err := ParseKVType("Q8_0"); kv != "q8_0" || err != nil {
		t.Errorf("%q, %v", kv, err)
	}
	if kv, err := ParseKVType(""); kv != "f16" || err != nil {
		t.Errorf("%q, %v", kv, err)
	}
	if _, err := ParseKVType("q9"); err == nil || !strings.Contains(err.Error(), "f16, bf16") && !strings.Contains(err.Error(), "bf16") {
		t.Errorf("error %v", err)
	}
	if list := KVTypes(); list[0] != "f32" || list[len(list)-1] != "q4_0" || !slices.Contains(list, "q8_0") {
		t.Errorf("types %v", list)
	}
}

func TestGuessesFromNames(t *testing.T) {
	for name, want := range map[string]int64{
		"codellama:13b":                 7881,
		"some/Model-7B-GGUF:Q8_0":       7437,
		"llama3.2:1.5b-instruct-q4_K_M": 909,
		"a:0.6b-fp16":                   1200,
		"gemma3":                        0,
		"v2b4":                          0,
	} {
		if got := guess(name); got.Weights/1e6 != want || len(got.Notes) != 1 {
			t.Errorf("%s: %d MB, want %d (%q)", name, got.Weights/1e6, want, got.Notes)
		}
	}
}

func TestFreeMemorySums(t *testing.T) {
	f := FreeMemory{Devices: map[string]int64{"a": 3, "b": 4}, Host: 100}
	if f.Total() != 7 || f.Total("b") != 4 || f.Total("none") != 0 || (FreeMemory{Host: 100}).Total("a") != 100 {
		t.Error("the sums are wrong")
	}
}

func TestSizesInWords(t *testing.T) {
	if GB(18_556_000_000) != "18.6 GB" || GB(6_000_000) != "6 MB" || GB(0) != "size unknown" || GiB(3*gib/2) != "1.5 GiB" || Tokens(32768) != "32k" || Tokens(1000) != "1000" {
		t.Error(GB(18_556_000_000), GB(6_000_000), GB(0), GiB(3*gib/2), Tokens(32768), Tokens(1000))
	}
}
