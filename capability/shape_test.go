package capability

import (
	"strings"
	"testing"
)

// header is a model's metadata in a test.
type header map[string]any

func (h header) Number(key string) (int64, bool) {
	n, ok := h[key].(int)
	return int64(n), ok
}

func (h header) Numbers(key string) ([]int64, bool) {
	list, ok := h[key].([]int64)
	return list, ok
}

func (h header) Text(key string) (string, bool) {
	s, ok := h[key].(string)
	return s, ok
}

func (h header) Count(key string) (int64, bool) {
	list, ok := h[key].([]string)
	return int64(len(list)), ok
}

// of fills in the keys that all architectures have, and puts the architecture's name before the rest.
func of(arch string, layers int, more header) header {
	h := header{
		"general.architecture": arch, arch + ".block_count": layers, arch + ".embedding_length": 1024,
		arch + ".context_length": 8192, arch + ".attention.head_count": 8, arch + ".attention.head_count_kv": 2,
		arch + ".vocab_size": 1000, arch + ".feed_forward_length": 4096,
	}
	for k, v := range more {
		h[arch+"."+k] = v
	}
	return h
}

func shapeOf(t *testing.T, h header, tensors ...Tensor) Shape {
	t.Helper()
	s, err := ShapeOf(h, tensors)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCacheByArchitecture(t *testing.T) {
	tests := []struct {
		name    string
		header  header
		kv      int64 // bytes at 4,096 tokens, f16
		state   int64
		reuse   string
		unknown bool
	}{
		{"grouped heads", of("llama", 4, nil), 4 * 4096 * 2 * 128 * 2 * 2, 0, CacheReliable, false},
		{"heads by layer, some without attention", of("deci", 4, header{"attention.head_count_kv": []int64{2, 0, 0, 2}}), 2 * 4096 * 2 * 128 * 2 * 2, 0, CacheReliable, false},
		{"no count of KV heads: as many as heads", func() header {
			h := of("llama", 4, nil)
			delete(h, "llama.attention.head_count_kv")
			return h
		}(), 4 * 4096 * 8 * 128 * 2 * 2, 0, CacheReliable, false},
		{"one latent vector", of("deepseek2", 4, header{"attention.head_count_kv": 1, "attention.key_length": 576, "attention.value_length": 512, "attention.key_length_mla": 192}),
			4 * 4096 * 576 * 2, 0, CacheReliable, false},
		{"every sixth layer keeps everything", of("gemma3", 6, header{"attention.sliding_window": 512}), 4096*1024 + 5*1024*1024, 0, CacheCheckpoints, false},
		{"the pattern is in the file", of("gemma4", 3, header{"attention.sliding_window": 512, "attention.sliding_window_pattern": []int64{1, 0, 1}, "attention.key_length_swa": 64, "attention.value_length_swa": 64}),
			4096*1024 + 2*1024*512, 0, CacheCheckpoints, false},
		{"later layers share", of("gemma4", 4, header{"attention.sliding_window": 512, "attention.sliding_window_pattern": []int64{0, 0, 0, 0}, "attention.shared_kv_layers": 3}), 4096 * 1024, 0, CacheReliable, false},
		{"the first of four keeps everything", of("smallthinker", 4, header{"attention.sliding_window": 512}), 4096*1024 + 3*1024*1024, 0, CacheCheckpoints, false},
		{"only the model of 64 layers slides", of("exaone4", 4, header{"attention.sliding_window": 512}), 4 * 4096 * 1024, 0, CacheReliable, false},
		{"a window that the engine does not use", of("phi3", 4, header{"attention.sliding_window": 512}), 4 * 4096 * 1024, 0, CacheReliable, false},
		{"three states to one attention", of("qwen35", 4, header{"full_attention_interval": 4, "ssm.conv_kernel": 4, "ssm.inner_size": 256, "ssm.state_size": 16, "ssm.group_count": 2}),
			4096 * 1024, 3 * 4 * (3*(256+2*2*16) + 16*256), CacheCheckpoints, false},
		{"states where there are no heads", of("granitehybrid", 2, header{"attention.head_count_kv": []int64{0, 2}, "ssm.conv_kernel": 4, "ssm.inner_size": 256, "ssm.state_size": 16, "ssm.group_count": 1}),
			4096 * 1024, 4 * (3*(256+2*16) + 16*256), CacheCheckpoints, false},
		{"both in one layer", of("falcon-h1", 1, header{"ssm.conv_kernel": 4, "ssm.inner_size": 256, "ssm.state_size": 16, "ssm.group_count": 1}),
			4096 * 1024, 4 * (3*(256+2*16) + 16*256), CacheCheckpoints, false},
		{"layers with neither", of("nemotron_h", 3, header{"attention.head_count_kv": []int64{0, 2, 0}, "feed_forward_length": []int64{0, 0, 100}, "ssm.conv_kernel": 4, "ssm.inner_size": 256, "ssm.state_size": 16, "ssm.group_count": 1}),
			4096 * 1024, 4 * (3*(256+2*16) + 16*256), CacheCheckpoints, false},
		{"short convolutions", of("lfm2", 2, header{"attention.head_count_kv": []int64{0, 2}, "shortconv.l_cache": 3}), 4096 * 1024, 4 * 1024 * 2, CacheCheckpoints, false},
		{"nothing but states", of("mamba", 2, header{"ssm.conv_kernel": 4, "ssm.inner_size": 256, "ssm.state_size": 16}), 0, 2 * 4 * (3*256 + 16*256), CacheCheckpoints, false},
		{"predicting layers keep none", of("glm4moe", 5, header{"nextn_predict_layers": 1}), 4 * 4096 * 1024, 0, CacheReliable, false},
		{"an unknown architecture counts in full and says so", of("brandnew", 4, header{"attention.sliding_window": 512}), 4 * 4096 * 1024, 0, CacheReliable, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := shapeOf(t, tt.header)
			need := s.Estimate(Setting{Context: 4096, KVType: "f16"})
			if need.KVBytes != tt.kv || need.StateBytes != tt.state {
				t.Errorf("cache %d and state %d, want %d and %d", need.KVBytes, need.StateBytes, tt.kv, tt.state)
			}
			if s.PrefixCache() != tt.reuse {
				t.Errorf("prefix cache %s, want %s", s.PrefixCache(), tt.reuse)
			}
			if s.Known == tt.unknown || tt.unknown != (len(s.Notes) > 0) {
				t.Errorf("known %v, notes %q", s.Known, s.Notes)
			}
		})
	}
}

func TestWhatChangesTheNeed(t *testing.T) {
	s := shapeOf(t, of("llama", 4, nil), Tensor{"a", 1000}, Tensor{"b", 500})
	base := s.Estimate(Setting{Context: 4096, KVType: "f16"})
	if base.WeightsBytes != 1500 || base.RuntimeBytes != 0 || base.Total() != base.WeightsBytes+base.KVBytes+base.ComputeBytes {
		t.Errorf("base %+v", base)
	}
	if got := s.Estimate(Setting{Context: 4000, KVType: "f16"}); got != base {
		t.Errorf("engines round the context up to 256: %+v", got)
	}
	if got := s.Estimate(Setting{Context: 4096, KVType: "q8_0"}); got.KVBytes*32 != base.KVBytes*17 {
		t.Errorf("q8_0 takes 34 bytes for 32 numbers: %d of %d", got.KVBytes, base.KVBytes)
	}
	if got := s.Estimate(Setting{Context: 4096, KVType: "f16", Slots: 4}); got.KVBytes != 4*base.KVBytes || got.ComputeBytes != base.ComputeBytes {
		t.Errorf("four slots: %+v", got)
	}
	if got := s.Estimate(Setting{Context: 4096, KVType: "f16", Devices: 2}); got.RuntimeBytes != 2*runtimeBytes || got.ComputeBytes != 2*base.ComputeBytes {
		t.Errorf("two devices: %+v", got)
	}
	if got := s.Estimate(Setting{Context: 4096, KVType: "f16", UBatch: 1024}); got.ComputeBytes != 2*base.ComputeBytes {
		t.Errorf("a batch of twice the size: %+v", got)
	}
	if got := s.Estimate(Setting{Context: 4096, KVType: "nonsense"}); got != base {
		t.Errorf("an unknown cache type counts as f16: %+v", got)
	}
	mtp := shapeOf(t, of("glm4moe", 3, header{"nextn_predict_layers": 1}), Tensor{"blk.1.x", 10}, Tensor{"blk.2.x", 7}, Tensor{"output", 5})
	tied := shapeOf(t, of("gemma4", 2, nil), Tensor{"token_embd.weight", 100}, Tensor{"blk.0.x", 5})
	if tied.Weights != 205 {
		t.Errorf("an embedding that is the output as well is loaded twice by this family: %d", tied.Weights)
	}
	if mtp.Weights != 15 {
		t.Errorf("the predicting layers of this family are not loaded: %d", mtp.Weights)
	}
}

func TestHostileFiguresAreRefused(t *testing.T) {
	for name, h := range map[string]header{
		"no architecture":    {},
		"too many layers":    of("llama", 1<<30, nil),
		"negative layers":    of("llama", -1, nil),
		"a giant width":      of("llama", 2, header{"embedding_length": 1 << 40}),
		"negative heads":     of("llama", 2, header{"attention.key_length": -128}),
		"a giant head":       of("llama", 2, header{"attention.key_length": 1 << 50}),
		"a giant state":      of("mamba", 2, header{"ssm.inner_size": 1 << 40, "ssm.state_size": 1 << 40, "ssm.group_count": 1 << 40, "ssm.conv_kernel": 1 << 40}),
		"a giant vocabulary": of("llama", 2, header{"vocab_size": 1 << 40}),
	} {
		if s, err := ShapeOf(h, nil); err == nil {
			t.Errorf("%s: accepted as %+v", name, s)
		}
	}
}

func TestFilesThatWriteNoText(t *testing.T) {
	for want, h := range map[string]header{
		"embedding":   {"general.architecture": "nomic-bert"},
		"vectors":     {"general.architecture": "qwen3", "qwen3.pooling_type": 3},
		"projector":   {"general.architecture": "clip"},
		"adapter":     {"general.architecture": "llama", "general.type": "adapter"},
		"sound":       {"general.architecture": "wavtokenizer-dec"},
		"(it writes)": {"general.architecture": "llama", "general.type": "model"},
	} {
		got := UnfitFor(h)
		if want == "(it writes)" {
			if got != "" {
				t.Errorf("an ordinary model is refused: %s", got)
			}
			continue
		}
		if want == "vectors" {
			want = "embedding"
		}
		if !strings.Contains(got, want) {
			t.Errorf("%v: %q, want %q in it", h, got, want)
		}
	}
}
